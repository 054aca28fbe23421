//! Handles (`fs/jbd2/transaction.c`): who changes blocks joins the running transaction with credits, files what he changes, and gives back
//! what he did not need.

use super::{Block, Journal};
use crate::waist::Machine;
use crate::waist::{Access, Side};

/// Blocks that a handle may change (`h_total_credits`): those that the kernel asks for are told in its tracepoint
/// `jbd2_handle_start`, `req=47` for a create, 25 for an unlink, 30 for an eviction (6.18).
pub mod credits {
    pub const CREATE: u32 = 47;
    pub const UNLINK: u32 = 25;
    pub const EVICT: u32 = 30;
    /// A name, and a link more (`__ext4_link`, 6.12: `EXT4_DATA_TRANS_BLOCKS`, `EXT4_INDEX_EXTRA_TRANS_BLOCKS`, 1).
    pub const LINK: u32 = 38;
    /// Two directories and the index of one (`ext4_rename`, 6.12: twice `EXT4_DATA_TRANS_BLOCKS`, `EXT4_INDEX_EXTRA_TRANS_BLOCKS`, 2).
    pub const RENAME: u32 = 64;
    /// An inode (`ext4_dirty_inode`).
    pub const INODE: u32 = 2;
    /// An extent that is allocated or converted, as in `ext4_da_writepages_trans_blocks`: about as an unlink.
    pub const EXTENT: u32 = 25;
    /// What is reserved for its conversion (`ext4_writepages`, 6.12: one, and `ext4_chunk_trans_blocks` of a page in a tree of one level:
    /// two blocks of it, three bitmaps and descriptors, six of `EXT4_META_TRANS_BLOCKS`).
    pub const CONVERSION: u32 = 15;
}

/// Counts of the running transaction that a handle's start adds to, one after the other: after `t_outstanding_credits` (`add_transaction_credits`)
/// `t_updates` and `t_handle_count` (`start_this_handle`). They share a line.
const ADDED_AT_START: u32 = 2;
/// Those that its stop subtracts from, after a look at `t_expires` in the same line (`jbd2_journal_stop`, `stop_this_handle`).
const SUBTRACTED_AT_STOP: u32 = 2;

/// A handle: the transaction that it is part of, and what it may change in it and has changed.
pub struct Handle {
    transaction: u64,
    credits: u32,
    used: u32,
}

impl Handle {
    /// The number of its transaction.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }
}

impl Journal {
    /// `start_this_handle`: joins the running transaction with so many credits. Waits while that is being locked for commit, until
    /// it is committed if it is full, and for room in the log.
    pub async fn start<M: Machine>(&self, m: &M, credits: u32) -> Handle {
        self.start_reserving(m, credits, 0).await
    }

    /// The same, with so many credits for a handle that ends what this one begins.
    pub async fn start_reserving<M: Machine>(&self, m: &M, credits: u32, reserve: u32) -> Handle {
        self.look(m).await;
        if self.on {
            self.join(m, credits, reserve).await;
        }
        Handle { transaction: self.running.get(), credits, used: 0 }
    }

    /// The same for the handle that ends a write, for which its beginning has reserved credits: it may join a transaction that is
    /// locked, too, until that is switched (`h_reserved`, since 3.11).
    pub async fn start_reserved<M: Machine>(&self, m: &M, credits: u32) -> Handle {
        self.look(m).await;
        if self.on {
            self.join_reserved(m, credits).await;
        }
        Handle { transaction: self.running.get(), credits, used: 0 }
    }

    /// `ext4_journal_check_start` reads `s_ext4_flags` and `s_journal`, on filesystems without a journal too. In `struct ext4_sb_info` they
    /// stand on both sides of the list of orphans and its lock (since 5.15 before them).
    async fn look<M: Machine>(&self, m: &M) {
        m.touch_beside(self.beside, Access::Read);
        m.settle().await;
    }

    /// `add_transaction_credits`.
    async fn join<M: Machine>(&self, m: &M, credits: u32, reserve: u32) {
        let (total, most) = (credits + reserve, self.space.most);
        loop {
            self.look_at_running(m).await;
            if self.locked.get() {
                self.wait_transaction_locked(m).await;
            } else if self.credits.get() + total > most {
                if self.reserved.credits() + total > most {
                    m.unlock(self.state_lock, Side::Read).await;
                    self.wait_reserved(m, total, most).await;
                } else {
                    self.wait_transaction_locked(m).await;
                }
            } else if !self.space.suffices() {
                m.unlock(self.state_lock, Side::Read).await;
                self.wait_for_space(m).await;
            } else if reserve > 0 && !self.reserved.take(reserve, most / 2) {
                self.give_back(m, 0).await; // what was added at first to see that it is too much
                m.unlock(self.state_lock, Side::Read).await;
                self.wait_reserved(m, reserve, most / 2).await;
            } else {
                return self.joined(m, total).await;
            }
        }
    }

    async fn join_reserved<M: Machine>(&self, m: &M, credits: u32) {
        loop {
            self.look_at_running(m).await;
            if !self.switching.get() {
                self.give_back(m, credits).await; // they are among those of the transaction
                return self.joined(m, 0).await;
            }
            self.wait_transaction_locked(m).await;
        }
    }

    /// Which transaction runs, and takes `j_state_lock` shared.
    async fn look_at_running<M: Machine>(&self, m: &M) {
        m.touch_beside(self.state_lock, Access::Read); // j_running_transaction: is there one?
        m.settle().await;
        m.lock(self.state_lock, Side::Read).await;
        m.touch_beside(self.state_lock, Access::Read); // j_barrier_count, and which one it is
        m.settle().await;
    }

    async fn joined<M: Machine>(&self, m: &M, credits: u32) {
        self.count(m, 1).await;
        m.touch_beside(self.state_lock, Access::Read); // j_committing_transaction, jbd2_log_space_left
        m.settle().await;
        self.count(m, ADDED_AT_START).await;
        self.credits.set(self.credits.get() + credits);
        self.updates.set(self.updates.get() + 1);
        m.unlock(self.state_lock, Side::Read).await
    }

    /// Changes so many counts of the running transaction, one after the other.
    async fn count<M: Machine>(&self, m: &M, counts: u32) {
        for _ in 0..counts {
            m.touch(self.line, Access::Atomic);
            m.settle().await;
        }
    }

    /// Waits until the running transaction is no longer that, and has it committed.
    async fn wait_transaction_locked<M: Machine>(&self, m: &M) {
        let transaction = self.running.get();
        m.unlock(self.state_lock, Side::Read).await;
        self.start_commit(m, transaction).await;
        while self.running.get() == transaction {
            self.waiting.borrow_mut().push(m.task());
            m.wchan("wait_transaction_locked");
            m.park().await;
        }
    }

    /// `jbd2_journal_get_write_access` and `jbd2_journal_dirty_metadata`: the first change of a block in a transaction files it
    /// twice, and waits while it is being written to the log.
    async fn change<M: Machine>(&self, m: &M, handle: &mut Handle, block: Block) {
        if !matches!(block, Block::Inodes(_)) {
            self.look_at_device(m).await;
            self.is_aborted(m).await;
        }
        loop {
            let head = self.blocks.head(block);
            if head.transaction == handle.transaction {
                return;
            }
            if !self.shadow.get().covers(head.transaction, head.order) {
                break;
            }
            self.shadowed.borrow_mut().push(m.task());
            m.wchan("do_get_write_access");
            m.park_for_io().await;
        }
        self.enter(m).await; // BJ_Reserved
        self.enter(m).await; // BJ_Metadata
        if self.blocks.head(block).transaction < handle.transaction {
            self.blocks.join(block, handle.transaction);
            handle.used += 1;
        }
    }

    /// `jbd2_check_fs_dev_write_error`. Who marks an inode dirty has looked then.
    async fn look_at_device<M: Machine>(&self, m: &M) {
        if let Some(lock) = self.device() {
            m.touch_beside(lock, Access::Read);
            m.settle().await;
        }
    }

    /// The same for blocks that a handle changes before its end.
    pub async fn get_write_access<M: Machine>(&self, m: &M, handle: &mut Handle, blocks: &[Block]) {
        for &block in blocks.iter().filter(|_| self.on) {
            self.change(m, handle, block).await;
        }
    }

    /// `jbd2_journal_forget` of a block that is freed: it leaves the transaction, which has room for another.
    pub async fn forget<M: Machine>(&self, m: &M, handle: &mut Handle, block: Block) {
        if self.on && self.blocks.head(block).transaction == handle.transaction {
            self.file(m).await;
            handle.credits += u32::from(self.blocks.forget(block, handle.transaction));
        }
    }

    /// `jbd2_journal_file_inode`: an inode whose data a commit writes first is put onto the transaction's list under `j_list_lock`,
    /// if it is not there; since 5.3 what is dirty in it is noted under the lock each time. Returns the transaction.
    pub async fn file_inode<M: Machine>(&self, m: &M, listed: u64, always: bool) -> u64 {
        let running = self.running.get();
        if self.on && (always || listed != running) {
            self.file(m).await;
        }
        running
    }

    /// `jbd2_journal_release_jbd_inode` of an inode that goes and was open for writing (`ext4_inode_attach_jinode`).
    pub async fn release_inode<M: Machine>(&self, m: &M) {
        if self.on {
            self.file(m).await;
        }
    }

    /// `jbd2_journal_begin_ordered_truncate`: looks whether an inode on a transaction's list is being committed.
    pub async fn begin_ordered_truncate<M: Machine>(&self, m: &M, listed: u64) {
        if self.on && listed > self.committed.get() {
            m.lock(self.state_lock, Side::Read).await;
            m.unlock(self.state_lock, Side::Read).await;
            self.file(m).await;
        }
    }

    /// `is_handle_aborted` reads `t_journal`, in the line in which the transaction's lists begin.
    async fn is_aborted<M: Machine>(&self, m: &M) {
        m.touch(self.lists, Access::Read);
        m.settle().await;
    }

    /// `__jbd2_journal_file_buffer`: a block goes to the end of a list of the running transaction, between the last one and the first.
    async fn enter<M: Machine>(&self, m: &M) {
        m.lock(self.list_lock, Side::Write).await;
        m.touch(self.lists, Access::Write);
        m.touch(self.ends, Access::Write);
        m.settle().await;
        m.unlock(self.list_lock, Side::Write).await;
    }

    /// Moves a block between the lists of transactions, under `j_list_lock`.
    pub(super) async fn file<M: Machine>(&self, m: &M) {
        m.lock(self.list_lock, Side::Write).await;
        m.unlock(self.list_lock, Side::Write).await;
    }

    /// The end of a handle that has changed these blocks (all are changed here): credits that it did not use are given back, and
    /// the last handle of a locked transaction wakes the committer. Returns the transaction's number.
    pub async fn stop<M: Machine>(&self, m: &M, mut handle: Handle, changed: &[Block]) -> u64 {
        if !self.on {
            return 0;
        }
        for &block in changed {
            self.change(m, &mut handle, block).await;
        }
        self.is_aborted(m).await;
        m.touch(self.line, Access::Read); // t_expires
        m.settle().await;
        self.count(m, SUBTRACTED_AT_STOP).await;
        self.credits.set(self.credits.get().saturating_sub(handle.credits.saturating_sub(handle.used)));
        self.updates.set(self.updates.get() - 1);
        if self.locked.get() && self.updates.get() == 0 {
            self.wake_committer(m);
        }
        handle.transaction
    }
}
