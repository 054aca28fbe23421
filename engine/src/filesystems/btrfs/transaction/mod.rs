//! Transactions as tasks meet them: starting, joining and ending a handle of the running one, being kept out while it commits, and
//! waiting until one is on disk (`fs/btrfs/transaction.c` of Linux 5.9 to 6.18).

pub mod btree_inode;
pub mod commit;
pub mod delayed;
mod flush;
pub mod reclaim;
pub mod tickets;
pub mod worker;

use super::space::reservations::Reservations;
use crate::filesystems::costs::Costs;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, TaskId, Time};
use std::cell::{Cell, RefCell};

/// Whom a commit keeps out, step by step (`btrfs_blocked_trans_types`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Nobody, and nobody is committing it.
    Running,
    /// Nobody yet (`TRANS_STATE_COMMIT_PREP`).
    CommitPrep,
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
    /// Bytes that it has reserved.
    bytes: u64,
}

/// The running transaction (`struct btrfs_transaction`) and the space that handles reserve.
pub struct Transaction {
    trans_lock: LockId,
    counters: LineId,
    /// Time under `trans_lock` of who starts or joins (`join_transaction`).
    pub join_time: Time,
    /// Room that handles reserve.
    pub reservations: Reservations,
    /// Handles that were started and, first, all of them (`num_extwriters`, `num_writers`).
    writers: Cell<u32>,
    started: Cell<u32>,
    state: Cell<State>,
    waiting: RefCell<Vec<TaskId>>,
    committer: Cell<Option<TaskId>>,
    /// The last transaction with its superblocks on disk, and the last with which all is done.
    on_disk: Cell<u64>,
    done: Cell<u64>,
    /// Tasks that wait for either, in the order in which they came.
    waiting_for_commit: RefCell<Vec<TaskId>>,
    /// The last transaction of which an fsync must commit all (`last_trans_log_full_commit`).
    full_commit: Cell<u64>,
    /// A task runs the delayed refs of the running transaction before its commit (`BTRFS_DELAYED_REFS_FLUSHING`).
    flushing: Cell<bool>,
    /// A task writes changed block groups of the running transaction before its commit (`BTRFS_TRANS_DIRTY_BG_RUN`).
    writes_groups: Cell<bool>,
    /// When the running transaction began.
    began: Cell<Time>,
    /// Bytes that handles have reserved (`trans_block_rsv`), and evictions.
    pub held: Cell<u64>,
    /// Somebody has had a handle of it.
    has_run: Cell<bool>,
}

impl Transaction {
    /// A transaction without handles; the one before it, of this number, is on disk.
    pub fn new<M: Machine>(m: &M, before: u64, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            trans_lock: m.new_lock(m.class("btrfs.trans_lock", "btrfs.trans_lock")),
            counters: m.new_line("btrfs.num_writers", costs.number("btrfs_transaction.shared")? as u32),
            join_time: costs.sum(&["trans_join"])?,
            reservations: Reservations::new(m, costs)?,
            writers: Cell::new(0),
            started: Cell::new(0),
            state: Cell::new(State::Running),
            waiting: RefCell::default(),
            committer: Cell::new(None),
            on_disk: Cell::new(before),
            done: Cell::new(before),
            waiting_for_commit: RefCell::default(),
            full_commit: Cell::new(0),
            flushing: Cell::new(false),
            writes_groups: Cell::new(false),
            began: Cell::new(0),
            held: Cell::new(0),
            has_run: Cell::new(false),
        })
    }

    /// `btrfs_start_transaction` of one that has room of so many bytes: waits while the transaction is being committed.
    pub async fn start<M: Machine>(&self, m: &M, bytes: u64) -> Handle {
        self.reservations.reserve(m).await;
        Handle { bytes, ..self.enter(m, true).await }
    }

    /// Room that was reserved is given back.
    pub fn give_back(&self, bytes: u64) {
        self.held.set(self.held.get() - bytes);
    }

    /// `btrfs_join_transaction`: waits only while a commit wants no more changes.
    pub async fn join<M: Machine>(&self, m: &M) -> Handle {
        self.enter(m, false).await
    }

    /// `btrfs_join_transaction_spacecache`: a commit waits for who wants this handle, and lets it in at any time.
    pub async fn join_nolock<M: Machine>(&self, m: &M) -> Handle {
        self.writers.set(self.writers.get() + 1);
        self.count(m, false).await;
        Handle { started: false, bytes: 0 }
    }

    async fn enter<M: Machine>(&self, m: &M, started: bool) -> Handle {
        let kept_out = if started { State::CommitStart } else { State::CommitDoing };
        while !self.join_transaction(m, started, kept_out).await {
            if self.state.get() >= kept_out {
                self.waiting.borrow_mut().push(m.task());
                m.wchan("wait_current_trans");
                m.park().await;
            }
        }
        Handle { started, bytes: 0 }
    }

    /// Under the filesystem's `trans_lock`: whether the running transaction lets one more handle in.
    async fn join_transaction<M: Machine>(&self, m: &M, started: bool, kept_out: State) -> bool {
        m.lock(self.trans_lock, Side::Write).await;
        m.touch(self.counters, Access::Read); // the state
        m.settle().await;
        m.run(Account::System, self.join_time).await;
        let open = self.state.get() < kept_out;
        if open {
            self.writers.set(self.writers.get() + 1);
            self.has_run.set(true);
            self.started.set(self.started.get() + u32::from(started));
            self.count(m, started).await;
        }
        m.unlock(self.trans_lock, Side::Write).await;
        open
    }

    /// Changes `use_count`, `num_writers` and, of who has started, `num_extwriters`, one after the other.
    async fn count<M: Machine>(&self, m: &M, started: bool) {
        for _ in 0..2 + u32::from(started) {
            m.touch(self.counters, Access::Atomic);
            m.settle().await;
        }
    }

    /// `btrfs_end_transaction`. Who joined has no room to give back (`btrfs_trans_release_metadata`).
    pub async fn end<M: Machine>(&self, m: &M, handle: Handle) {
        if handle.started {
            self.reservations.release(m).await;
        }
        self.give_back(handle.bytes);
        self.count(m, handle.started).await;
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
            State::Running | State::CommitPrep => false,
            State::CommitStart => self.started.get() == 0,
            State::CommitDoing => self.writers.get() == 0,
        }
    }

    /// Whether nobody has a handle and no transaction is being committed.
    pub fn at_rest(&self) -> bool {
        self.writers.get() == 0 && self.state.get() == State::Running
    }

    /// Takes the running transaction's commit upon this task, unless another has.
    pub fn begin_commit(&self) -> bool {
        let mine = self.state.get() == State::Running;
        if mine {
            self.state.set(State::CommitPrep);
        }
        mine
    }

    /// Whether this task is the one to run delayed refs ahead of the commit, of all that want it.
    pub fn begin_flush(&self) -> bool {
        !self.flushing.replace(true)
    }

    /// Whether this task is the one to write block groups ahead of the commit.
    pub fn begin_groups(&self) -> bool {
        !self.writes_groups.replace(true)
    }

    /// Keeps handles that are started out from now on.
    pub fn keep_starts_out(&self, m: &impl Machine) {
        self.committer.set(Some(m.task()));
        self.state.set(State::CommitStart);
    }

    /// Says that an fsync of this transaction must commit all of it.
    pub fn set_full_commit(&self, number: u64) {
        self.full_commit.set(number);
    }

    /// Whether an fsync of this transaction must commit all of it.
    pub fn needs_full_commit(&self, number: u64) -> bool {
        self.full_commit.get() == number
    }

    /// Whether a commit that an fsync asked for is on its way.
    pub fn full_commit_under_way(&self) -> bool {
        self.full_commit.get() > self.done.get()
    }

    /// The last transaction with which all is done (`last_trans_committed`).
    pub fn committed(&self) -> u64 {
        self.done.get()
    }

    /// Whether somebody has had a handle of the running transaction.
    pub fn has_run(&self) -> bool {
        self.has_run.get()
    }

    /// When the running transaction began.
    pub fn began(&self) -> Time {
        self.began.get()
    }

    /// Sleeps until a transaction's superblocks are on disk, or until all is done (`wait_for_commit`).
    pub async fn wait_for_commit<M: Machine>(&self, m: &M, number: u64, until_done: bool) {
        let reached = if until_done { &self.done } else { &self.on_disk };
        while reached.get() < number {
            self.waiting_for_commit.borrow_mut().push(m.task());
            m.wchan("wait_for_commit");
            m.park().await;
        }
    }

    /// A transaction's superblocks are on disk, or all is done with it.
    pub fn finish<M: Machine>(&self, m: &M, number: u64, all: bool) {
        if all { &self.done } else { &self.on_disk }.set(number);
        for task in std::mem::take(&mut *self.waiting_for_commit.borrow_mut()) {
            m.wake(task);
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
        self.state.set(state.max(self.state.get()));
        while !self.is_awaited() {
            m.wchan("btrfs_commit_transaction");
            m.park().await;
        }
    }

    /// Lets handles of the next transaction in (`TRANS_STATE_UNBLOCKED`).
    pub fn unblock<M: Machine>(&self, m: &M) {
        self.state.set(State::Running);
        self.flushing.set(false);
        self.writes_groups.set(false);
        self.began.set(m.now());
        self.has_run.set(false);
        for task in std::mem::take(&mut *self.waiting.borrow_mut()) {
            m.wake(task);
        }
    }
}
