//! The filesystems: operations as programs over the waist, on real structures.
//!
//! How to add an operation: write it top to bottom as the kernel does, in its order of locks; take each stretch of work
//! from a named cost; touch the lines of every object it writes.

pub mod btrfs;
mod by_slot;
pub mod cached;
pub mod calls;
pub mod ext4;
pub mod fs_type;
pub mod inodes;
pub mod ledger;
pub mod log_area;
pub mod names;
pub mod open_files;
mod paged;
pub mod pages;
mod percpu_counters;
pub mod sync;
pub(crate) mod system_calls;
#[cfg(test)]
pub(crate) mod testing;
pub mod tmpfs;
pub mod vfs;
pub mod xfs;
pub use crate::block::{Written, BLOCK};
pub use crate::costs;
pub use crate::page_cache;
use crate::waist::Machine;
use crate::waist::{LockId, Time};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;
use std::future::Future;
use std::ops::Range;
use vfs::SuperBlock;
pub use xfs::structures::groups::NoSpace;

/// A directory's number within its filesystem.
pub type DirId = u32;

/// The root directory.
pub const ROOT: DirId = 0;

/// An open or just closed file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its slot in the filesystem's inode table.
    pub inode: u32,
    /// It has been written to since it was created.
    pub written: bool,
    /// Who closes it may write to it.
    pub writable: bool,
}

/// The old and the new name of a rename.
#[derive(Clone, Copy, Debug)]
pub struct Renaming<'n> {
    /// What it is called.
    pub from: &'n [u8],
    /// What it will be called.
    pub to: &'n [u8],
    /// In which directory.
    pub into: DirId,
}

/// What `setattr` changes of an inode, beside its `ctime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// `utimes`.
    Times,
    /// `chmod`.
    Mode,
    /// `chown`.
    Owner,
}

impl Attribute {
    /// The name of its call.
    pub fn site(self) -> &'static str {
        match self {
            Self::Times => "utimes",
            Self::Mode => "chmod",
            Self::Owner => "chown",
        }
    }
}

/// What a file is like that a test has prepared.
#[derive(Clone, Copy, Debug)]
pub struct LaidOut {
    /// Its size.
    pub bytes: u64,
    /// Extents that it is in.
    pub extents: u64,
    /// All its pages are in memory, or none.
    pub cached: bool,
    /// They have been read, often.
    pub read: bool,
    /// Its blocks are there and nothing was written to them (`fallocate`).
    pub unwritten: bool,
    /// It is read block after block, and the kernel was told so (`POSIX_FADV_SEQUENTIAL`).
    pub in_order: bool,
    /// Bytes of the writes that made it, one behind the other (`extend_file` of fio).
    pub block: u32,
    /// Only its beginning is there, if so.
    pub written: Option<Written>,
}

/// A request for part of a file.
#[derive(Clone, Copy, Debug)]
pub struct Io {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u32,
    /// Past the page cache.
    pub direct: bool,
    /// Of direct I/O: the call returns when the request is submitted, and its end completes this. `None` waits.
    pub done: Option<LockId>,
    /// Requests that the task has under way besides, whose ends complete the same.
    pub others: u32,
}

impl Io {
    /// Pages that it is in, at least one.
    fn pages(&self) -> Time {
        Time::from(self.bytes.div_ceil(BLOCK).max(1))
    }

    /// The same of all blocks that it is in.
    fn whole_blocks(self) -> Self {
        let block = u64::from(BLOCK);
        let first = self.offset / block * block;
        let end = (self.offset + u64::from(self.bytes)).next_multiple_of(block);
        Self { offset: first, bytes: (end - first) as u32, ..self }
    }

    /// Begins or ends within a block.
    fn is_unaligned(&self) -> bool {
        let block = u64::from(BLOCK);
        !self.offset.is_multiple_of(block) || !u64::from(self.bytes).is_multiple_of(block)
    }
}

/// What the structures of a filesystem look like after an experiment (JSON in and out); the report's name begins with the
/// filesystem's.
pub fn structure_report(request: &str) -> Result<String, String> {
    let report: serde_json::Value = serde_json::from_str(request).map_err(|e| e.to_string())?;
    match report["report"].as_str() {
        Some(name) if name.starts_with("btrfs_") => btrfs::report::structure_report(request),
        _ => xfs::structures::report::structure_report(request),
    }
}

/// How initial files are named, and who made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InitialNames {
    /// Bytes of a name.
    pub length: usize,
    /// It ends with random letters, and not with a number.
    pub random: bool,
    /// So many tasks made them at the same time, each a directory after the other.
    pub makers: usize,
}

impl InitialNames {
    /// Names that end with a number, by one task.
    pub fn counted(length: usize) -> Self {
        Self { length, random: false, makers: 1 }
    }
}

/// So many files by directory and name, round robin.
pub fn initial_files(
    dirs: &[DirId],
    numbers: Range<u64>,
    names: InitialNames,
) -> impl Iterator<Item = (DirId, Vec<u8>)> + '_ {
    numbers.map(move |number| {
        let mut name = vec![b'~'; names.length];
        name[0] = b'i';
        if names.random {
            letters(&mut name[names.length / 3..], number);
        } else {
            digits(&mut name, number);
        }
        (dirs[number as usize % dirs.len()], name)
    })
}

fn digits(name: &mut [u8], mut number: u64) {
    for place in name.iter_mut().skip(1).rev().take(10) {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Random letters and digits, the same for the same number.
pub fn letters(place: &mut [u8], number: u64) {
    let mut random = SplitMix64::seed_from_u64(number);
    for letter in place {
        *letter = LETTERS[random.next_u64() as usize % LETTERS.len()];
    }
}

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What can be compared with the files that exist.
pub trait Audit {
    /// What is half done in the background, if anything.
    fn under_way(&self) -> Option<&'static str> {
        None
    }
    /// Compares every structure with what the files that exist need. Nothing is under way. The error says what differs.
    fn audit(&self, ledger: &ledger::Ledger) -> Result<(), String>;
}

/// A filesystem that is mounted.
pub trait Mounted {
    /// What all filesystems have.
    fn super_block(&self) -> &SuperBlock;
}

/// The system calls that workloads make (`system_calls.rs`). All names are plain bytes without a slash.
pub trait Filesystem<M: Machine>: Mounted + 'static {
    /// `mkdir` of a name that is free.
    fn mkdir(&self, m: &M, parent: DirId, name: &[u8]) -> impl Future<Output = Result<DirId, NoSpace>>;
    /// `mkdir` of a directory that exists.
    fn mkdir_existing(&self, m: &M, parent: DirId, dir: DirId) -> impl Future<Output = ()>;
    /// `rmdir` of an empty directory, whose number may then be that of another.
    fn rmdir(&self, m: &M, parent: DirId, name: &[u8], dir: DirId) -> impl Future<Output = ()>;
    /// [`initial_files`] that are there before the run begins: in the structures and not in memory. Takes no time.
    fn fill(&self, dirs: &[DirId], files: u64, names: InitialNames) -> Result<(), NoSpace>;
    /// Other files take all room but for so many bytes. Takes no time.
    fn fill_up(&self, free: u64) -> Result<(), NoSpace>;
    /// `open(O_CREAT|O_EXCL)` of a new name.
    fn create(&self, m: &M, dir: DirId, name: &[u8]) -> impl Future<Output = Result<File, NoSpace>>;
    /// The walk to a name whose file is not in memory, which brings it in; nothing where it is there. `creating`: of an `open` that may create.
    fn look_up(&self, m: &M, name: (DirId, &[u8]), file: &File, creating: bool) -> impl Future<Output = ()>;
    /// All is on disk, and these files leave memory with the blocks that they are in (`umount` and `mount`, or `drop_caches`).
    fn drop_caches(&self, m: &M, files: &[File]) -> impl Future<Output = ()>;
    /// `open` of a name that exists and is cached.
    fn open(&self, m: &M, dir: DirId, file: &File) -> impl Future<Output = ()>;
    /// `open(O_CREAT)` of a name that exists and is cached.
    fn open_creating(&self, m: &M, dir: DirId, file: &File) -> impl Future<Output = ()>;
    /// `open(O_TRUNC)` of an empty file.
    fn open_truncating(&self, m: &M, dir: DirId, file: &File) -> impl Future<Output = ()>;
    /// A buffered `write` of `bytes` at the end of the file.
    fn write(&self, m: &M, file: &mut File, bytes: u32) -> impl Future<Output = ()>;
    /// `write` of no bytes.
    fn write_nothing(&self, m: &M) -> impl Future<Output = ()>;
    /// A buffered `write` over what is cached and has blocks: its first byte, and how many.
    fn overwrite(&self, m: &M, file: &File, place: (u64, u32)) -> impl Future<Output = ()>;
    /// A buffered `read` of `bytes`, cached.
    fn read(&self, m: &M, file: &File, place: (u64, u32)) -> impl Future<Output = ()>;
    /// `close`.
    fn close(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `fsync`, or `fdatasync`.
    fn fsync(&self, m: &M, file: &File, data_only: bool) -> impl Future<Output = ()>;
    /// `fsync` of a directory that is open, or `fdatasync`.
    fn fsync_directory(&self, m: &M, dir: DirId, data_only: bool) -> impl Future<Output = ()>;
    /// The end of a write of `bytes` to a file that is open with `O_SYNC` (`generic_write_sync`).
    fn write_sync(&self, m: &M, file: &File, place: (u64, u32)) -> impl Future<Output = ()>;
    /// A new file that has all its blocks. Who makes it waits for no device.
    fn lay_out(&self, m: &M, dir: DirId, name: &[u8], laid: LaidOut) -> impl Future<Output = Result<File, NoSpace>>;
    /// `pread` of a file that was laid out.
    fn read_at(&self, m: &M, file: &File, io: Io) -> impl Future<Output = ()>;
    /// `pwrite` of a file that was laid out; no block is new.
    fn write_at(&self, m: &M, file: &File, io: Io) -> impl Future<Output = ()>;
    /// `fallocate` of so many bytes behind the last block.
    fn fallocate(&self, m: &M, file: &File, bytes: u32) -> impl Future<Output = Result<(), NoSpace>>;
    /// `ioctl(FICLONE)`: a file without data gets those of another.
    fn reflink(&self, m: &M, from: &File, to: &File) -> impl Future<Output = ()>;
    /// `ftruncate` to nothing.
    fn truncate(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `ftruncate` to so many bytes less, or to nothing.
    fn shorten(&self, m: &M, file: &File, bytes: u32) -> impl Future<Output = ()>;
    /// `unlink` of a name of a file that nobody has open; with its last name the file goes.
    fn unlink(&self, m: &M, dir: DirId, name: &[u8], file: File) -> impl Future<Output = ()>;
    /// `link`: a file gets another name, which is free, in `dir`.
    fn link(&self, m: &M, dir: DirId, name: &[u8], file: &File) -> impl Future<Output = Result<(), NoSpace>>;
    /// `rename` of a file in `dir`, to a name that is free.
    fn rename(&self, m: &M, dir: DirId, names: Renaming<'_>, file: &File) -> impl Future<Output = Result<(), NoSpace>>;
    /// `stat` of a name that exists and is cached.
    fn stat(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `stat` of a directory that exists and is cached.
    fn stat_directory(&self, m: &M, dir: DirId) -> impl Future<Output = ()>;
    /// `fstat`.
    fn fstat(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `utimes`, `chmod` or `chown`.
    fn set_attribute(&self, m: &M, file: &File, attribute: Attribute) -> impl Future<Output = ()>;
    /// `lseek` to a place of an open file.
    fn lseek(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `lseek(SEEK_HOLE)` of an open file that has none, so that it comes to its end.
    fn seek_hole(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `syncfs`.
    fn syncfs(&self, m: &M) -> impl Future<Output = ()>;
    /// `ioctl(XFS_IOC_BULKSTAT)`: the next inode of the walk by number of somebody.
    fn bulkstat(&self, m: &M, who: u32) -> impl Future<Output = ()>;
    /// A walk has come so far in a directory when the run begins.
    fn has_walked(&self, dir: DirId, nth: u32);
    /// `sync` before the run begins: what was done so far is on disk afterwards.
    fn sync_all(&self, m: &M) -> impl Future<Output = ()>;
    /// `ioctl(FS_IOC_FIEMAP)` of a whole file.
    fn fiemap(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `opendir`, `readdir` to the end, `closedir`.
    fn readdir(&self, m: &M, dir: DirId) -> impl Future<Output = ()>;
    /// The next step of a walk through a directory whose inodes are not in memory: reads a name and `stat`s the `nth` file.
    fn walk(&self, m: &M, dir: DirId, nth: u32) -> impl Future<Output = ()>;
    /// `dup` and the `close` of what it gives.
    fn dup(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `fcntl(F_SETLK)` of a range of an open file: a lock, or its unlock.
    fn lock_range(&self, m: &M, file: &File, set: bool) -> impl Future<Output = ()>;
    /// `fcntl(F_SETLKW)` of a whole open file, and its unlock.
    fn lock_file(&self, m: &M, file: &File) -> impl Future<Output = ()>;
    /// `stat` of a name that does not exist, for which all ask who ask in this directory.
    fn stat_missing(&self, m: &M, dir: DirId) -> impl Future<Output = ()>;
    /// `statfs`.
    fn statfs(&self, m: &M) -> impl Future<Output = ()>;
}
