//! The journal (`fs/jbd2`): handles join the running transaction; a thread commits it when somebody syncs or its time is up.
//!
//! A commit locks the transaction until its handles have stopped, then lets new handles go on in the next one, writes a
//! descriptor and the changed blocks to the log, waits for them, and writes the commit record with `REQ_PREFLUSH` and
//! `REQ_FUA`. Who syncs a transaction waits for it; what he changed while another was committed is in the next.

use crate::cost_table;
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::BLOCK;
use crate::machine::{Access, Account, LineId, LockId, TaskId, Time};
use crate::waist::Machine;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

cost_table!(CommitCosts {
    lock: ["wfsync.commit_lock"],
    block: ["wfsync.commit_block"],
    end: ["wfsync.commit_end"],
});

/// A block that transactions change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Block {
    /// The one to which these lines belong.
    Of(LineId),
    /// The part of the inode table that holds a slot.
    Inode(u32),
}

/// Inodes of 256 bytes in a block of the inode table.
const INODES: u32 = 16;

/// The journal as handles and `fsync` meet it.
pub(super) struct Journal {
    /// Whether there is one at all: without, handles cost nothing and meet nowhere.
    pub on: bool,
    costs: CommitCosts,
    /// `j_state_lock` and the counters of the running transaction.
    line: LineId,
    /// Number of the running transaction, and of the last one on disk.
    running: Cell<u64>,
    committed: Cell<u64>,
    updates: Cell<u32>,
    locked: Cell<bool>,
    waiting: RefCell<Vec<TaskId>>,
    committer: Cell<Option<TaskId>>,
    /// The last transaction that somebody wants committed (`j_commit_request`).
    requested: Cell<u64>,
    /// Who waits for which transaction (`jbd2_log_wait_commit`).
    syncers: RefCell<Vec<(u64, LockId)>>,
    /// Blocks that the running transaction has changed, and the transaction that each was last changed in.
    blocks: Cell<u32>,
    lines: RefCell<Vec<u64>>,
    inodes: RefCell<Vec<u64>>,
    storage: Rc<BlockDevice>,
}

impl Journal {
    /// An empty one, with a group of cache lines that every handle writes.
    pub fn new<M: Machine>(m: &M, on: bool, storage: Rc<BlockDevice>, costs: &Costs<'_>) -> Result<Self, String> {
        let lines = |name: &str| costs.number(name).map(|n| n as u32);
        Ok(Self {
            on,
            costs: CommitCosts::new(costs)?,
            line: m.new_line(lines("jbd2_handle.journal")? + lines("jbd2_handle.transaction")?),
            running: Cell::new(1),
            committed: Cell::new(0),
            updates: Cell::new(0),
            locked: Cell::new(false),
            waiting: RefCell::default(),
            committer: Cell::new(None),
            requested: Cell::new(0),
            syncers: RefCell::default(),
            blocks: Cell::new(0),
            lines: RefCell::default(),
            inodes: RefCell::default(),
            storage,
        })
    }

    /// `jbd2_journal_start`: waits while the running transaction is being locked for commit. Returns its number.
    pub async fn start<M: Machine>(&self, m: &M) -> u64 {
        if !self.on {
            return 0;
        }
        m.touch(self.line, Access::Write);
        while self.locked.get() {
            self.waiting.borrow_mut().push(m.task());
            m.wchan("wait_transaction_locked");
            m.park().await;
        }
        self.updates.set(self.updates.get() + 1);
        self.running.get()
    }

    /// `jbd2_journal_stop` of a handle that has changed these blocks; the last of a locked transaction wakes the committer.
    pub fn stop<M: Machine>(&self, m: &M, changed: &[Block]) {
        if !self.on {
            return;
        }
        m.touch(self.line, Access::Write);
        changed.iter().for_each(|&block| self.change(block));
        self.updates.set(self.updates.get() - 1);
        if self.locked.get() && self.updates.get() == 0 {
            self.wake_committer(m);
        }
    }

    fn change(&self, block: Block) {
        let (mut stamps, at) = match block {
            Block::Of(line) => (self.lines.borrow_mut(), line as usize),
            Block::Inode(slot) => (self.inodes.borrow_mut(), (slot / INODES) as usize),
        };
        if stamps.len() <= at {
            stamps.resize(at + 1, 0);
        }
        if std::mem::replace(&mut stamps[at], self.running.get()) != self.running.get() {
            self.blocks.set(self.blocks.get() + 1);
        }
    }

    /// Waits until a transaction is on disk (`jbd2_complete_transaction`). Returns whether there was anything to wait for.
    pub async fn sync<M: Machine>(&self, m: &M, transaction: u64) -> bool {
        if transaction <= self.committed.get() {
            return false;
        }
        if self.requested.get() < transaction {
            self.requested.set(transaction);
            self.wake_committer(m);
        }
        let done = m.new_completion();
        self.syncers.borrow_mut().push((transaction, done));
        m.wchan("jbd2_log_wait_commit");
        m.wait_for(done).await;
        m.drop_completion(done);
        true
    }

    fn wake_committer<M: Machine>(&self, m: &M) {
        if let Some(committer) = self.committer.get() {
            m.wake(committer);
        }
    }

    /// The program of `kjournald2`: commits when asked to, or after `interval` ticks.
    pub async fn thread<M: Machine>(&self, m: &M, interval: u64) {
        self.committer.set(Some(m.task()));
        loop {
            if self.requested.get() < self.running.get() {
                let due = m.wake_at_tick(m.task(), interval);
                while self.requested.get() < self.running.get() && m.now() < due {
                    m.park().await;
                }
            }
            self.commit(m).await;
        }
    }

    /// `jbd2_journal_commit_transaction`.
    async fn commit<M: Machine>(&self, m: &M) {
        self.locked.set(true);
        while self.updates.get() > 0 {
            m.wchan("jbd2_journal_wait_updates");
            m.park().await;
        }
        m.run(Account::System, self.costs.lock).await;
        let (transaction, blocks) = (self.running.get(), self.blocks.take());
        self.running.set(transaction + 1);
        self.locked.set(false);
        for task in std::mem::take(&mut *self.waiting.borrow_mut()) {
            m.wake(task);
        }
        if blocks > 0 {
            m.run(Account::System, self.costs.block * Time::from(blocks)).await;
            self.storage.write(m, (blocks + 1) * BLOCK).await; // neighbours in the log, with their descriptor
            self.storage.write_ordered(m, BLOCK).await;
        }
        m.run(Account::System, self.costs.end).await;
        self.committed.set(transaction);
        self.wake_syncers(m).await;
    }

    async fn wake_syncers<M: Machine>(&self, m: &M) {
        let committed = self.committed.get();
        loop {
            let next = self.syncers.borrow().iter().position(|(waits, _)| *waits <= committed);
            let Some(next) = next else { return };
            let (_, done) = self.syncers.borrow_mut().remove(next);
            m.complete(done).await;
        }
    }
}
