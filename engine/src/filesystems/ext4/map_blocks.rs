//! Which blocks a file has: `ext4_map_blocks` and `ext4_da_map_blocks`, and the two locks of an inode around that.
//!
//! `i_data_sem` guards the tree of extents: shared by who looks, exclusive for who changes it. Since 3.9 who looks asks the tree of
//! extents in memory first, under `i_es_lock`, and takes `i_data_sem` only for what is not there. Here all blocks of a file are in that
//! tree once it was written to (its shrinker is not modelled). Block allocation, conversion and truncation nest inside `i_data_sem`,
//! which is taken within a handle.

use super::journal::Block;
use super::Ext4;
use crate::cost_table;
use crate::filesystems::calls::new_pages;
use crate::filesystems::costs::Costs;
use crate::filesystems::BLOCK;
use crate::kernel::ext4::{CommittedCheck, DelayedInsert};
use crate::kernel::Rules;
use crate::waist::Machine;
use crate::waist::{Account, ClassId, LockId, Side, Time};

cost_table!(MapCosts {
    reserve: ["tmp_short.ext4_da_reserve_space"],
    update_reserve: ["writepages.update_reserve"],
    find: ["mballoc.map_blocks"],
    insert: ["mballoc.insert_extent"],
    remove_space: ["mballoc.remove_space"],
});

/// The locks of one inode.
#[derive(Clone, Copy)]
pub(super) struct ExtentLocks {
    i_data_sem: LockId,
    es_lock: LockId,
}

/// Their classes, times under them, and what kernels do.
pub(super) struct MapBlocks {
    classes: (ClassId, ClassId),
    costs: MapCosts,
    rules: Rules,
}

impl MapBlocks {
    /// From the cost tables.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let classes = (m.class("ext4.i_data_sem", "ext4.i_data_sem"), m.class("ext4.i_es_lock", "ext4.i_es_lock"));
        Ok(Self { classes, costs: MapCosts::new(costs)?, rules: costs.rules() })
    }

    /// Those of a new inode.
    pub fn locks<M: Machine>(&self, m: &M) -> ExtentLocks {
        ExtentLocks { i_data_sem: m.new_lock(self.classes.0), es_lock: m.new_lock(self.classes.1) }
    }

    /// CPU time under `i_data_sem` before and after an extent is changed.
    pub fn times(&self) -> (Time, Time) {
        (self.costs.find, self.costs.insert)
    }

    /// The same where blocks are allocated for what was reserved.
    pub fn reserved_times(&self) -> (Time, Time) {
        (self.costs.find, self.costs.insert + self.costs.update_reserve)
    }

    /// The part of a buffered write to a new page that is under `i_data_sem`.
    pub fn reserving(&self) -> Time {
        self.costs.reserve
    }

    /// The way through the tree of extents, of which each change is told with its own.
    pub fn find(&self) -> Time {
        self.costs.find
    }
}

impl ExtentLocks {
    /// An inode goes.
    pub fn drop<M: Machine>(self, m: &M) {
        m.drop_lock(self.i_data_sem);
        m.drop_lock(self.es_lock);
    }

    /// The tree in memory is looked at or changed.
    async fn extent_status<M: Machine>(self, m: &M, side: Side) {
        m.lock(self.es_lock, side).await;
        m.unlock(self.es_lock, side).await;
    }
}

impl Ext4 {
    fn extent_locks(&self, slot: u32) -> ExtentLocks {
        self.files.borrow().slots[slot as usize].extents
    }

    /// `ext4_map_blocks` of blocks that are there, which takes so long.
    pub(super) async fn look_up_blocks<M: Machine>(&self, m: &M, slot: u32, time: Time) {
        let locks = self.extent_locks(slot);
        let lock = if self.map.rules.extent_status { locks.es_lock } else { locks.i_data_sem };
        m.lock(lock, Side::Read).await;
        self.info.count_lookup(m);
        m.run(Account::System, time).await;
        m.unlock(lock, Side::Read).await;
    }

    /// `ext4_set_iomap`: what was found is told, and whether the inode has changes that are not on disk (`ext4_inode_datasync_dirty`).
    pub(super) async fn set_iomap<M: Machine>(&self, m: &M, direct: bool) {
        let check = self.map.rules.committed_check;
        if self.journal.on && (check == CommittedCheck::Locked || (direct && check == CommittedCheck::Direct)) {
            self.journal.asks_committed(m).await;
        }
    }

    /// `ext4_map_blocks` until the tree of extents is changed. `known`: the tree in memory says that there is nothing, or what there is.
    pub(super) async fn lock_extents<M: Machine>(&self, m: &M, slot: u32, known: bool) {
        let locks = self.extent_locks(slot);
        if self.map.rules.extent_status {
            locks.extent_status(m, Side::Read).await;
        }
        if !(known && self.map.rules.extent_status) {
            self.query_blocks(m, locks).await;
        }
        m.lock(locks.i_data_sem, Side::Write).await;
        m.run(Account::System, self.map.costs.find).await;
    }

    /// The rest: what was changed is put into the tree in memory (`ext4_es_insert_extent`).
    pub(super) async fn unlock_extents<M: Machine>(&self, m: &M, slot: u32, time: Time) {
        let locks = self.extent_locks(slot);
        m.run(Account::System, time).await;
        if self.map.rules.extent_status {
            locks.extent_status(m, Side::Write).await;
        }
        m.unlock(locks.i_data_sem, Side::Write).await;
    }

    /// A known extent is split or converted: so long under `i_data_sem`, and so long after it.
    pub(super) async fn change_extent<M: Machine>(&self, m: &M, slot: u32, (under, rest): (Time, Time)) {
        self.lock_extents(m, slot, true).await;
        self.unlock_extents(m, slot, under.saturating_sub(self.map.costs.find)).await;
        m.run(Account::System, rest).await;
    }

    /// The tree of extents is asked what is there (`ext4_map_query_blocks`), and what it says is kept in memory.
    async fn query_blocks<M: Machine>(&self, m: &M, locks: ExtentLocks) {
        m.lock(locks.i_data_sem, Side::Read).await;
        if self.map.rules.extent_status {
            locks.extent_status(m, Side::Write).await;
        }
        m.unlock(locks.i_data_sem, Side::Read).await;
    }

    /// `ext4_update_i_disksize`, and what else changes sizes: `i_data_sem` for a few stores.
    pub(super) async fn update_disksize<M: Machine>(&self, m: &M, slot: u32) {
        let locks = self.extent_locks(slot);
        m.lock(locks.i_data_sem, Side::Write).await;
        m.unlock(locks.i_data_sem, Side::Write).await;
    }

    /// `ext4_da_map_blocks` for each new page of a buffered write to a file of this size: the tree in memory does not know of the first
    /// page what is there, and finds that nothing is there behind it.
    pub(super) async fn delay_blocks<M: Machine>(&self, m: &M, slot: u32, size: u64, bytes: u32) {
        let (locks, status) = (self.extent_locks(slot), self.map.rules.extent_status);
        for page in 0..new_pages(size, bytes) {
            if status {
                locks.extent_status(m, Side::Read).await;
            }
            let known = status && size.div_ceil(u64::from(BLOCK)) + page > 0;
            match self.map.rules.delayed_insert {
                DelayedInsert::Shared => self.insert_delayed(m, locks, Side::Read).await,
                DelayedInsert::Exclusive => {
                    if !known {
                        self.query_blocks(m, locks).await;
                    }
                    self.insert_delayed(m, locks, Side::Write).await;
                }
            }
        }
    }

    /// `ext4_insert_delayed_block`: room is reserved, and the page is in the tree in memory. With the lock exclusive the tree is looked at
    /// once more.
    async fn insert_delayed<M: Machine>(&self, m: &M, locks: ExtentLocks, side: Side) {
        m.lock(locks.i_data_sem, side).await;
        if self.map.rules.extent_status && side == Side::Write {
            locks.extent_status(m, Side::Read).await;
        }
        m.run(Account::System, self.map.costs.reserve).await;
        if self.map.rules.extent_status {
            locks.extent_status(m, Side::Write).await;
        }
        m.unlock(locks.i_data_sem, side).await;
    }

    /// `ext4_release_file` of the last writer: `ext4_discard_preallocations`, unless pages of the file are still to get blocks.
    pub(super) async fn discard_preallocations<M: Machine>(&self, m: &M, slot: u32) {
        if !self.fsync.dirty.has_new(slot) {
            self.update_disksize(m, slot).await;
        }
    }

    /// `ext4_truncate` of a file that has blocks: of so many at its end; returns what that changes.
    pub(super) async fn remove_space<M: Machine>(&self, m: &M, slot: u32, transaction: u64, blocks: u64) -> Vec<Block> {
        let locks = self.extent_locks(slot);
        m.lock(locks.i_data_sem, Side::Write).await;
        if self.map.rules.extent_status {
            locks.extent_status(m, Side::Write).await;
        }
        m.run(Account::System, self.map.costs.remove_space).await;
        let changed = self.free_file_blocks(m, slot, transaction, blocks).await;
        m.unlock(locks.i_data_sem, Side::Write).await;
        changed
    }
}
