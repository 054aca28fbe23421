//! The words of a mix: its operations, and the files that they are done on.

/// One operation, as scenarios name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A new file: `open(O_CREAT|O_EXCL)`, perhaps a write, `close`.
    Create,
    /// `open` for reading, and `close`.
    Open,
    /// `open` for reading and writing, and `close`.
    OpenRdwr,
    /// `open(O_CREAT)` of a file that is there, and `close`.
    OpenCreat,
    /// `read`.
    Read,
    /// `write` of new pages at the end.
    Append,
    /// `write` over pages that are there.
    Overwrite,
    /// `fallocate` behind the last block.
    Fallocate,
    /// `ftruncate` to nothing.
    Truncate,
    /// `ftruncate` to some bytes less.
    Shorten,
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `fsync` of the file's directory.
    FsyncDir,
    /// `unlink`.
    Unlink,
    /// `link`: another name that is free, in the same directory.
    Link,
    /// A new file with the data of another (`cp --reflink`): `open(O_CREAT|O_EXCL)`, `ioctl(FICLONE)`, `close`.
    Reflink,
    /// `rename` to a name that is free.
    Rename,
    /// `rename` to a name that is free in another directory.
    Move,
    /// `mkdir` in one of the directories.
    Mkdir,
    /// `rmdir` of a directory that `mkdir` has made.
    Rmdir,
    /// `stat` of such a directory.
    StatDir,
    /// `stat`.
    Stat,
    /// `stat` of a name that is not there.
    StatMissing,
    /// `fstat`.
    Fstat,
    /// `statfs`.
    Statfs,
    /// `utimes`.
    Utimes,
    /// `chmod`.
    Chmod,
    /// `chown`.
    Chown,
    /// `ioctl(FS_IOC_FIEMAP)` of the whole file.
    Fiemap,
    /// `opendir`, `readdir`, `closedir`.
    Readdir,
    /// Reads the next name of a directory and `stat`s the file, which is not in memory.
    Walk,
    /// `fcntl(F_SETLK)`.
    Lock,
    /// `ioctl(XFS_IOC_BULKSTAT)`, an inode of it.
    Bulkstat,
    /// `lseek` to a place.
    Lseek,
    /// `lseek(SEEK_HOLE)`.
    SeekHole,
    /// `syncfs`.
    Sync,
    /// The unlock of it.
    Unlock,
    /// `fcntl(F_SETLKW)` of the whole file, and its unlock.
    LockFile,
    /// `dup`, and the `close` of what it gives.
    Dup,
}

/// All operations by name.
pub const ACTS: [(&str, Act); 39] = [
    ("create", Act::Create),
    ("open", Act::Open),
    ("open_rdwr", Act::OpenRdwr),
    ("open_creat", Act::OpenCreat),
    ("read", Act::Read),
    ("append", Act::Append),
    ("overwrite", Act::Overwrite),
    ("fallocate", Act::Fallocate),
    ("truncate", Act::Truncate),
    ("shorten", Act::Shorten),
    ("fsync", Act::Fsync),
    ("fdatasync", Act::Fdatasync),
    ("fsync_dir", Act::FsyncDir),
    ("unlink", Act::Unlink),
    ("link", Act::Link),
    ("reflink", Act::Reflink),
    ("rename", Act::Rename),
    ("move", Act::Move),
    ("mkdir", Act::Mkdir),
    ("rmdir", Act::Rmdir),
    ("stat_dir", Act::StatDir),
    ("stat", Act::Stat),
    ("stat_missing", Act::StatMissing),
    ("fstat", Act::Fstat),
    ("statfs", Act::Statfs),
    ("utimes", Act::Utimes),
    ("chmod", Act::Chmod),
    ("chown", Act::Chown),
    ("fiemap", Act::Fiemap),
    ("readdir", Act::Readdir),
    ("walk", Act::Walk),
    ("bulkstat", Act::Bulkstat),
    ("lseek", Act::Lseek),
    ("seek_hole", Act::SeekHole),
    ("sync", Act::Sync),
    ("lock", Act::Lock),
    ("unlock", Act::Unlock),
    ("lock_file", Act::LockFile),
    ("dup", Act::Dup),
];

impl Act {
    /// By its name; the error lists what there is.
    pub fn named(name: &str) -> Result<(&'static str, Self), String> {
        let known = || ACTS.map(|(name, _)| name).join(", ");
        ACTS.into_iter()
            .find(|(n, _)| *n == name)
            .ok_or_else(|| format!("unknown operation '{name}'; known: {}", known()))
    }
}

/// Which file an operation is done on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Any, all alike.
    Any,
    /// The one that was written to last.
    Written,
    /// The one that was made last.
    Made,
    /// The one that was synced last.
    Synced,
    /// The one that was read last.
    Read,
    /// The first of the set.
    First,
    /// The last of the set.
    Last,
    /// The next as `rm -r` takes them: directory by directory, in the order in which they were made.
    Next,
}

impl Which {
    /// By the word of a scenario; the error lists them.
    pub fn named(word: &str) -> Result<Self, String> {
        let words = [
            ("any", Self::Any),
            ("written", Self::Written),
            ("made", Self::Made),
            ("synced", Self::Synced),
            ("read", Self::Read),
            ("first", Self::First),
            ("last", Self::Last),
            ("next", Self::Next),
        ];
        let found = words.into_iter().find(|(name, _)| *name == word);
        found
            .map(|(_, which)| which)
            .ok_or_else(|| format!("on: {word} is not one of {}", words.map(|(name, _)| name).join(", ")))
    }
}
