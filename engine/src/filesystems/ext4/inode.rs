//! Inodes: in use and free, where they lie, and what of them a transaction changes.

use super::journal::{credits, Block, Handle};
use super::Ext4;
use crate::filesystems::File;
use crate::machine::{Access, Account, LockId, Side, Time};
use crate::waist::Machine;

/// Inodes of 256 bytes in a block of the inode table.
const INODES_PER_BLOCK: u32 = 16;
/// Group descriptors of 64 bytes in a block.
const DESCRIPTORS: u32 = 64;

/// Files that exist.
#[derive(Default)]
pub(super) struct Files {
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<u32>,
}

#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) group: u32,
    pub(super) i_rwsem: LockId,
    /// The transaction that last changed the inode (`i_sync_tid`), and the tick in which its times last changed.
    pub(super) transaction: u64,
    pub(super) changed: Time,
    /// It was truncated to nothing and has not been closed since (`EXT4_STATE_DA_ALLOC_CLOSE`).
    pub(super) truncated: bool,
}

impl Ext4 {
    pub(super) async fn with_group<M: Machine>(&self, m: &M, group: u32, time: Time) {
        let group = group % self.groups.len() as u32;
        self.locks.lock(m, group).await;
        m.touch(self.groups[group as usize], Access::Write);
        self.locks.unlock(m, group).await;
        m.run(Account::System, time).await;
    }

    /// The bitmap and the descriptor of a group.
    pub(super) fn group_blocks(&self, group: u32) -> [Block; 2] {
        let group = group % self.groups.len() as u32;
        [Block::Bitmap(group), Block::Descriptors(group / DESCRIPTORS)]
    }

    /// The same for blocks.
    pub(super) fn block_bitmap(&self, group: u32) -> [Block; 2] {
        [Block::Allocated(group), Block::Descriptors(group / DESCRIPTORS)]
    }

    /// `ext4_orphan_add`, `ext4_orphan_del`.
    pub(super) async fn move_orphan<M: Machine>(&self, m: &M, time: Time) {
        m.lock(self.orphan.0, Side::Write).await;
        m.touch(self.orphan.1, Access::Write);
        m.run(Account::System, time).await;
        m.unlock(self.orphan.0, Side::Write).await;
    }

    pub(super) fn new_file<M: Machine>(&self, m: &M, group: u32) -> u32 {
        let slot = Slot {
            group,
            i_rwsem: self.sb.new_file(m),
            transaction: 0,
            changed: m.now() / self.fsync.tick,
            truncated: false,
        };
        let mut files = self.files.borrow_mut();
        match files.free.pop() {
            Some(free) => {
                files.slots[free as usize] = slot;
                free
            }
            None => {
                files.slots.push(slot);
                (files.slots.len() - 1) as u32
            }
        }
    }

    fn drop_file<M: Machine>(&self, m: &M, slot: u32) {
        let mut files = self.files.borrow_mut();
        m.drop_lock(files.slots[slot as usize].i_rwsem);
        files.free.push(slot);
        self.fsync.dirty.forget(slot);
    }

    pub(super) fn i_rwsem(&self, file: &File) -> LockId {
        self.files.borrow().slots[file.inode as usize].i_rwsem
    }

    /// The end of a handle that has changed a file's inode, and these blocks.
    pub(super) async fn stop<M: Machine>(&self, m: &M, handle: Handle, slot: u32, changed: &[Block]) {
        let transaction =
            self.journal.stop(m, handle, &[&[Block::Inodes(slot / INODES_PER_BLOCK)], changed].concat()).await;
        self.files.borrow_mut().slots[slot as usize].transaction = transaction;
    }

    /// `ext4_evict_inode`, in the unlinking task: truncate, off the orphan list, free the inode.
    pub(super) async fn evict<M: Machine>(&self, m: &M, group: u32, file: File) {
        let c = &self.unlink;
        m.run(Account::System, c.evict_start + if file.written { c.evict_pages } else { 0 }).await;
        let handle = self.journal.start(m, credits::EVICT).await;
        let freed = self.free_file_blocks(m, file.inode, handle.transaction()).await;
        self.move_orphan(m, c.orphan).await;
        self.with_group(m, group, c.free_inode).await;
        let rest = self.sb.inodes.pass(m, Some(u64::from(file.inode)), c.evict_stop).await;
        m.run(Account::System, rest).await;
        let [bitmap, descriptors] = self.group_blocks(group);
        self.stop(m, handle, file.inode, &[&freed[..], &[bitmap, descriptors]].concat()).await;
        self.drop_file(m, file.inode);
    }
}
