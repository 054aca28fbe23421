//! The metadata loops: create; create and unlink; the life of a temporary file. Each task loops as fast as it can on its own
//! names, in one directory for all or one each.

use super::arrivals::{served, taken, Requests};
use crate::filesystems::{DirId, Filesystem, NoSpace};
use crate::waist::Machine;
use crate::waist::{Account, Time};
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

/// What the loop itself uses in user mode, each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// CPU time.
    pub time: Time,
    /// Bytes of memory.
    pub footprint: u64,
    /// It reads the clock around each call of a `tmpfile` turn: their times are told instead of the turn's.
    pub times_calls: bool,
}

/// Runs turns for ever.
pub async fn run<M: Machine, F: Filesystem<M>>(
    m: M,
    fs: Rc<F>,
    dir: DirId,
    task: u32,
    turn: Turn,
    user: User,
    requests: Requests,
) {
    let mut name = Name::new(task);
    if let (Turn::Tmpfile { bytes, .. }, true) = (turn, user.times_calls) {
        while timed(&m, &*fs, dir, name.next(), bytes, user).await.is_ok() {}
        return m.give_up("no space left");
    }
    loop {
        let request = taken(&m, &requests).await;
        m.begin();
        use_up(&m, user).await;
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
        served(&m, request);
    }
}

async fn use_up<M: Machine>(m: &M, user: User) {
    if user.footprint > 0 {
        m.use_memory(user.footprint);
    }
    m.run(Account::User, user.time).await;
}

/// One life of a temporary file, call by call.
async fn timed<M: Machine, F: Filesystem<M>>(
    m: &M,
    fs: &F,
    dir: DirId,
    name: &[u8],
    bytes: u32,
    user: User,
) -> Result<(), NoSpace> {
    use_up(m, user).await;
    m.begin();
    let mut file = fs.create(m, dir, name).await?;
    m.end("create", false);
    m.begin();
    fs.write(m, &mut file, bytes).await;
    m.end("write", false);
    m.begin();
    fs.close(m, &file).await;
    m.end("close", false);
    m.begin();
    fs.unlink(m, dir, name, file).await;
    m.end("unlink", true);
    Ok(())
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
