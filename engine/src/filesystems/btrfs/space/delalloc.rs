//! What a buffered write reserves for what the flusher will do (`fs/btrfs/delalloc-space.c`; `btrfs_buffered_write`, `btrfs_dirty_pages` of
//! `file.c`): room for the data and for the items of their extent, before the copy. Pages that were dirty have both already, which is
//! given back, and so is the extent of pages beside dirty ones, which becomes one with theirs. An inode is on its root's list while it has
//! dirty pages.
//!
//! Left out: what the flusher and evictions give back, direct writes, extents that do not meet the dirty ones, and that since 6.15 a large
//! write reserves folio by folio.

use super::reservations::Reservations;
use crate::filesystems::costs::Costs;
use crate::waist::{Access, Account, LineId, LockId, Machine, Side, Time};

/// The list of a root's inodes with dirty pages.
pub struct Delalloc {
    lock: LockId,
    list: LineId,
    list_time: Time,
    /// A write before the end of its file asks whether there is an extent (`btrfs_find_new_delalloc_bytes`).
    pub finds_new_bytes: bool,
}

/// What was dirty of a range that is written, and of its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasDirty {
    /// The range.
    pub range: bool,
    /// Other pages of the inode.
    pub others: bool,
}

impl WasDirty {
    /// How often the inode leaves the list or comes to it.
    fn list_changes(self) -> u32 {
        match self {
            Self { others: true, .. } => 0,
            Self { range: true, .. } => 2,
            _ => 1,
        }
    }

    /// Whether the new extent is one that there was.
    fn has_extent(self) -> bool {
        self.range || self.others
    }
}

impl Delalloc {
    /// No page is dirty; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            lock: m.new_lock(m.class("btrfs.delalloc_lock", "btrfs.delalloc_lock")),
            list: m.new_line("btrfs.delalloc_inodes", 1),
            list_time: costs.sum(&["delalloc_list"])?,
            finds_new_bytes: costs.rules().finds_new_bytes,
        })
    }

    /// Those of another subvolume.
    pub fn another<M: Machine>(&self, m: &M) -> Self {
        let lock = m.new_lock(m.class("btrfs.delalloc_lock", "btrfs.delalloc_lock"));
        Self { lock, list: m.new_line("btrfs.delalloc_inodes", 1), ..*self }
    }

    /// `btrfs_check_data_free_space`, `btrfs_delalloc_reserve_metadata`.
    pub async fn reserve<M: Machine>(&self, m: &M, room: &Reservations) {
        room.change_data(m).await;
        room.reserve(m).await;
    }

    /// `btrfs_dirty_pages`: the old accounting goes (`btrfs_clear_delalloc_extent`), the new one comes (`btrfs_set_delalloc_extent`); then
    /// `btrfs_delalloc_release_extents`.
    pub async fn dirty<M: Machine>(&self, m: &M, room: &Reservations, was: WasDirty) {
        room.count_delalloc(m);
        if was.range {
            room.change_data(m).await;
        }
        for _ in 0..was.list_changes() {
            m.lock(self.lock, Side::Write).await;
            m.touch(self.list, Access::Write);
            m.run(Account::System, self.list_time).await;
            m.unlock(self.lock, Side::Write).await;
        }
        if was.has_extent() {
            room.release(m).await;
        }
    }

    /// How long all that takes, which traced writes have in their time.
    pub fn time(&self, room: &Reservations, was: WasDirty) -> Time {
        let data = room.release_time * (1 + Time::from(was.range));
        let metadata = room.reserve_time + room.release_time * Time::from(was.has_extent());
        data + metadata + self.list_time * Time::from(was.list_changes())
    }
}
