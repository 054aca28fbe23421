//! What a buffered write reserves for what the flusher will do (`fs/btrfs/delalloc-space.c`; `btrfs_buffered_write`, `btrfs_dirty_pages` of
//! `file.c`): room for the data and for the items of their extent, before the copy. Pages that were dirty have both already, which is
//! given back. An inode is on its root's list while it has dirty pages.
//!
//! Left out: writes of several pages before 6.15 reserve once for all (here as well), since then once a folio; extents that are split or merged.

use super::reservations::Reservations;
use crate::filesystems::costs::Costs;
use crate::waist::{Access, Account, LineId, LockId, Machine, Side, Time};

/// The data's space_info, and the list of a root's inodes with dirty pages.
pub struct Delalloc {
    data: Reservations,
    delalloc_lock: LockId,
    list: LineId,
    list_time: Time,
}

/// What was dirty of a range that is written, and of its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasDirty {
    /// The range.
    pub range: bool,
    /// Other pages of the inode.
    pub others: bool,
}

impl Delalloc {
    /// No page is dirty; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            data: Reservations::of_data(m, costs)?,
            delalloc_lock: m.new_lock(m.class("btrfs.delalloc_lock", "btrfs.delalloc_lock")),
            list: m.new_line(1),
            list_time: costs.sum(&["delalloc_list"])?,
        })
    }

    /// `btrfs_check_data_free_space`, `btrfs_delalloc_reserve_metadata`.
    pub async fn reserve<M: Machine>(&self, m: &M, metadata: &Reservations) {
        self.data.reserve(m).await;
        metadata.reserve(m).await;
    }

    /// `btrfs_dirty_pages`: the old accounting goes (`btrfs_clear_delalloc_extent`), the new one comes (`btrfs_set_delalloc_extent`).
    pub async fn dirty<M: Machine>(&self, m: &M, metadata: &Reservations, was: WasDirty) {
        if was.range {
            metadata.release(m).await;
            self.data.release(m).await;
        }
        for _ in 0..self.list_changes(was) {
            m.lock(self.delalloc_lock, Side::Write).await;
            m.touch(self.list, Access::Write);
            m.run(Account::System, self.list_time).await;
            m.unlock(self.delalloc_lock, Side::Write).await;
        }
    }

    /// How often the inode leaves the list or comes to it.
    fn list_changes(&self, was: WasDirty) -> u32 {
        match was {
            WasDirty { others: true, .. } => 0,
            WasDirty { range: true, .. } => 2,
            _ => 1,
        }
    }

    /// How long all that takes, which traced writes have in their time.
    pub fn time(&self, metadata: &Reservations, was: WasDirty) -> Time {
        let reserved = self.data.reserve_time + metadata.reserve_time;
        let given_back = if was.range { self.data.release_time + metadata.release_time } else { 0 };
        reserved + given_back + self.list_time * Time::from(self.list_changes(was))
    }
}
