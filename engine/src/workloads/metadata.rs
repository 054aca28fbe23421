//! The metadata loops: create; create and unlink; the life of a temporary file. Each task loops as fast as it can on its own
//! names, in one directory for all or one each.

use crate::filesystems::{DirId, Filesystem};
use crate::machine::{Account, Time};
use crate::waist::Machine;
use std::rc::Rc;

/// What one turn of the loop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// create, close; the files stay.
    Create,
    /// create, close, unlink.
    CreateUnlink,
    /// create, write, perhaps fsync, close, unlink.
    Tmpfile {
        /// Bytes written.
        bytes: u32,
        /// The file is synced before it is closed.
        fsync: bool,
    },
}

/// Runs turns for ever. `user` is the loop's own time in user mode.
pub async fn run<M: Machine, F: Filesystem<M>>(m: M, fs: Rc<F>, dir: DirId, task: u32, turn: Turn, user: Time) {
    let mut name = Name::new(task);
    loop {
        m.begin();
        m.run(Account::User, user).await;
        let name = name.next();
        let Ok(mut file) = fs.create(&m, dir, name).await else { return m.give_up("no space left") };
        if let Turn::Tmpfile { bytes, fsync } = turn {
            fs.write(&m, &mut file, bytes).await;
            if fsync {
                fs.fsync(&m, &file).await;
            }
        }
        fs.close(&m, &file).await;
        if turn != Turn::Create {
            fs.unlink(&m, dir, name, file).await;
        }
        m.end("operation", true);
    }
}

/// Names `pTT_NNNNNNNN`, made in place.
struct Name {
    bytes: [u8; 12],
}

impl Name {
    fn new(task: u32) -> Self {
        let mut bytes = *b"p00_00000000";
        bytes[1] = b'0' + (task / 10 % 10) as u8;
        bytes[2] = b'0' + (task % 10) as u8;
        bytes[11] = b'0' - 1; // so that the first name is number 0
        Self { bytes }
    }

    fn next(&mut self) -> &[u8] {
        for digit in self.bytes[4..].iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                break;
            }
            *digit = b'0';
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn names_count_up_from_zero() {
        let mut name = Name::new(7);
        assert_eq!(name.next(), b"p07_00000000");
        for _ in 0..99 {
            name.next();
        }
        assert_eq!(name.next(), b"p07_00000100");
    }
}
