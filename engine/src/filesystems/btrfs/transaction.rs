//! The running transaction as tasks meet it: starting, joining and ending a handle, and being kept out while it commits
//! (`fs/btrfs/transaction.c` of Linux 6.18).

use crate::filesystems::costs::Costs;
use crate::machine::{Access, LineId, TaskId};
use crate::waist::Machine;
use std::cell::{Cell, RefCell};

/// Whom a commit keeps out, step by step (`btrfs_blocked_trans_types`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Nobody.
    Running,
    /// Handles that are started (`TRANS_STATE_COMMIT_START`).
    CommitStart,
    /// Handles that join, too (`TRANS_STATE_COMMIT_DOING`).
    CommitDoing,
}

/// A task's part in the transaction (`struct btrfs_trans_handle`).
#[must_use]
pub struct Handle {
    /// It was started, not joined.
    started: bool,
}

/// The running transaction (`struct btrfs_transaction`) and the space that handles reserve.
pub struct Transaction {
    counters: LineId,
    space_info: LineId,
    /// Handles that were started and, first, all of them (`num_extwriters`, `num_writers`).
    writers: Cell<u32>,
    started: Cell<u32>,
    state: Cell<State>,
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
            started: Cell::new(0),
            state: Cell::new(State::Running),
            waiting: RefCell::default(),
            committer: Cell::new(None),
        })
    }

    /// `btrfs_start_transaction`: reserves room, then waits while the transaction is being committed.
    pub async fn start<M: Machine>(&self, m: &M) -> Handle {
        m.touch(self.space_info, Access::Write);
        self.enter(m, true).await
    }

    /// `btrfs_join_transaction`: waits only while a commit wants no more changes.
    pub async fn join<M: Machine>(&self, m: &M) -> Handle {
        self.enter(m, false).await
    }

    async fn enter<M: Machine>(&self, m: &M, started: bool) -> Handle {
        let kept_out = if started { State::CommitStart } else { State::CommitDoing };
        m.touch(self.counters, Access::Write);
        while self.state.get() >= kept_out {
            self.waiting.borrow_mut().push(m.task());
            m.park().await;
        }
        self.writers.set(self.writers.get() + 1);
        self.started.set(self.started.get() + u32::from(started));
        Handle { started }
    }

    /// `btrfs_end_transaction`.
    pub fn end<M: Machine>(&self, m: &M, handle: Handle) {
        m.touch(self.space_info, Access::Write);
        m.touch(self.counters, Access::Write);
        self.writers.set(self.writers.get() - 1);
        self.started.set(self.started.get() - u32::from(handle.started));
        if self.is_awaited() {
            if let Some(committer) = self.committer.get() {
                m.wake(committer);
            }
        }
    }

    /// Whether the handles that a commit waits for have ended.
    fn is_awaited(&self) -> bool {
        match self.state.get() {
            State::Running => false,
            State::CommitStart => self.started.get() == 0,
            State::CommitDoing => self.writers.get() == 0,
        }
    }

    /// Keeps handles that are started out and waits for the present ones to end.
    pub async fn block_starts<M: Machine>(&self, m: &M) {
        self.block(m, State::CommitStart).await;
    }

    /// Keeps all handles out and waits for the present ones to end.
    pub async fn block_all<M: Machine>(&self, m: &M) {
        self.block(m, State::CommitDoing).await;
    }

    async fn block<M: Machine>(&self, m: &M, state: State) {
        self.committer.set(Some(m.task()));
        self.state.set(state);
        while !self.is_awaited() {
            m.park().await;
        }
    }

    /// Lets handles of the next transaction in (`TRANS_STATE_UNBLOCKED`).
    pub fn unblock<M: Machine>(&self, m: &M) {
        self.state.set(State::Running);
        for task in std::mem::take(&mut *self.waiting.borrow_mut()) {
            m.wake(task);
        }
    }
}
