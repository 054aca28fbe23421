//! `fallocate` and `ftruncate`: blocks without data, and a file without blocks.

use super::journal::{credits, Block};
use super::unjournaled::shorten;
use super::Ext4;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::{File, NoSpace, BLOCK};
use crate::kernel::Rules;
use crate::waist::Account;
use crate::waist::Machine;

cost_table!(PreallocateCosts {
    handle: ["cu_short.jbd2_handle_start", "cu_short.jbd2_handle_stop"],
    insert: ["mballoc.insert_extent"],
    mark_dirty: ["cu_short.ext4_mark_inode_dirty_3"],
    orphan: ["cu_short.ext4_mark_inode_dirty_7", "cu_short.ext4_mark_inode_dirty_8"],
    dirty_inode: ["cu_short.jbd2_handle_start", "cu_short.jbd2_handle_stop", "cu_short.ext4_mark_inode_dirty_2"],
});

/// How often who finds no blocks has a transaction committed that has freed some (`ext4_should_retry_alloc`).
const RETRIES: u32 = 3;

/// Their costs.
pub(super) struct Preallocate(PreallocateCosts, Rules);

impl Preallocate {
    /// From the cost tables.
    pub fn new(costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self(PreallocateCosts::new(costs)?, costs.rules()))
    }
}

impl Ext4 {
    /// `ext4_alloc_file_blocks` of so many bytes behind a file's last block: unwritten extents, a handle each.
    pub(super) async fn alloc_file_blocks<M: Machine>(&self, m: &M, slot: u32, bytes: u32) -> Result<(), NoSpace> {
        let (mut left, mut retries) = (bytes.div_ceil(BLOCK).max(1), 0);
        while left > 0 {
            match self.preallocate_extent(m, slot, left).await {
                Ok(count) => left -= count,
                Err(_) if self.mballoc.awaits_commit() && retries < RETRIES => {
                    retries += 1;
                    self.journal.force_commit(m).await;
                }
                Err(full) => return Err(full),
            }
        }
        Ok(())
    }

    /// One handle, and one extent of at most so many blocks; how many they are.
    async fn preallocate_extent<M: Machine>(&self, m: &M, slot: u32, most: u32) -> Result<u32, NoSpace> {
        let c = &self.preallocate.0;
        let handle = self.journal.start(m, credits::EXTENT).await;
        m.run(Account::System, c.handle).await;
        let near = self.goal_group(slot);
        self.lock_extents(m, slot, self.mballoc.has_blocks(slot)).await;
        let found = self.mballoc.new_blocks(m, slot, near, most).await;
        if let Ok(extent) = found {
            self.mballoc.append(slot, extent);
        }
        self.unlock_extents(m, slot, if found.is_ok() { c.insert } else { 0 }).await;
        let changed = match found {
            Ok(extent) => {
                self.update_disksize(m, slot).await;
                m.run(Account::System, c.mark_dirty).await;
                self.block_bitmap(extent.group).to_vec()
            }
            Err(_) => Vec::new(),
        };
        self.stop(m, handle, slot, &changed).await;
        found.map(|extent| extent.count)
    }

    /// `ftruncate` to nothing, or to so many bytes less: `ext4_setattr` puts the inode onto the list of orphans, `ext4_truncate` frees
    /// its blocks and takes it off. Then the new times take a handle of their own. Where the size stays, only `ext4_truncate` is called.
    pub(super) async fn truncate_file<M: Machine>(&self, m: &M, file: &File, less: Option<u32>) {
        let (c, slot) = (&self.preallocate.0, file.inode);
        let (mut orphan_time, mut handle_time) = (c.orphan, c.handle);
        shorten(self.unjournaled.less.truncate, [&mut orphan_time, &mut handle_time]);
        let inode = self.files.borrow().slots[slot as usize].inode;
        let nameless = self.sb.calls.are_nameless(m.task()); // on the list since they lost their names (i_orphan, i_nlink)
        let shrinks = less.is_some() || !self.is_empty(file);
        if shrinks {
            let listed = self.files.borrow().slots[slot as usize].ordered;
            self.journal.begin_ordered_truncate(m, listed).await;
            let handle = self.journal.start(m, credits::INODE).await;
            let orphan = if nameless { None } else { self.add_orphan(m, inode, orphan_time).await };
            self.update_disksize(m, slot).await;
            self.stop_after(m, handle, slot, orphan.as_slice(), handle_time).await;
        }
        let blocks = self.drop_data(slot, less);
        self.storage.writeback.truncated(m, slot, self.fsync.dirty.pages(slot)).await;
        if less.is_none() {
            self.sb.calls.drop_pages(m, file).await; // the steps have the first one
        }
        let handle = self.journal.start(m, credits::EVICT).await;
        let added = if shrinks || nameless { None } else { self.add_orphan(m, inode, orphan_time).await };
        if less.is_some_and(|bytes| bytes % BLOCK > 0) {
            let listed = self.files.borrow().slots[slot as usize].ordered;
            let filed = self.journal.file_inode(m, listed, self.preallocate.1.ordered_range).await; // ext4_block_truncate_page
            self.files.borrow_mut().slots[slot as usize].ordered = filed;
        }
        self.tables.use_block(m, inode, handle_time).await; // ext4_ext_truncate marks the inode dirty before, ext4_truncate after
        let changed = self.remove_space(m, slot, handle.transaction(), blocks).await;
        let orphan = if nameless { None } else { self.delete_orphan(m, inode, orphan_time).await };
        self.stop(m, handle, slot, &[&changed[..], added.as_slice(), orphan.as_slice()].concat()).await;
        self.emptied(slot, less.is_none());
        self.mark_dirty(slot);
        self.change_inode(m, slot, c.dirty_inode).await; // mark_inode_dirty at the end of ext4_setattr
    }

    fn emptied(&self, slot: u32, emptied: bool) {
        let slot = &mut self.files.borrow_mut().slots[slot as usize];
        slot.truncated |= emptied;
        slot.emptied |= emptied;
    }

    /// Nothing has come into it since it was truncated to nothing.
    fn is_empty(&self, file: &File) -> bool {
        let slot = file.inode;
        let emptied = self.files.borrow().slots[slot as usize].emptied;
        emptied
            && !self.mballoc.has_blocks(slot)
            && self.fsync.dirty.pages(slot) == 0
            && self.sb.calls.written(file) == 0
    }

    /// Data behind the end are forgotten (`truncate_pagecache`); how many blocks are to be freed.
    fn drop_data(&self, slot: u32, less: Option<u32>) -> u64 {
        let Some(bytes) = less else {
            self.fsync.dirty.forget(slot);
            self.mballoc.forget_written(slot);
            return u64::MAX;
        };
        let given = self.mballoc.blocks(slot);
        let blocks = given.min(u64::from(bytes / BLOCK));
        if blocks == given {
            self.fsync.dirty.shorten(slot, bytes - blocks as u32 * BLOCK);
        }
        blocks
    }

    /// Frees so many blocks at a file's end; returns what that changes (`ext4_ext_remove_space`).
    pub(super) async fn free_file_blocks<M: Machine>(
        &self,
        m: &M,
        slot: u32,
        transaction: u64,
        blocks: u64,
    ) -> Vec<Block> {
        let mut changed = Vec::new();
        for extent in self.mballoc.take(slot, blocks) {
            self.mballoc.free_blocks(m, extent, self.journal.on.then_some(transaction)).await;
            let blocks = self.block_bitmap(extent.group);
            changed.extend(blocks.into_iter().filter(|block| !changed.contains(block)).collect::<Vec<_>>());
        }
        changed
    }
}
