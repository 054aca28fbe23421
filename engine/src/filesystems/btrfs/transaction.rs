//! The running transaction as tasks meet it: starting, joining and ending a handle, and being kept out while it commits
//! (`fs/btrfs/transaction.c` of Linux 6.18).

use crate::filesystems::costs::Costs;
use crate::machine::{Access, LineId, TaskId};
use crate::waist::Machine;
use std::cell::{Cell, RefCell};

/// The running transaction (`struct btrfs_transaction`) and the space that handles reserve.
pub struct Transaction {
    counters: LineId,
    space_info: LineId,
    writers: Cell<u32>,
    blocked: Cell<bool>,
    waiting: RefCell<Vec<TaskId>>,
    committer: Cell<Option<TaskId>>,
}

impl Transaction {
    /// A transaction without handles.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            counters: m.new_line(costs.number("btrfs_transaction.shared")? as u32),
            space_info: m.new_line(costs.number("btrfs_space_info.shared")? as u32),
            writers: Cell::new(0),
            blocked: Cell::new(false),
            waiting: RefCell::default(),
            committer: Cell::new(None),
        })
    }

    /// `btrfs_start_transaction`: reserves room, then joins.
    pub async fn start<M: Machine>(&self, m: &M) {
        m.touch(self.space_info, Access::Write);
        self.join(m).await;
    }

    /// `btrfs_join_transaction`: waits while the transaction is being committed.
    pub async fn join<M: Machine>(&self, m: &M) {
        m.touch(self.counters, Access::Write);
        while self.blocked.get() {
            self.waiting.borrow_mut().push(m.task());
            m.park().await;
        }
        self.writers.set(self.writers.get() + 1);
    }

    /// `btrfs_end_transaction`.
    pub fn end<M: Machine>(&self, m: &M) {
        m.touch(self.space_info, Access::Write);
        m.touch(self.counters, Access::Write);
        self.writers.set(self.writers.get() - 1);
        if self.blocked.get() && self.writers.get() == 0 {
            if let Some(committer) = self.committer.get() {
                m.wake(committer);
            }
        }
    }

    /// Keeps new handles out and waits for the present ones to end (`TRANS_STATE_COMMIT_DOING`).
    pub async fn block<M: Machine>(&self, m: &M) {
        self.committer.set(Some(m.task()));
        self.blocked.set(true);
        while self.writers.get() > 0 {
            m.park().await;
        }
    }

    /// Lets handles of the next transaction in (`TRANS_STATE_UNBLOCKED`).
    pub fn unblock<M: Machine>(&self, m: &M) {
        self.blocked.set(false);
        for task in std::mem::take(&mut *self.waiting.borrow_mut()) {
            m.wake(task);
        }
    }
}
