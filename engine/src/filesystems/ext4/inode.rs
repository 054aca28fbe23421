//! Inodes: in use and free, where they lie, and what of them a transaction changes.

use super::ialloc::{FLEX, INODES_PER_BLOCK};
use super::inode_table::access;
use super::journal::{credits, Block, Handle};
use super::map_blocks::ExtentLocks;
use super::Ext4;
use crate::filesystems::by_slot::FreeSlots;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::listed;
use crate::filesystems::vfs::INODE_CALLBACKS;
use crate::filesystems::{DirId, File};
use crate::waist::Machine;
use crate::waist::{Access, Account, CachedId, LineId, LockId, Time};

/// Group descriptors of 64 bytes in a block.
const DESCRIPTORS: u32 = 64;
const LINE_BYTES: u32 = 64;
const SECOND: Time = 1_000_000_000_000;

/// Files that exist.
#[derive(Default)]
pub(super) struct Files {
    pub(super) slots: Vec<Slot>,
    pub(super) free: FreeSlots,
}

#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Its number.
    pub(super) inode: u32,
    pub(super) i_rwsem: LockId,
    pub(super) extents: ExtentLocks,
    /// The transaction that last changed the inode (`i_sync_tid`), and the last that changed its size or blocks (`i_datasync_tid`).
    transaction: u64,
    data_transaction: u64,
    /// The transaction on whose list its data are (`jbd2_inode.i_transaction`).
    pub(super) ordered: u64,
    /// The tick in which its times last changed.
    pub(super) changed: Time,
    /// It is dirty for the VFS, as it is not when ext4 alone has changed its block: its times (`I_DIRTY_SYNC`), and more than these
    /// (`I_DIRTY_DATASYNC`).
    pub(super) times_dirty: bool,
    pub(super) dirty: bool,
    /// The directory whose blocks have a name of it that was never synced (`EXT4_STATE_NEWENTRY`).
    pub(super) new_entry: Option<DirId>,
    /// It was truncated to nothing and has not been closed since (`EXT4_STATE_DA_ALLOC_CLOSE`).
    pub(super) truncated: bool,
    /// It was truncated to nothing.
    pub(super) emptied: bool,
}

impl Slot {
    /// The transaction that an `fsync` waits for, or an `fdatasync`.
    pub(super) fn synced_by(&self, data_only: bool) -> u64 {
        if data_only {
            self.data_transaction
        } else {
            self.transaction
        }
    }

    /// Whether an `fsync`, or an `fdatasync`, has to write an inode that is dirty for the VFS, which it no longer is then.
    pub(super) fn clean(&mut self, data_only: bool) -> bool {
        let writes = self.dirty || self.times_dirty && !data_only;
        if writes {
            (self.dirty, self.times_dirty) = (false, false);
        }
        writes
    }
}

/// What making and freeing inodes writes of each group.
#[derive(Clone, Copy)]
pub(super) struct GroupLines {
    /// Buffer and journal heads of bitmap and descriptor, and the group's description in memory.
    heads: LineId,
    /// `b_count` and `b_private` of the bitmap's buffer.
    count: LineId,
    /// `alloc_sem`, which keeps the thread that clears inode tables away (`ext4_init_inode_table`).
    alloc_sem: LineId,
    /// The contents of the bitmap and of the descriptor.
    bitmap: LineId,
    pub(super) descriptor: LineId,
    memory: CachedId,
    bytes: u32,
}

impl GroupLines {
    /// Those of one group.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let sum = |names: &[&str]| names.iter().map(|name| costs.number(name)).sum::<Result<f64, _>>();
        let heads = sum(&["ext4_bitmap.struct", "ext4_group_desc.struct", "ext4_group_info.struct"])? as u32;
        let lines = [heads - 2, 1, 1, sum(&["ext4_bitmap.data"])? as u32, sum(&["ext4_group_desc.data"])? as u32];
        let bytes = lines.iter().sum::<u32>() * LINE_BYTES;
        let [heads, count, alloc_sem, bitmap, descriptor] = lines.map(|span| m.new_line("ext4.inode bitmap", span));
        let memory = m.new_block(heads..descriptor + 1, None);
        Ok(Self { heads, count, alloc_sem, bitmap, descriptor, memory, bytes })
    }
}

impl Ext4 {
    /// `__ext4_new_inode`, in the handle of its creation: a bit of the bitmap and then the descriptor are changed under
    /// the lock of the group. Returns the inode's number, or nothing if there is none.
    pub(super) async fn new_inode<M: Machine>(&self, m: &M, find_group: impl Fn() -> Option<u32>) -> Option<u32> {
        let c = &self.create;
        let mut group = find_group()?;
        m.run(Account::System, c.find_group).await;
        let mut before_lock = c.start_handle;
        let inode = loop {
            match self.claim_inode(m, group, before_lock).await {
                Some(inode) => break inode,
                None => group = find_group()?, // somebody took the last one meanwhile
            }
            before_lock = c.retry;
        };
        self.describe(m, group, c.mark).await;
        self.flexes.count(m, group).await;
        m.run(Account::System, c.new_inode.saturating_sub(c.mark)).await;
        self.tables.load(m, &self.storage, inode, &self.ialloc, c.table_block).await;
        self.tables.use_block(m, inode, c.tree_init).await; // ext4_ext_tree_init marks it dirty
        self.tables.use_block(m, inode, c.allocated).await;
        access(m, self.groups[group as usize].count, Access::Atomic).await; // brelse
        Some(inode)
    }

    /// `repeat_in_this_group`: the bit is chosen before the handle is started and set under the lock of the group. Who finds that
    /// another has set it looks for the next one from there on: under the lock, or without it again.
    async fn claim_inode<M: Machine>(&self, m: &M, group: u32, mut before_lock: Time) -> Option<u32> {
        let mut chosen = self.find_inode(m, group, None).await?;
        loop {
            m.run(Account::System, before_lock).await;
            let mut taken = None;
            self.locked(m, group, 0, |lines| {
                m.touch(lines.bitmap, Access::Write);
                taken = self.ialloc.take(chosen, self.info.locked_search);
            })
            .await;
            if taken.is_some() {
                return taken;
            }
            chosen = self.find_inode(m, group, Some(chosen)).await?;
            before_lock = self.create.retry;
        }
    }

    /// `ext4_find_next_zero_bit` of a group's bitmap, from its start or from an inode on that was lost.
    async fn find_inode<M: Machine>(&self, m: &M, group: u32, lost: Option<u32>) -> Option<u32> {
        if lost.is_none() {
            access(m, self.groups[group as usize].count, Access::Atomic).await; // ext4_read_inode_bitmap
        }
        m.touch(self.groups[group as usize].bitmap, Access::Read);
        if self.unjournaled.avoids_freed {
            self.ialloc.turn(m.now() / SECOND);
            let (passed, blocks) = self.ialloc.passed(group, lost);
            self.pass_by(m, passed, &blocks).await;
        }
        self.ialloc.find(group, lost)
    }

    /// `ext4_free_inode`.
    pub(super) async fn free_inode<M: Machine>(&self, m: &M, inode: u32) {
        let (mark, time, group) = (self.create.mark, self.unlink.free_inode, self.ialloc.group_of(inode));
        let count = self.groups[group as usize].count;
        access(m, count, Access::Atomic).await; // ext4_read_inode_bitmap
        self.locked(m, group, mark, |lines| {
            m.touch(lines.bitmap, Access::Write);
            m.touch(lines.descriptor, Access::Write);
            self.ialloc.free(inode);
        })
        .await;
        self.flexes.count(m, group).await;
        m.run(Account::System, time.saturating_sub(mark)).await;
        access(m, count, Access::Atomic).await; // brelse
    }

    /// The descriptor of a group has an inode less, and the checksum of the bitmap. `alloc_sem` is held shared until the lock is.
    async fn describe<M: Machine>(&self, m: &M, group: u32, time: Time) {
        access(m, self.groups[group as usize].alloc_sem, Access::Atomic).await; // down_read
        self.locked(m, group, time, |lines| {
            m.touch(lines.descriptor, Access::Write);
            m.touch(lines.alloc_sem, Access::Atomic);
            m.touch(lines.bitmap, Access::Read);
        })
        .await;
    }

    /// Changes what a group has of its inodes, which takes so long. The buffers are looked at before and after.
    async fn locked<M: Machine>(&self, m: &M, group: u32, time: Time, change: impl FnOnce(&GroupLines)) {
        let lines = self.groups[group as usize];
        m.use_block(lines.memory, lines.bytes);
        m.touch(lines.heads, Access::Read);
        access(m, lines.count, Access::Read).await; // jbd2_journal_get_write_access
        self.locks.lock(m, group).await;
        change(&lines);
        m.run(Account::System, time).await;
        self.locks.unlock(m, group).await;
        access(m, lines.count, Access::Read).await; // jbd2_journal_dirty_metadata
    }

    /// The group in which blocks of a file's are looked for (`ext4_inode_to_goal_block`): the second of its inode's flex group.
    pub(super) fn goal_group(&self, slot: u32) -> u32 {
        let group = self.ialloc.group_of(self.files.borrow().slots[slot as usize].inode);
        (group / FLEX * FLEX + 1).min(self.groups.len() as u32 - 1)
    }

    /// The bitmap and the descriptor of a group.
    pub(super) fn group_blocks(&self, group: u32) -> [Block; 2] {
        [Block::Bitmap(group), Block::Descriptors(group / DESCRIPTORS)]
    }

    /// The same for blocks.
    pub(super) fn block_bitmap(&self, group: u32) -> [Block; 2] {
        [Block::Allocated(group), Block::Descriptors(group / DESCRIPTORS)]
    }

    pub(super) fn new_file<M: Machine>(&self, m: &M, inode: u32) -> u32 {
        let slot = Slot {
            inode,
            i_rwsem: self.sb.new_file(m),
            extents: self.map.locks(m),
            transaction: 0,
            data_transaction: 0,
            ordered: 0,
            changed: m.now() / self.fsync.tick,
            times_dirty: false,
            dirty: false,
            new_entry: None,
            truncated: false,
            emptied: false,
        };
        let mut files = self.files.borrow_mut();
        match files.free.pop(m.cpu()) {
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
        files.slots[slot as usize].extents.drop(m);
        files.free.push(m.cpu(), slot);
        self.fsync.dirty.forget(slot);
        self.mballoc.forget_written(slot);
    }

    pub(super) fn i_rwsem(&self, file: &File) -> LockId {
        self.files.borrow().slots[file.inode as usize].i_rwsem
    }

    /// The number of a file's inode.
    pub(super) fn number_of(&self, file: &File) -> u32 {
        self.files.borrow().slots[file.inode as usize].inode
    }

    /// `mark_inode_dirty` of a file.
    pub(super) fn mark_dirty(&self, slot: u32) {
        self.files.borrow_mut().slots[slot as usize].dirty = true;
    }

    /// The same where only its times change (`generic_update_time`).
    pub(super) fn mark_times_dirty(&self, slot: u32) {
        self.files.borrow_mut().slots[slot as usize].times_dirty = true;
    }

    /// The end of a handle that has changed these blocks; its transaction.
    pub(super) async fn end<M: Machine>(&self, m: &M, handle: Handle, changed: &[Block]) -> u64 {
        if !self.journal.on {
            self.dirty_buffers(m, changed).await;
        }
        self.journal.stop(m, handle, changed).await
    }

    /// The end of a handle that has changed a file's inode, and these blocks.
    pub(super) async fn stop<M: Machine>(&self, m: &M, handle: Handle, slot: u32, changed: &[Block]) {
        self.stop_after(m, handle, slot, changed, 0).await;
    }

    /// The same where the inode is marked dirty last, which takes `time`.
    pub(super) async fn stop_after<M: Machine>(&self, m: &M, handle: Handle, slot: u32, changed: &[Block], time: Time) {
        let transaction = handle.transaction();
        self.stop_attributes(m, handle, slot, changed, time).await;
        self.files.borrow_mut().slots[slot as usize].data_transaction = transaction;
    }

    /// The same where neither its size nor its blocks have changed, so that no `fdatasync` asks for it.
    pub(super) async fn stop_attributes<M: Machine>(
        &self,
        m: &M,
        handle: Handle,
        slot: u32,
        changed: &[Block],
        time: Time,
    ) {
        let inode = self.files.borrow().slots[slot as usize].inode;
        let inodes = [Block::Inodes(inode / INODES_PER_BLOCK)];
        self.tables.use_block(m, inode, time).await;
        let transaction = self.end(m, handle, &[&inodes, changed].concat()).await;
        self.files.borrow_mut().slots[slot as usize].transaction = transaction;
    }

    /// `ext4_evict_inode`, in the unlinking task: truncate, off the orphan list, free the inode, and its memory (`i_callback`).
    pub(super) async fn evict<M: Machine>(&self, m: &M, inode: u32, file: File) {
        let c = &self.unlink;
        self.sb.calls.files.evicted(m, file.inode);
        let pages = if file.written { self.sb.calls.without_lru(c.evict_pages) } else { 0 };
        m.run(Account::System, c.evict_start + pages).await;
        let handle = self.journal.start(m, credits::EVICT).await;
        let freed = match self.mballoc.has_blocks(file.inode) {
            true => self.remove_space(m, file.inode, handle.transaction(), u64::MAX).await,
            false => Vec::new(),
        };
        self.tables.use_block(m, inode, c.orphan / 2).await; // marked dirty with a size of 0
        let orphan = self.delete_orphan(m, inode, c.orphan - c.orphan / 2).await;
        if file.writable {
            self.journal.release_inode(m).await; // ext4_clear_inode
        }
        self.free_inode(m, inode).await;
        let rest = self.sb.inodes.leave(m, listed::file(file.inode), Some(u64::from(file.inode)), c.evict_stop).await;
        let changed = [&freed[..], orphan.as_slice(), &self.group_blocks(self.ialloc.group_of(inode))].concat();
        self.stop_after(m, handle, file.inode, &changed, rest).await;
        m.call_rcu(INODE_CALLBACKS, c.callback);
        self.drop_file(m, file.inode);
    }

    /// `ext4_orphan_add` among what takes so long; the block that it changes. Without a journal there are no orphans.
    pub(super) async fn add_orphan<M: Machine>(&self, m: &M, inode: u32, time: Time) -> Option<Block> {
        if !self.journal.on {
            m.run(Account::System, time).await;
            return None;
        }
        self.write_orphan(m, inode, time).await;
        Some(self.orphans.add(m, inode).await)
    }

    /// The same for `ext4_orphan_del`.
    pub(super) async fn delete_orphan<M: Machine>(&self, m: &M, inode: u32, time: Time) -> Option<Block> {
        if !self.journal.on {
            m.run(Account::System, time).await;
            return None;
        }
        self.write_orphan(m, inode, time).await;
        Some(self.orphans.delete(m, inode, &self.tables).await)
    }

    /// An inode that enters the list or leaves it is written, as it names the next (`ext4_reserve_inode_write`, `ext4_mark_iloc_dirty`).
    async fn write_orphan<M: Machine>(&self, m: &M, inode: u32, time: Time) {
        let rest = time.saturating_sub(self.orphans.usual());
        if self.orphans.are_listed() {
            self.tables.use_block(m, inode, rest).await;
        } else {
            m.run(Account::System, rest).await;
        }
    }

    /// `ext4_mark_inode_dirty` of a directory, amid what takes so long.
    pub(super) async fn mark_directory_dirty<M: Machine>(&self, m: &M, dir: DirId, time: Time) {
        self.directories.borrow().of(dir).transaction.set(self.journal.running());
        self.tables.use_block(m, self.directory_inode(dir), time).await;
    }
}
