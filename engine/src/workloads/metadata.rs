//! The metadata loops: create; create and unlink; the life of a temporary file. Each task loops as fast as it can on its own
//! names, in one directory for all or one each.

use super::arrivals::{served, taken, Requests};
use super::format::NameFormat;
use crate::filesystems::{DirId, Filesystem, NoSpace};
use crate::lru::Lru;
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

/// What the loop itself uses before each turn.
#[derive(Clone)]
pub struct User {
    /// CPU time.
    pub time: Time,
    /// Bytes of memory.
    pub footprint: u64,
    /// Bytes of its own code that the program runs before each turn.
    pub code: u64,
    /// Pages of a process that begins and ends before each turn.
    pub pages: u64,
    /// Where these go.
    pub lru: Rc<Lru>,
    /// It reads the clock around each call of a `tmpfile` turn: their times are told instead of the turn's.
    pub times_calls: bool,
}

/// A loop.
#[derive(Clone)]
pub struct Loop {
    /// What a turn does.
    pub turn: Turn,
    /// What it uses in user mode.
    pub user: User,
    /// The names of its files.
    pub format: NameFormat,
}

/// Runs turns for ever.
pub async fn run<M: Machine, F: Filesystem<M>>(
    m: M,
    fs: Rc<F>,
    dir: DirId,
    task: u32,
    turns: Rc<Loop>,
    requests: Requests,
) {
    let Loop { turn, user, format } = &*turns;
    let turn = *turn;
    let mut names = (0..).map(|serial| format.name(task, serial));
    let mut next = || names.next().expect("numbers do not end");
    if let (Turn::Tmpfile { bytes, .. }, true) = (turn, user.times_calls) {
        while timed(&m, &*fs, dir, &next(), bytes, user).await.is_ok() {}
        return m.give_up("no space left");
    }
    loop {
        let request = taken(&m, &requests).await;
        m.begin();
        use_up(&m, user).await;
        let name = next();
        let Ok(mut file) = fs.create(&m, dir, &name).await else { return m.give_up("no space left") };
        if let Turn::Tmpfile { bytes, fsync } = turn {
            fs.write(&m, &mut file, bytes).await;
            if fsync {
                fs.fsync(&m, &file, false).await;
            }
        }
        fs.close(&m, &file).await;
        if turn != Turn::Create {
            fs.unlink(&m, dir, &name, file).await;
        }
        m.end("operation", true);
        served(&m, request);
    }
}

async fn use_up<M: Machine>(m: &M, user: &User) {
    if user.footprint > 0 {
        m.use_memory(user.footprint);
    }
    if user.code > 0 {
        m.use_code(user.code);
    }
    if user.pages > 0 {
        user.lru.add(m, user.pages).await;
        user.lru.exit_mmap(m, user.pages).await;
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
    user: &User,
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
