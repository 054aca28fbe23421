//! Rules of ext4.

use super::choice::choice;

choice! {
    /// How far a commit goes through the oldest checkpoint list (`__jbd2_journal_clean_checkpoint_list`).
    pub enum CheckpointScan {
        /// To the first buffer that is not written to its place.
        Stops = "stops",
        /// Through all (6.5).
        All = "all",
    }
}

choice! {
    /// What a direct write holds.
    pub enum DioWrites {
        /// `i_rwsem` for itself, until the data are on the device.
        Exclusive = "exclusive",
        /// The same, but not while the device works.
        Relocked = "relocked",
        /// `i_rwsem` shared.
        Shared = "shared",
    }
}

choice! {
    /// What a direct read holds.
    pub enum DioReads {
        /// `i_rwsem` for itself, until its request is submitted.
        Exclusive = "exclusive",
        /// Nothing.
        Unlocked = "unlocked",
        /// `i_rwsem` shared, until its end.
        Shared = "shared",
    }
}

choice! {
    /// What a direct write of part of a block holds, and waits for.
    pub enum DioUnaligned {
        /// The same as others; an asynchronous one keeps `i_rwsem` until it is submitted, also where others give it back.
        AsyncKeeps = "async-keeps",
        /// An asynchronous one has the file for itself, waits for what is under way and for its own end.
        AsyncWaits = "async-waits",
        /// So has any.
        Exclusive = "exclusive",
        /// So has one in blocks that were not written; others share the file.
        Shared = "shared",
    }
}

choice! {
    /// What a direct write into allocated blocks that were not written holds.
    pub enum DioUnwritten {
        /// `i_rwsem` for itself.
        Exclusive = "exclusive",
        /// `i_rwsem` as other writes.
        Shared = "shared",
    }
}

choice! {
    /// What of an unwritten extent a direct write goes to is split off, and when.
    pub enum DioSplit {
        /// Its blocks, before the write, in a journal handle.
        Before = "before",
        /// Its blocks, after the write; yet a handle is started before it.
        After = "after",
        /// Its blocks, after the write, in the handle that converts them. There is no other.
        AfterOnly = "after-only",
    }
}

choice! {
    /// How a page that has no block yet is put into the tree of extents in memory (`ext4_da_map_blocks`).
    pub enum DelayedInsert {
        /// With `i_data_sem` shared.
        Shared = "shared",
        /// With `i_data_sem` for itself.
        Exclusive = "exclusive",
    }
}

choice! {
    /// What a request for blocks does where another has the lock of a group.
    pub enum BusyGroups {
        /// It waits.
        Wait = "wait",
        /// It goes on to the next group, unless none has what it wants.
        Skip = "skip",
    }
}

choice! {
    /// Where requests of files of more than 16 blocks begin to search.
    pub enum StreamGoal {
        /// In one group for all, read and written under `s_md_lock`.
        Locked = "locked",
        /// The same without a lock.
        Single = "single",
        /// One for each CPU, by inode.
        Several = "several",
    }
}

choice! {
    /// What is done under `s_md_lock` for an extent that is freed.
    pub enum FreedExtents {
        /// It is counted and listed, and neighbours that it is merged with leave the list; at the commit it is counted again.
        Listed = "listed",
        /// It is not counted.
        CounterApart = "counter-apart",
        /// It is listed only if it has no neighbour to grow.
        MergedFirst = "merged-first",
    }
}

choice! {
    /// Who asks the journal, when blocks are mapped, whether the transaction of the inode's last change is over.
    pub enum CommittedCheck {
        /// Nobody.
        Nobody = "nobody",
        /// Direct reads and writes, under `j_state_lock`.
        Direct = "direct",
        /// They and `fiemap`, under `j_state_lock`.
        Locked = "locked",
        /// They and `fiemap`, by one number without a lock.
        Lockless = "lockless",
    }
}

choice! {
    /// The largest part of the log that a transaction may have.
    pub enum TransactionSize {
        /// A quarter.
        Quarter = "quarter",
        /// A third.
        Third = "third",
    }
}

choice! {
    /// Where lookups of extents in memory are counted (`es_stats_cache_hits`).
    pub enum EsStats {
        /// Nowhere.
        Nowhere = "nowhere",
        /// In one word for all.
        Shared = "shared",
        /// In a `percpu_counter`.
        PerCpu = "per-cpu",
    }
}
