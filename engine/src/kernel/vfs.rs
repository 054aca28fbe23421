//! Rules of the VFS.

use super::choice::choice;

choice! {
    /// What one `inode_hash_lock` guards.
    pub enum InodeHash {
        /// All chains.
        Global = "global",
        /// One chain.
        PerChain = "per-chain",
    }
}

choice! {
    /// How the inode hash is looked at for an inode that is to come into memory (`iget_locked`, `iget5_locked`).
    pub enum InodeLookup {
        /// Under `inode_hash_lock` (before 6.11).
        Locked = "locked",
        /// Under RCU.
        Rcu = "rcu",
    }
}

choice! {
    /// How many lists of inodes a superblock has.
    pub enum InodeList {
        /// One, under `s_inode_list_lock`.
        Global = "global",
        /// One for each CPU.
        PerCpu = "per-cpu",
    }
}

choice! {
    /// How many lists of inodes SELinux keeps for a superblock while it has no policy (`isec_head`).
    pub enum IsecList {
        /// None: no SELinux, or one with a policy.
        None = "none",
        /// One, under `isec_lock`.
        Global = "global",
        /// One for each CPU.
        PerCpu = "per-cpu",
    }
}

choice! {
    /// What one lock of lists of unused dentries guards.
    pub enum DentryLru {
        /// Those of all superblocks (`dcache_lru_lock`, before 3.12).
        Global = "global",
        /// Those of a superblock on one node (`list_lru`).
        PerNode = "per-node",
    }
}

choice! {
    /// How the count of a dentry's references is changed (`lockref`).
    pub enum DentryRef {
        /// Under `d_lock` (before 3.12).
        Locked = "locked",
        /// By compare-and-exchange, with a pause before each new attempt.
        Relaxed = "relaxed",
        /// The same, and after a hundred attempts under `d_lock` (since 5.2).
        Limited = "limited",
        /// The same without the pause (since 6.2).
        Immediate = "immediate",
    }
}

choice! {
    /// Whether who reads writes `atime` (`relatime_need_update`).
    pub enum Atime {
        /// If it is not later than the last change.
        Relatime = "relatime",
        /// Never (the mount option `noatime`).
        Never = "noatime",
    }
}

choice! {
    /// How fine the times of inodes are.
    pub enum InodeClock {
        /// A tick.
        Tick = "tick",
        /// Exact for a change of an inode whose times somebody has asked for (since 6.13).
        AsAsked = "as-asked",
    }
}

choice! {
    /// What is in the cache line of `s_remove_count`.
    pub enum RemoveCount {
        /// There is no such count (before 3.3).
        None = "none",
        /// The count, and whether the filesystem is about to be read-only, which writers read.
        Counted = "counted",
        /// Also what owners are translated by when an inode is written (since 4.8).
        BesideOwner = "beside-owner",
        /// Which permissions are asked by, too (since 5.12).
        BesidePermission = "beside-permission",
        /// And what new dentries are given (since 6.7).
        BesideOperations = "beside-operations",
    }
}

choice! {
    /// What lies in the cache line of a dentry's count.
    pub enum DentryLine {
        /// The name from its ninth byte on, which walks read (before 6.11).
        WithName = "with-name",
        /// Nothing that walks read.
        Apart = "apart",
    }
}

choice! {
    /// What gives the names of a directory of tmpfs their offsets (`simple_offset_add`).
    pub enum DirectoryOffsets {
        /// Their order in memory (before 6.6).
        None = "none",
        /// An xarray.
        Xarray = "xarray",
        /// A maple tree (since 6.9).
        MapleTree = "maple-tree",
    }
}

choice! {
    /// How who lists a directory of tmpfs takes a reference of each name's dentry.
    pub enum CountsListed {
        /// Not at all (before 5.4).
        None = "none",
        /// Under `d_lock` of the directory and its own (`scan_positives`; since 6.14 `find_positive_dentry`).
        UnderParent = "under-parent",
        /// Under its own (`offset_find_next`, from 6.6 on).
        Alone = "alone",
    }
}

choice! {
    /// How a descriptor is given its file (`fd_install`).
    pub enum FdInstall {
        /// Under `file_lock` (before 4.2).
        Locked = "locked",
        /// Under RCU.
        Rcu = "rcu",
    }
}

choice! {
    /// How a free descriptor is looked for. `full_fds_bits` has a bit for each word of the bitmap of descriptors that is full.
    pub enum FdSearch {
        /// In the bitmap from the lowest that may be free (before 4.4).
        Bitmap = "bitmap",
        /// In `full_fds_bits` first, in which each `close` clears a bit (before 6.13).
        Cleared = "cleared",
        /// The same, but a `close` clears the bit only if it is set (posted in 2024).
        ClearedIfSet = "cleared-if-set",
        /// In the word of the lowest that may be free first, then so (since 6.13).
        WordFirst = "word-first",
    }
}

choice! {
    /// What the lock of lists of locked ranges guards (`posix_lock_inode`).
    pub enum PosixLocks {
        /// Those of all files (`lock_flocks`, before 3.11).
        Global = "global",
        /// Those of one file (`i_lock`, since 4.0 `flc_lock`).
        PerFile = "per-file",
    }
}

choice! {
    /// How a reference of an open file is taken (`__fget_files`).
    pub enum FileRef {
        /// By compare-and-exchange, tried until it succeeds (`atomic_long_inc_not_zero`, before 6.13).
        Exchanged = "exchanged",
        /// By an addition (`file_ref_get`, since 6.13).
        Added = "added",
    }
}

choice! {
    /// What is in the cache line of that count.
    pub enum FileLine {
        /// `f_op` and `f_inode` (before 6.5; 6.12 to 6.14).
        WithOperations = "with-operations",
        /// Nothing that calls read once they have the reference.
        Apart = "apart",
    }
}

choice! {
    /// Whom an unlock of a range wakes of those who wait for it (`locks_wake_up_blocks`).
    pub enum LockWakes {
        /// All (before 5.0).
        All = "all",
        /// One: each waits behind another that wants the same (since 5.0).
        One = "one",
    }
}

choice! {
    /// How `fstat` of the C library finds its file.
    pub enum FstatCall {
        /// By its descriptor: the call of glibc before 2.33, or the short cut of Linux 6.6 for the new one.
        Descriptor = "descriptor",
        /// By a walk along an empty path, which takes a reference: `newfstatat` of glibc 2.33, before 6.6.
        EmptyPath = "empty-path",
    }
}
