//! Rules of ext4.

use super::choice::choice;

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
