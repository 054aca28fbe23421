//! The journal (`fs/jbd2`): handles join the running transaction; a thread commits it when somebody syncs, its time is up, or it
//! is full.
//!
//! A commit (`commit`) locks the transaction until its handles have stopped, then lets new handles go on in the next one, writes
//! descriptors and the changed blocks to the log, waits for them, and writes the commit record with `REQ_PREFLUSH` and
//! `REQ_FUA`. A block that is being written to the log cannot be changed. Who syncs a transaction waits for it; what he changed
//! while another was committed is in the next. Room in the log (`space`) comes from blocks that are written to their places.

mod blocks;
mod commit;
mod reserved;
mod space;
#[cfg(test)]
mod tests;

use crate::cost_table;
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::log_area::LogArea;
use crate::filesystems::BLOCK;
use crate::waist::Machine;
use crate::waist::{Access, LineId, LockId, Side, TaskId};
use blocks::Blocks;
use commit::Shadow;
use reserved::Reserved;
use space::Space;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

pub(super) use blocks::Block;

cost_table!(CommitCosts {
    lock: ["wfsync.commit_lock"],
    log: ["wfsync.commit_log"],
    block: ["wfsync.commit_block"],
    submit: ["wfsync.commit_submit"],
    written: ["wfsync.commit_written"],
    refile: ["wfsync.commit_refile"],
    record: ["wfsync.commit_record"],
    end: ["wfsync.commit_end"],
});

/// Blocks that a handle may change (`h_total_credits`): those that the kernel asks for are told in its tracepoint
/// `jbd2_handle_start`, `req=47` for a create, 25 for an unlink, 30 for an eviction (6.18).
pub(super) mod credits {
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

/// Counts of the running transaction that a handle's start adds to, one after the other: `t_outstanding_credits`, `t_updates`,
/// `t_handle_count` (`start_this_handle`, `add_transaction_credits`). They share a line.
const ADDED_AT_START: u32 = 3;
/// Those that its stop subtracts from, after a look at `t_expires` in the same line (`jbd2_journal_stop`, `stop_this_handle`).
const SUBTRACTED_AT_STOP: u32 = 2;

/// A handle: the transaction that it is part of, and what it may change in it and has changed.
pub(super) struct Handle {
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

/// The journal as handles and `fsync` meet it.
pub(super) struct Journal {
    /// Whether there is one at all: without, handles cost nothing and meet nowhere.
    pub on: bool,
    costs: CommitCosts,
    /// `s_orphan_lock`, in whose line the pointer to the journal lies.
    beside: LockId,
    state_lock: LockId,
    list_lock: LockId,
    /// Who gets a block to write looks for errors of the device.
    device_checks: bool,
    checkpoint_mutex: LockId,
    /// What handles change besides `j_state_lock`: the counters of the running transaction.
    line: LineId,
    /// Number of the running transaction, and of the last one on disk.
    running: Cell<u64>,
    committed: Cell<u64>,
    /// The last one whose commit record was written behind a flush (`T_COMMIT_JFLUSH`): what is written from then on is not flushed with it.
    flushing: Cell<u64>,
    updates: Cell<u32>,
    /// Blocks that the running transaction has and its handles may still change (`t_outstanding_credits`).
    credits: Cell<u32>,
    locked: Cell<bool>,
    /// It is locked, its handles have stopped, and nobody can join it any more (`T_SWITCH`).
    switching: Cell<bool>,
    waiting: RefCell<Vec<TaskId>>,
    reserved: Reserved,
    committer: Cell<Option<TaskId>>,
    /// The last transaction that somebody wants committed (`j_commit_request`).
    requested: Cell<u64>,
    /// Who waits for some transaction to be on disk (`j_wait_done_commit`), the newest last.
    syncers: RefCell<Vec<TaskId>>,
    blocks: Blocks,
    space: Space,
    area: LogArea,
    shadow: Cell<Shadow>,
    /// Who waits for a block that is being written to the log.
    shadowed: RefCell<Vec<TaskId>>,
    storage: Rc<BlockDevice>,
}

impl Journal {
    /// An empty one on a filesystem of so many bytes, with a group of cache lines that every handle writes.
    pub fn new<M: Machine>(
        m: &M,
        on: bool,
        size: u64,
        beside: LockId,
        storage: Rc<BlockDevice>,
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        let lock = |name, role| m.new_lock(m.class(name, role));
        let space = Space::of(size, costs.rules().transaction_size);
        Ok(Self {
            on,
            costs: CommitCosts::new(costs)?,
            beside,
            state_lock: lock("ext4.j_state_lock", "ext4.j_state_lock"),
            list_lock: lock("ext4.j_list_lock", "ext4.j_list_lock"),
            device_checks: costs.rules().device_checks,
            checkpoint_mutex: lock("ext4.j_checkpoint_mutex", "ext4.j_checkpoint_mutex"),
            // The first line of the journal is that of j_state_lock.
            line: m.new_line(lines("jbd2_handle.journal")? - 1 + lines("jbd2_handle.transaction")?),
            running: Cell::new(1),
            committed: Cell::new(0),
            flushing: Cell::new(0),
            updates: Cell::new(0),
            credits: Cell::new(0),
            locked: Cell::new(false),
            switching: Cell::new(false),
            waiting: RefCell::default(),
            reserved: Reserved::default(),
            committer: Cell::new(None),
            requested: Cell::new(0),
            syncers: RefCell::default(),
            blocks: Blocks::default(),
            // mke2fs puts it into the middle (`get_midpoint_journal_block` of e2fsprogs).
            area: LogArea::new(size / 2, u64::from(space.size) * u64::from(BLOCK)),
            space,
            shadow: Cell::default(),
            shadowed: RefCell::default(),
            storage,
        })
    }

    /// `j_list_lock`, if who gets a block to write looks at `j_fs_dev` in its line.
    pub fn device(&self) -> Option<LockId> {
        (self.on && self.device_checks).then_some(self.list_lock)
    }

    /// `jbd2_transaction_committed` under the lock.
    pub async fn asks_committed<M: Machine>(&self, m: &M) {
        m.lock(self.state_lock, Side::Read).await;
        m.touch_beside(self.state_lock, Access::Read); // j_running_transaction, j_committing_transaction
        m.settle().await;
        m.unlock(self.state_lock, Side::Read).await;
    }

    /// Blocks of the log.
    pub fn log_blocks(&self) -> u64 {
        if self.on {
            u64::from(self.space.size)
        } else {
            0
        }
    }

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

    /// `jbd2_log_start_commit`.
    async fn start_commit<M: Machine>(&self, m: &M, transaction: u64) {
        if self.requested.get() < transaction {
            m.lock(self.state_lock, Side::Write).await;
            self.requested.set(self.requested.get().max(transaction));
            m.unlock(self.state_lock, Side::Write).await;
            self.wake_committer(m);
        }
    }

    /// `jbd2_journal_get_write_access` and `jbd2_journal_dirty_metadata`: the first change of a block in a transaction files it
    /// twice, and waits while it is being written to the log.
    async fn change<M: Machine>(&self, m: &M, handle: &mut Handle, block: Block) {
        if !matches!(block, Block::Inodes(_)) {
            self.look_at_device(m).await;
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
            m.park().await;
        }
        self.file(m).await;
        self.file(m).await;
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

    /// Moves a block between the lists of transactions, under `j_list_lock`.
    async fn file<M: Machine>(&self, m: &M) {
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

    /// Whether the device is still to be flushed for a transaction (`jbd2_trans_will_send_data_barrier`).
    pub async fn will_send_data_barrier<M: Machine>(&self, m: &M, transaction: u64) -> bool {
        m.lock(self.state_lock, Side::Read).await;
        let will = transaction > self.committed.get().max(self.flushing.get());
        m.unlock(self.state_lock, Side::Read).await;
        will
    }

    /// The number of the transaction that handles belong to.
    pub fn running(&self) -> u64 {
        self.running.get()
    }

    /// Waits until a transaction is on disk (`jbd2_complete_transaction`).
    pub async fn sync<M: Machine>(&self, m: &M, transaction: u64) {
        if transaction <= self.committed.get() {
            return;
        }
        self.start_commit(m, transaction).await;
        while transaction > self.committed.get() {
            if !self.syncers.borrow().contains(&m.task()) {
                self.syncers.borrow_mut().push(m.task());
            }
            m.wchan("jbd2_log_wait_commit");
            m.park().await;
        }
    }

    /// Has the running transaction committed, and waits for that (`jbd2_journal_force_commit_nested`).
    pub async fn force_commit<M: Machine>(&self, m: &M) {
        self.sync(m, self.running.get()).await;
    }

    fn wake_committer<M: Machine>(&self, m: &M) {
        if let Some(committer) = self.committer.get() {
            m.wake(committer);
        }
    }

    /// The program of `kjournald2`: commits when asked to, or after `interval` ticks.
    /// With each transaction that is on disk it does `committed` (`j_commit_callback`).
    pub async fn thread<M: Machine, F: Future<Output = ()>>(&self, m: &M, interval: u64, committed: impl Fn(u64) -> F) {
        self.committer.set(Some(m.task()));
        loop {
            if self.requested.get() < self.running.get() {
                let due = m.wake_at_tick(m.task(), interval);
                while self.requested.get() < self.running.get() && m.now() < due {
                    m.park().await;
                }
            }
            self.commit(m, &committed).await;
        }
    }
}

/// `wake_up`: all who wait, the newest first (`__add_wait_queue`), each for the time of a wake-up; whoever waits for something else
/// looks and sleeps again.
async fn wake_all<M: Machine>(m: &M, queue: &RefCell<Vec<TaskId>>) {
    for task in queue.take().into_iter().rev() {
        m.wake(task);
        m.pay().await;
    }
}
