//! Blocks of the inode table that nobody has used since the filesystem was made: the first who makes an inode there brings the
//! block in under its buffer's lock, and reads it if others of its inodes are in use (`__ext4_get_inode_loc`). The end of the read
//! unlocks the buffer. Each unlock wakes one of those who sleep for the lock, also that of who has no use for the block but puts it
//! into the transaction.

use super::group_locks::Descriptors;
use super::ialloc::{Ialloc, INODES_PER_BLOCK};
use super::journal::Block;
use crate::devices::BlockDevice;
use crate::filesystems::cached::Looks;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::super_line::SuperLine;
use crate::filesystems::BLOCK;
use crate::fx::FxMap;
use crate::waist::Machine;
use crate::waist::{Access, Account, CachedId, ClassId, LineId, LockId, Side, Time};
use std::cell::RefCell;

/// What else is looked at, which others write.
pub(super) struct Beside {
    /// `s_user_ns`, by which its owner is translated.
    pub owner: SuperLine,
    /// `s_orphan_lock`, in whose line `s_ext4_flags` is, if that is asked for.
    pub flags: Option<LockId>,
    /// `j_list_lock`, in whose line `j_fs_dev` is, if that is asked for.
    pub device: Option<LockId>,
    /// `s_md_lock`, in whose line `s_want_extra_isize` is.
    pub extra: LockId,
    /// Where the inode table of a group is.
    pub descriptors: Descriptors,
    pub inodes_per_group: u32,
    /// There is a journal; the line of its running transaction that has `t_journal`.
    pub journal: bool,
    pub transaction: LineId,
}

/// An access that has come when it returns.
pub(super) async fn access<M: Machine>(m: &M, line: LineId, access: Access) {
    m.touch(line, access);
    m.settle().await;
}

/// How far a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is read until its buffer is unlocked.
    Read,
    /// It is uptodate, and in no transaction yet.
    Uptodate,
    /// It is in a transaction, or has been.
    Changed,
}

/// A block, and the lines of its `struct buffer_head`: that of `b_count` and `b_private`, and where somebody writes it that of `b_state`. With
/// 104 bytes to a buffer these are two (6.12).
#[derive(Clone, Copy)]
struct Buffer {
    memory: CachedId,
    count: LineId,
    state: Option<LineId>,
}

/// The inode table.
pub(super) struct InodeTable {
    /// Blocks that somebody has asked for.
    stages: RefCell<FxMap<u32, Stage>>,
    /// The locks of those that are being brought in, and of all that are being written without a journal, and how many tasks hold them or wait.
    buffers: RefCell<FxMap<Block, (LockId, u32)>>,
    class: ClassId,
    /// Those that somebody has used, and what one looks at to change an inode.
    used: RefCell<Vec<Option<Buffer>>>,
    /// Who changes a block sets bits of its buffer that are set.
    sets_bits: bool,
    looks: Looks,
    beside: Beside,
}

impl InodeTable {
    /// Nothing but the root's block is in memory.
    pub fn new<M: Machine>(m: &M, beside: Beside, costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        Ok(Self {
            used: RefCell::default(),
            sets_bits: costs.rules().sets_buffer_bits,
            looks: Looks::at(lines("ext4_buffer.index")?, lines("ext4_inode.on_disk")?),
            stages: RefCell::new(FxMap::from_iter([(0, Stage::Changed)])),
            buffers: RefCell::default(),
            class: m.class("ext4.inode table", "ext4.buffer"),
            beside,
        })
    }

    /// Says that inodes were made without programs.
    pub fn filled(&self, inode: u32) {
        self.reaches(inode / INODES_PER_BLOCK, Stage::Changed);
    }

    /// `ext4_mark_inode_dirty`: an inode is written into its block, which takes so long. Meanwhile others take away the line of the buffer's
    /// `b_count` and `b_private`: the time is that of three parts alike.
    pub async fn use_block<M: Machine>(&self, m: &M, inode: u32, time: Time) {
        let Buffer { memory, count, state } = self.block(m, (inode / INODES_PER_BLOCK) as usize);
        let journal = self.beside.journal;
        self.looks.of(m, memory);
        self.look_at(m, self.beside.flags).await; // ext4_reserve_inode_write
        let group = inode / self.beside.inodes_per_group;
        access(m, self.beside.descriptors.of(group), Access::Read).await; // ext4_inode_table, __ext4_get_inode_loc
        access(m, count, Access::Atomic).await; // sb_getblk
        if let Some(state) = state {
            access(m, state, Access::Read).await; // buffer_uptodate
        }
        self.look_at(m, self.beside.device).await; // jbd2_journal_get_write_access
        if journal {
            access(m, self.beside.transaction, Access::Read).await; // is_handle_aborted
            access(m, count, Access::Read).await; // b_private
        }
        self.look_at(m, Some(self.beside.extra)).await; // __ext4_mark_inode_dirty
        m.run(Account::System, time / 3).await;
        self.look_at(m, self.beside.flags).await; // ext4_mark_iloc_dirty
        access(m, count, Access::Atomic).await; // get_bh
        self.beside.owner.owner(m).await; // ext4_fill_raw_inode
        m.run(Account::System, time / 3).await;
        for bits in state.into_iter().flat_map(|state| [state; 2]) {
            access(m, bits, Access::Atomic).await; // set_buffer_meta, set_buffer_prio
        }
        if journal {
            access(m, self.beside.transaction, Access::Read).await;
            access(m, count, Access::Read).await; // b_private, jbd2_journal_dirty_metadata
        }
        access(m, count, Access::Read).await; // __brelse looks first
        access(m, count, Access::Atomic).await;
        access(m, count, Access::Atomic).await; // put_bh
        m.run(Account::System, time - 2 * (time / 3)).await;
    }

    /// Takes a reference of a block's buffer, which is given back before others want it (`sb_find_get_block`, `brelse`).
    pub async fn count_block<M: Machine>(&self, m: &M, block: u32) {
        access(m, self.block(m, block as usize).count, Access::Atomic).await;
    }

    async fn look_at<M: Machine>(&self, m: &M, beside: Option<LockId>) {
        if let Some(lock) = beside {
            m.touch_beside(lock, Access::Read);
            m.settle().await;
        }
    }

    fn block<M: Machine>(&self, m: &M, block: usize) -> Buffer {
        let mut used = self.used.borrow_mut();
        if used.len() <= block {
            used.resize(block + 1, None);
        }
        let state = || self.sets_bits.then(|| m.new_line("ext4.inode table b_state", 1));
        *used[block].get_or_insert_with(|| Buffer {
            memory: m.new_block(0..0, None),
            count: m.new_line("ext4.inode table b_count", 1),
            state: state(),
        })
    }

    fn stage(&self, block: u32) -> Option<Stage> {
        self.stages.borrow().get(&block).copied()
    }

    fn reaches(&self, block: u32, stage: Stage) {
        self.stages.borrow_mut().insert(block, stage);
    }

    /// The read of a block, if there was one, is over.
    fn is_read(&self, block: u32) {
        if self.stage(block) != Some(Stage::Changed) {
            self.reaches(block, Stage::Uptodate);
        }
    }

    /// The block of a new inode, in memory and in a transaction. Who brings it in has its first change in the handle, which takes
    /// `time`; those who wait for the block do not wait for that.
    pub async fn load<M: Machine>(&self, m: &M, device: &BlockDevice, inode: u32, ialloc: &Ialloc, time: Time) {
        let block = inode / INODES_PER_BLOCK;
        if self.stage(block) == Some(Stage::Changed) {
            return;
        }
        let lock = self.join(m, Block::Inodes(block));
        let mut first = 0;
        if self.waits(m, block, lock) && self.bring_in(m, device, (block, lock), ialloc.alone_in_block(inode)).await {
            first = time;
        }
        self.is_read(block);
        self.change(m, (block, lock), first).await;
        self.leave(m, Block::Inodes(block));
    }

    /// Whether the block is not in memory yet (`ext4_buffer_uptodate`).
    fn waits<M: Machine>(&self, m: &M, block: u32, lock: LockId) -> bool {
        self.stage(block).is_none_or(|stage| stage == Stage::Read && m.is_locked(lock))
    }

    /// Locks the buffer, and reads the block, or clears it if no other of its inodes is in use, unless somebody has done so. Whether
    /// that was this task.
    async fn bring_in<M: Machine>(
        &self,
        m: &M,
        device: &BlockDevice,
        (block, lock): (u32, LockId),
        unused: bool,
    ) -> bool {
        m.lock(lock, Side::Write).await;
        let brings = self.stage(block).is_none();
        if brings && !unused {
            self.reaches(block, Stage::Read);
            device.read_buffer(m, BLOCK, lock).await;
        } else {
            self.is_read(block);
            m.unlock(lock, Side::Write).await;
        }
        brings
    }

    /// `jbd2_journal_get_write_access`: puts the block into the transaction, with its buffer locked, unless it is there.
    async fn change<M: Machine>(&self, m: &M, (block, lock): (u32, LockId), time: Time) {
        let joins = self.beside.journal && self.stage(block) == Some(Stage::Uptodate);
        if time > 0 {
            m.run(Account::System, time / 2).await;
        }
        if joins {
            m.lock(lock, Side::Write).await; // do_get_write_access
            self.reaches(block, Stage::Changed);
            m.unlock(lock, Side::Write).await;
        }
        if time > 0 {
            m.run(Account::System, time - time / 2).await;
        }
    }

    /// The lock of a block's buffer, as long as somebody has use for it.
    pub fn join<M: Machine>(&self, m: &M, block: Block) -> LockId {
        let mut buffers = self.buffers.borrow_mut();
        let (lock, users) = buffers.entry(block).or_insert_with(|| (m.new_lock(self.class), 0));
        *users += 1;
        *lock
    }

    /// The task has no more use for it.
    pub fn leave<M: Machine>(&self, m: &M, block: Block) {
        let mut buffers = self.buffers.borrow_mut();
        let (lock, users) = buffers.get_mut(&block).expect("it has joined");
        *users -= 1;
        if *users == 0 {
            m.drop_lock(*lock);
            buffers.remove(&block);
        }
    }
}
