//! The journal (`fs/jbd2`): handles join the running transaction; a thread commits it when somebody syncs, its time is up, or it
//! is full.
//!
//! A commit (`commit`) locks the transaction until its handles have stopped, then lets new handles go on in the next one, writes
//! descriptors and the changed blocks to the log, waits for them, and writes the commit record with `REQ_PREFLUSH` and
//! `REQ_FUA`. A block that is being written to the log cannot be changed. Who syncs a transaction waits for it; what he changed
//! while another was committed is in the next. Room in the log (`space`) comes from blocks that are written to their places.

mod blocks;
mod clean;
mod commit;
mod handles;
mod reserved;
mod space;
#[cfg(test)]
mod tests;

use crate::cost_table;
use crate::devices::{BlockDevice, End, Request};
use crate::filesystems::costs::Costs;
use crate::filesystems::log_area::LogArea;
use crate::filesystems::BLOCK;
use crate::waist::Machine;
use crate::waist::{Access, LineId, LockId, Side, TaskId};
use blocks::Blocks;
use clean::CheckpointList;
use commit::Shadow;
use reserved::Reserved;
use space::Space;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

pub(super) use blocks::Block;
pub(super) use handles::{credits, Handle};

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
    /// The first line of the running transaction, with the heads of its lists (`t_nr_buffers`, `t_buffers`) beside `t_journal`.
    lists: LineId,
    /// The journal heads at the ends of its lists, which who files a block stores to.
    ends: LineId,
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
    checkpoint_list: CheckpointList,
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
            line: m.new_line("ext4.t_updates", lines("jbd2_handle.journal")? - 1 + lines("jbd2_handle.transaction")?),
            lists: m.new_line("ext4.t_buffers", 1),
            ends: m.new_line("ext4.journal heads", 1),
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
            checkpoint_list: CheckpointList::new(m, costs)?,
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

    /// The line of the running transaction in which its lists begin, beside what every handle reads.
    pub fn transaction(&self) -> LineId {
        self.lists
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

    /// `jbd2_log_start_commit`.
    async fn start_commit<M: Machine>(&self, m: &M, transaction: u64) {
        if self.requested.get() < transaction {
            m.lock(self.state_lock, Side::Write).await;
            self.requested.set(self.requested.get().max(transaction));
            m.unlock(self.state_lock, Side::Write).await;
            self.wake_committer(m);
        }
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

    /// `jbd2_get_latest_transaction`: the running one if a handle has changed anything in it, else the one before.
    pub async fn latest<M: Machine>(&self, m: &M) -> u64 {
        m.lock(self.state_lock, Side::Read).await;
        let has_handles = self.updates.get() > 0 || self.credits.get() > 0;
        let latest = self.running.get() - u64::from(!has_handles);
        m.unlock(self.state_lock, Side::Read).await;
        latest
    }

    /// `jbd2_journal_start_commit` of the latest transaction.
    pub async fn start_commit_of<M: Machine>(&self, m: &M, latest: u64) {
        m.lock(self.state_lock, Side::Write).await;
        let asks = self.requested.get() < latest;
        self.requested.set(self.requested.get().max(latest));
        m.unlock(self.state_lock, Side::Write).await;
        if asks {
            self.wake_committer(m);
        }
    }

    /// `sync_blockdev`: committed blocks that are dirty in the device's page cache are written. They leave the checkpoint lists, and the log's
    /// space is free with the next checkpoint.
    pub async fn write_in_place<M: Machine>(&self, m: &M) {
        let (blocks, done) = (self.blocks.begin_write(self.committed.get()), m.new_completion());
        for _ in 0..blocks {
            self.storage.submit(m, Request::write(BLOCK, None), End::Complete(done)).await;
        }
        for _ in 0..blocks {
            m.wchan("sync_blockdev");
            m.wait_for_io(done).await;
        }
        m.drop_completion(done);
        self.blocks.end_write(blocks);
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
