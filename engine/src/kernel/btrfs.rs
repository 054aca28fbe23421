//! Rules of btrfs.

use super::choice::choice;

choice! {
    /// What `tree_log_mutex`, which a commit holds until its superblocks are written, keeps from being done meanwhile.
    pub enum TreeLogMutex {
        /// The first fsync of the next transaction may not begin a log (before 5.11).
        LogStart = "log-start",
        /// A log's superblock may not be written.
        LogSuper = "log-super",
    }
}

choice! {
    /// Who computes the checksums of data that are written back and that nobody waits for, and submits them.
    pub enum DataSums {
        /// Workers, in the order in which they were queued (before 6.5).
        Workers = "workers",
        /// Who writes them back, where the CPU has an instruction for checksums.
        Submitter = "submitter",
    }
}

choice! {
    /// How often tree blocks are on the device, as `mkfs.btrfs` of the kernel's time makes it on one without seeks.
    pub enum MetadataProfile {
        /// Once (before 5.15).
        Single = "single",
        /// Twice.
        Dup = "dup",
    }
}

choice! {
    /// When the flusher writes tree blocks before the commit does (`btree_writepages`).
    pub enum BtreeWritepages {
        /// While too much is dirty, if that are 32 MiB of tree blocks at least (before 7.0).
        Many = "many",
        /// While too much is dirty, and when they are old.
        Any = "any",
    }
}

choice! {
    /// Where free space is kept on disk, as `mkfs.btrfs` and the mount options of the kernel's time have it.
    pub enum SpaceCache {
        /// In a file for each block group, which each commit that changes the group writes anew (before 5.15).
        Files = "files",
        /// In the free space tree, which changes with each delayed reference.
        Tree = "tree",
    }
}

choice! {
    /// From when on a rename keeps the log from being written (`btrfs_pin_log_trans`), until the new name is there.
    pub enum RenamePin {
        /// From before its first insertion on (before 5.15).
        First = "first",
        /// From after that, before the old name goes (5.15 to 5.17, and since 6.16).
        Inserted = "inserted",
        /// If the log has the old directory, from when it changes that (5.18).
        Joined = "joined",
    }
}

choice! {
    /// When an fsync commits the whole transaction because a rename has taken a name away that the log does not know.
    pub enum FullCommit {
        /// A directory above the file lost the name since the last commit that is over; and while such a commit is on its way, every
        /// fsync makes another (before 5.11).
        SinceCommitted = "since-committed",
        /// A directory above the file lost the name in the running transaction (5.11).
        Running = "running",
        /// The directory is itself to be logged, for the file was renamed too (since 5.12).
        Directory = "directory",
    }
}

choice! {
    /// What an fsync that logs only what has changed waits for.
    pub enum FsyncWait {
        /// Until the trees know of the data, as any other (before 5.10).
        Ordered = "ordered",
        /// Until the data are written.
        Writeback = "writeback",
    }
}

choice! {
    /// How direct writes of data with checksums are done.
    pub enum DirectWrite {
        /// From the caller's pages (before 6.15).
        Direct = "direct",
        /// Through the page cache.
        Buffered = "buffered",
    }
}

choice! {
    /// What a direct write that goes past the page cache holds.
    pub enum DioWrites {
        /// `i_mutex` for itself, until its data are on the device (before 3.9).
        Exclusive = "exclusive",
        /// The same, but not while the device works (before 5.11).
        Relocked = "relocked",
        /// `i_rwsem` shared.
        Shared = "shared",
        /// `i_rwsem` for itself, until its data are on the device; reads share it (since 6.8).
        ReadsShared = "reads-shared",
    }
}

choice! {
    /// With what handle an inode is marked dirty whose times or mode were changed (`btrfs_dirty_inode`).
    pub enum DirtyInode {
        /// With one that joins and reserves nothing (every release).
        Joins = "joins",
        /// With one that reserves room (posted in December 2020).
        Starts = "starts",
    }
}

choice! {
    /// When a commit that has to wait for the one before keeps out who starts a handle.
    pub enum CommitStart {
        /// At once (before 6.7).
        AtOnce = "at-once",
        /// When that one is over.
        AfterPrevious = "after-previous",
    }
}

choice! {
    /// Of several tasks that want a commit, who runs delayed references before it begins, and what the others wait for.
    pub enum CommitFlush {
        /// Each; they wait until the commit is over (before 5.12).
        Each = "each",
        /// The first; they wait for the superblocks only.
        First = "first",
    }
}

choice! {
    /// How checksums are put into the log.
    pub enum LogCsums {
        /// Those of the same range are deleted before, under a lock of the range (before 5.9).
        Replace = "replace",
        /// They are inserted; others can be there only if extents are shared.
        Insert = "insert",
    }
}

choice! {
    /// What reclaiming the first page of an extent does to the next fsync of its file.
    pub enum ExtentMapRelease {
        /// The extent's map goes, and all that the transaction has of the file is logged anew (before 5.9).
        FullSync = "full-sync",
        /// Nothing: of maps only those of past transactions go.
        OldMaps = "old-maps",
    }
}

choice! {
    /// How an inode is logged.
    pub enum LogInode {
        /// Without looking whether the log has it: a new one is deleted before, another is inserted. What is copied is copied under
        /// the lock of the subvolume's leaf (before 5.16).
        LeafHeld = "leaf-held",
        /// After looking, and still under the leaf's lock.
        Known = "known",
        /// From a clone of the leaf (since 6.2).
        LeafCloned = "leaf-cloned",
    }
}

choice! {
    /// Whether the log has an inode, of which only memory says so (`inode_logged`).
    pub enum InodeLogged {
        /// If memory says so (before 5.3).
        Remembered = "remembered",
        /// Also if the transaction has changed an inode that must be logged in full: it may have been logged, dropped from memory and read again (since 5.3).
        Assumed = "assumed",
        /// The same of inodes that were never logged (since 5.15).
        AssumedIfNever = "assumed-if-never",
        /// Of an inode that was never logged the log is asked, once (since 5.18).
        Searched = "searched",
    }
}

choice! {
    /// How a directory is logged.
    pub enum LogDirectory {
        /// Its entries by hash and by index, one after the other, each looked for in the log before it is inserted (before 5.16).
        Each = "each",
        /// The same in batches, unless the log has the directory already.
        Batches = "batches",
        /// Only its entries by index (since 5.17).
        Indices = "indices",
        /// Of these only what is new in the transaction or since the log has the directory (since 5.18).
        New = "new",
        /// What is delayed is copied from memory, and does not go into the subvolume's tree before (since 6.1).
        Delayed = "delayed",
    }
}

choice! {
    /// How a search makes the locks of its path spinning again when it need no longer sleep (`btrfs_clear_path_blocking`).
    pub enum PathClearing {
        /// One after the other, from the root down (to 3.15).
        InPlace = "in-place",
        /// The same, after those that spin were made blocking as well, since fair rwlocks would deadlock otherwise (3.16 to 4.19).
        BlockingFirst = "blocking-first",
        /// Not at all: what is blocking stays so (since 4.20).
        Never = "never",
    }
}

choice! {
    /// When what is delayed is begun, for the room that it holds reserved.
    pub enum MetadataReclaim {
        /// When there is none left (before 5.12).
        OnDemand = "on-demand",
        /// When half of it is promised.
        Preemptive = "preemptive",
    }
}

choice! {
    /// What who finds no room for metadata does.
    pub enum Reserving {
        /// He does what is delayed, and others wait for him (before 4.8).
        Own = "own",
        /// He queues a ticket, which a worker grants.
        Tickets = "tickets",
    }
}

choice! {
    /// When a write in place asks whether its extent is shared.
    pub enum NocowCheck {
        /// With the leaf of the file's extent locked (before 5.11).
        PathHeld = "path-held",
        /// After it is unlocked.
        PathReleased = "path-released",
    }
}

choice! {
    /// What lies in the cache line of a space_info's lock.
    pub enum SpaceInfoLine {
        /// What is promised of its room, which every reservation changes (before 6.16).
        WithUse = "with-use",
        /// Only what changes seldom.
        Apart = "apart",
    }
}

choice! {
    /// In what a subvolume's inodes are found that are in memory.
    pub enum InodeIndex {
        /// A red-black tree of nodes in the inodes (before 6.11).
        Tree = "tree",
        /// An xarray.
        Xarray = "xarray",
    }
}
