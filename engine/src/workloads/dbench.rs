//! dbench: clients that play the calls of a file server under load, without think time. Calls are drawn by how often each
//! stands in the benchmark's load file; what a call does in system calls is what its client does for it. Which file it is done on
//! matters where what is new is written, synced and renamed: most writes are to the file written before or to the one made last, a
//! flush is always of the file written last, half of all renames are of the file flushed last, and only some directories hold files
//! that are ever flushed. A client goes from directory to directory: nearly all calls on names are where the one before was, and most
//! reads are of the file read before. So few inodes are both changed and read in the same moment, which decides how often a read
//! writes the inode.
//!
//! Names are looked for without regard to case: first by `stat`, and where there is none by listing the directory.

use super::acts::{Act, Actor, Full, Which};
use super::draw::{chance, uniform};
use super::format::NameFormat;
use crate::filesystems::Filesystem;
use crate::spec::WorkloadSpec;
use crate::waist::{Account, Machine, Time};
use std::rc::Rc;

/// A call of the load file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Open,
    OpenMissing,
    Create,
    Close,
    Rename,
    Unlink,
    QueryPath,
    QueryPathMissing,
    QueryFile,
    QueryFs,
    SetFile,
    Find,
    Write,
    Read,
    Lock,
    Unlock,
    Flush,
}

/// Parameter with the count, the call, and the operation that dbench reports it as.
const CALLS: [(&str, Call, &str); 17] = [
    ("ntcreatex_open", Call::Open, "NTCreateX"),
    ("ntcreatex_missing", Call::OpenMissing, "NTCreateX"),
    ("ntcreatex_create", Call::Create, "NTCreateX"),
    ("close", Call::Close, "Close"),
    ("rename", Call::Rename, "Rename"),
    ("unlink", Call::Unlink, "Unlink"),
    ("qpathinfo", Call::QueryPath, "Qpathinfo"),
    ("qpathinfo_missing", Call::QueryPathMissing, "Qpathinfo"),
    ("qfileinfo", Call::QueryFile, "Qfileinfo"),
    ("qfsinfo", Call::QueryFs, "Qfsinfo"),
    ("sfileinfo", Call::SetFile, "Sfileinfo"),
    ("find", Call::Find, "Find"),
    ("writex", Call::Write, "WriteX"),
    ("readx", Call::Read, "ReadX"),
    ("lockx", Call::Lock, "LockX"),
    ("unlockx", Call::Unlock, "UnlockX"),
    ("flush", Call::Flush, "Flush"),
];

/// The load file in numbers.
#[derive(Clone, Debug)]
pub struct Params {
    /// Share of the calls up to and with each.
    upto: [f64; CALLS.len()],
    /// Bytes of a write, and of the files that there are when the client starts.
    pub write_bytes: u32,
    read_bytes: u32,
    /// Share of writes that find pages with blocks.
    overwrites: f64,
    /// Share of writes to the file written before, and of the others to the one made last.
    writes_again: f64,
    writes_new: f64,
    /// So many directories hold files that are flushed.
    flushed_directories: usize,
    /// Share of renames of the file flushed last, and of the others in directories where files are flushed.
    renames_flushed: f64,
    renames_beside: f64,
    /// Share of reads of the file read before.
    reads_again: f64,
    /// Share of listings for a pattern in the client's own directory, here the last of those with files.
    finds_at_home: f64,
    /// Share of calls on names in the directory of the one before.
    pub stays: f64,
    /// How many these are.
    pub files: u32,
    /// Names that a client uses in all, files that are there and others.
    pub names: u32,
    /// What they look like.
    pub format: Rc<NameFormat>,
    /// Files are open with `O_SYNC` (`-s`).
    sync: bool,
    /// Who removes or renames a file has its directory synced (`-S`).
    sync_directories: bool,
    user: Time,
    probe: Time,
}

impl Params {
    /// From the workload's parameters. Times are multiplied by `speed`.
    pub fn new(w: &WorkloadSpec, speed: f64) -> Result<Self, String> {
        let number = |name: &str| w.number(name);
        let mut upto = [0.0; CALLS.len()];
        let mut sum = 0.0;
        for (place, (name, ..)) in CALLS.iter().enumerate() {
            sum += number(name);
            upto[place] = sum;
        }
        let time = |name: &str| crate::waist::time::from_ns(number(name) * speed);
        Ok(Self {
            upto: upto.map(|up| up / sum),
            write_bytes: number("write_bytes") as u32,
            read_bytes: number("read_bytes") as u32,
            overwrites: number("overwrites"),
            writes_again: number("writes_again"),
            writes_new: number("writes_new"),
            flushed_directories: number("flushed_directories").min(w.number("subdirectories")) as usize,
            renames_flushed: number("renames_flushed"),
            renames_beside: number("renames_beside"),
            reads_again: number("reads_again"),
            finds_at_home: number("finds_at_home"),
            stays: number("stays"),
            files: number("files") as u32,
            names: number("names") as u32,
            format: Rc::new(NameFormat::of(w)?),
            sync: w.number("sync") > 0.0,
            sync_directories: w.number("sync_directories") > 0.0,
            user: time("user_ns"),
            probe: time("probe_ns"),
        })
    }
}

/// Runs a client for ever.
pub async fn run<M: Machine, F: Filesystem<M>>(m: M, mut actor: Actor<M, F>, p: Rc<Params>) {
    let mut owed = 0;
    while one(&m, &mut actor, &p, &mut owed).await.is_ok() {}
}

/// A drawn call. A flush is `owed` until something has been written that may be flushed: 5549 of 5553 are the call behind a write to the
/// file (load file of dbench 4.0, client.txt).
async fn one<M: Machine, F: Filesystem<M>>(
    m: &M,
    actor: &mut Actor<M, F>,
    p: &Params,
    owed: &mut u32,
) -> Result<(), Full> {
    let drawn = uniform(actor.random());
    let place = p.upto.iter().position(|&up| drawn < up).unwrap_or(CALLS.len() - 1);
    let (_, call, name) = CALLS[place];
    if call == Call::Flush {
        *owed += 1;
    } else {
        timed(m, actor, call, name, p).await?;
    }
    if *owed > 0 && flushable(actor, call, p).is_some_and(|dir| dir < p.flushed_directories) {
        *owed -= 1;
        timed(m, actor, Call::Flush, "Flush", p).await?;
    }
    Ok(())
}

/// The directory of the file that a flush would be of. A file that is open with `O_SYNC` is flushed right behind a write, for nothing.
fn flushable<M: Machine, F: Filesystem<M>>(actor: &Actor<M, F>, call: Call, p: &Params) -> Option<usize> {
    if p.sync {
        return (call == Call::Write).then(|| actor.written_in()).flatten();
    }
    actor.unsynced()
}

async fn timed<M: Machine, F: Filesystem<M>>(
    m: &M,
    actor: &mut Actor<M, F>,
    call: Call,
    name: &'static str,
    p: &Params,
) -> Result<(), Full> {
    m.run(Account::User, p.user).await;
    m.run(Account::System, p.probe).await;
    m.begin();
    play(actor, call, p).await?;
    m.end(name, true);
    Ok(())
}

async fn play<M: Machine, F: Filesystem<M>>(actor: &mut Actor<M, F>, call: Call, p: &Params) -> Result<(), Full> {
    match call {
        Call::Open => open(actor).await,
        Call::OpenMissing => {
            look_in_vain(actor).await?;
            actor.act(Which::Any, Act::StatMissing, 0).await // the open finds as little
        }
        Call::Create => create(actor).await,
        Call::Close => {
            actor.close_any().await;
            Ok(())
        }
        Call::Rename => {
            actor.act(Which::Any, Act::Stat, 0).await?;
            look_in_vain(actor).await?;
            rename(actor, p).await?;
            sync_parent(actor, p).await;
            Ok(())
        }
        Call::Unlink => {
            actor.act(Which::Any, Act::Stat, 0).await?;
            actor.act(Which::Any, Act::Unlink, 0).await?;
            sync_parent(actor, p).await;
            Ok(())
        }
        Call::QueryPath => actor.act(Which::Any, Act::Stat, 0).await,
        Call::QueryPathMissing => look_in_vain(actor).await,
        Call::QueryFile => actor.act(Which::Any, Act::Fstat, 0).await,
        Call::QueryFs => actor.act(Which::Any, Act::Statfs, 0).await,
        Call::SetFile => {
            actor.act(Which::Any, Act::Fstat, 0).await?;
            actor.act(Which::Any, Act::Utimes, 0).await
        }
        Call::Find => find(actor, p).await,
        Call::Write => write(actor, p).await,
        Call::Read => {
            let again = chance(actor.random(), p.reads_again);
            actor.on(if again { Which::Read } else { Which::Any }, Act::Read, p.read_bytes).await
        }
        Call::Lock => actor.act(Which::Any, Act::Lock, 0).await,
        Call::Unlock => actor.act(Which::Any, Act::Unlock, 0).await,
        Call::Flush => actor.on(Which::Written, Act::Fsync, 0).await,
    }
}

async fn open<M: Machine, F: Filesystem<M>>(actor: &mut Actor<M, F>) -> Result<(), Full> {
    actor.act(Which::Any, Act::Stat, 0).await?;
    actor.open_any().await?;
    actor.act(Which::Any, Act::Fstat, 0).await
}

async fn create<M: Machine, F: Filesystem<M>>(actor: &mut Actor<M, F>) -> Result<(), Full> {
    look_in_vain(actor).await?;
    actor.create_open(0).await?;
    actor.act(Which::Any, Act::Fstat, 0).await
}

/// A pattern is no name: looked for as one that is missing, then the directory is listed.
async fn find<M: Machine, F: Filesystem<M>>(actor: &mut Actor<M, F>, p: &Params) -> Result<(), Full> {
    let home = chance(actor.random(), p.finds_at_home).then(|| actor.directories() - 1);
    actor.act(Which::Any, Act::StatMissing, 0).await?;
    for _ in 0..2 {
        match home {
            Some(home) => actor.list(home).await,
            None => actor.act(Which::Any, Act::Readdir, 0).await?,
        }
    }
    Ok(())
}

async fn write<M: Machine, F: Filesystem<M>>(actor: &mut Actor<M, F>, p: &Params) -> Result<(), Full> {
    let act = if chance(actor.random(), p.overwrites) { Act::Overwrite } else { Act::Append };
    let which = if chance(actor.random(), p.writes_again) {
        Which::Written
    } else if chance(actor.random(), p.writes_new) {
        Which::Made
    } else {
        Which::Any
    };
    actor.on(which, act, p.write_bytes).await?;
    if p.sync {
        actor.write_sync().await;
    }
    Ok(())
}

/// `sync_parent` of its fileio.c, after an unlink, and after a rename of the directory with the new name: `open`, `fdatasync` and `close`, of
/// which the second is done here. Creates are not synced.
async fn sync_parent<M: Machine, F: Filesystem<M>>(actor: &Actor<M, F>, p: &Params) {
    if p.sync_directories {
        actor.sync_changed_directory().await;
    }
}

async fn rename<M: Machine, F: Filesystem<M>>(actor: &mut Actor<M, F>, p: &Params) -> Result<(), Full> {
    if chance(actor.random(), p.renames_flushed) {
        actor.on(Which::Synced, Act::Rename, 0).await
    } else if chance(actor.random(), p.renames_beside) {
        actor.on_unsynced(0..p.flushed_directories, Act::Rename).await
    } else {
        actor.on_unsynced(p.flushed_directories..actor.directories(), Act::Rename).await
    }
}

/// A name that is not there: asked for, and looked for in the whole directory.
async fn look_in_vain<M: Machine, F: Filesystem<M>>(actor: &mut Actor<M, F>) -> Result<(), Full> {
    actor.act(Which::Any, Act::StatMissing, 0).await?;
    actor.act(Which::Any, Act::Readdir, 0).await
}
