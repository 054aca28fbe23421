//! fs_mark: every thread creates `files` files a loop; they stay (`-k`) or are unlinked after each loop. It loops until the run
//! ends: a run looks at a piece of a long benchmark, and `initial_files` says at which.

use crate::filesystems::{letters, DirId, File, Filesystem};
use crate::spec::WorkloadSpec;
use crate::waist::time::from_ns;
use crate::waist::{Account, Machine, Time};
use std::num::NonZeroUsize;
use std::rc::Rc;

/// When files are synced (`-S`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Never (0).
    Never,
    /// Each before it is closed (1).
    Each,
    /// All of a loop, opened again one after the other in the order of their creation (5).
    After,
    /// The same, last created first (3).
    Reverse,
}

/// What a thread does.
#[derive(Clone, Debug)]
pub struct Params {
    files: u32,
    size: u32,
    chunk: u32,
    sync: Sync,
    keep: bool,
    /// Files in a directory before a thread goes on to its next one (`-N`). Without, it goes on when some time has passed.
    files_per_directory: Option<NonZeroUsize>,
    user: Time,
}

impl Params {
    /// From the workload's parameters, for a machine of this speed.
    pub fn new(w: &WorkloadSpec, speed: f64) -> Result<Self, String> {
        let sync = match w.number("sync") as u32 {
            0 => Sync::Never,
            1 => Sync::Each,
            3 => Sync::Reverse,
            5 => Sync::After,
            other => return Err(format!("workload.params.sync: mode {other} is not modelled; known: 0, 1, 3, 5")),
        };
        Ok(Self {
            files: (w.number("files") as u32).max(1),
            size: w.number("file_bytes") as u32,
            chunk: (w.number("write_bytes") as u32).max(1),
            sync,
            keep: w.number("keep") > 0.0,
            files_per_directory: NonZeroUsize::new(w.number("files_per_directory") as usize),
            user: from_ns(w.number("user_ns") * speed),
        })
    }
}

/// Where a task works.
#[derive(Clone, Debug)]
pub struct DirectorySet {
    /// The directory that the others lie in.
    pub above: DirId,
    /// Those of the task, or of all that share them.
    pub dirs: Rc<[DirId]>,
}

/// A file of the loop that runs.
struct Made {
    dir: DirId,
    name: [u8; NAME_LENGTH],
    file: File,
}

/// For so long a thread stays in a directory without `-N` (fs_mark 3.3, `DEFAULT_SECS_PER_DIR`: 180 s).
const IN_A_DIRECTORY: Time = 180_000_000_000_000;

/// Runs a thread. Before each file it makes the file's directory, which is there (fs_mark 3.3, `setup_file_name`), and each file gets a
/// `write`, be it of no bytes (`write_file`).
pub async fn run<M: Machine, F: Filesystem<M>>(m: M, fs: Rc<F>, own: DirectorySet, thread: u32, p: Rc<Params>) {
    let DirectorySet { above, dirs } = own;
    let mut serial = 0;
    let mut made = Vec::new();
    loop {
        for number in 0..p.files as usize {
            m.begin();
            m.run(Account::User, p.user).await;
            let turn = p.files_per_directory.map_or((m.now() / IN_A_DIRECTORY) as usize, |files| number / files);
            let (dir, name) = (dirs[turn % dirs.len()], name_of(thread, serial));
            serial += 1;
            fs.mkdir_existing(&m, above, dir).await;
            let Ok(mut file) = fs.create(&m, dir, &name).await else { return m.give_up("no space left") };
            write_file(&m, &*fs, &mut file, &p).await;
            if p.sync == Sync::Each {
                fs.fsync(&m, &file, false).await;
            }
            fs.close(&m, &file).await;
            m.end("file", true);
            if !p.keep || matches!(p.sync, Sync::After | Sync::Reverse) {
                made.push(Made { dir, name, file });
            }
        }
        if p.sync == Sync::Reverse {
            made.reverse();
        }
        if matches!(p.sync, Sync::After | Sync::Reverse) {
            for one in &made {
                fs.open(&m, one.dir, &one.file).await;
                m.begin();
                fs.fsync(&m, &one.file, false).await;
                m.end("fsync", false);
                fs.close(&m, &File { written: false, ..one.file }).await;
            }
        }
        for one in made.drain(..).filter(|_| !p.keep) {
            m.begin();
            fs.unlink(&m, one.dir, &one.name, one.file).await;
            m.end("unlink", false);
        }
    }
}

async fn write_file<M: Machine, F: Filesystem<M>>(m: &M, fs: &F, file: &mut File, p: &Params) {
    if p.size == 0 {
        return fs.write_nothing(m).await;
    }
    let mut left = p.size;
    while left > 0 {
        let bytes = left.min(p.chunk);
        fs.write(m, file, bytes).await;
        left -= bytes;
    }
}

/// Bytes of a name: by default 16 that begin with a time stamp and 24 random ones (fs_mark 3.3 prints so).
pub const NAME_LENGTH: usize = 40;

fn name_of(thread: u32, serial: u32) -> [u8; NAME_LENGTH] {
    let mut name = [b'~'; NAME_LENGTH];
    letters(&mut name[16..], ((u64::from(thread) + 1) << 32) | u64::from(serial));
    name
}
