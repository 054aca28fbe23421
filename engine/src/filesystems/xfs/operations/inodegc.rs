//! Background inactivation (`xfs_inodegc_queue`, `xfs_inodegc_worker`): every CPU has a list of unlinked inodes and a worker
//! bound to it that frees them.
//!
//! A queued inode starts the worker one jiffy later; with more than a cluster's worth of inodes on the list (32 of 512
//! bytes) at once; with more than 256 the unlinking task waits for the worker (`xfs_inodegc_want_flush_work`). The worker frees
//! what is on the list when it starts. What comes meanwhile is for its next start. Each inode arms the timer anew, also one that
//! comes between the timer and the start (`mod_delayed_work`). A `statfs` has all workers start (`xfs_inodegc_push`), and from 5.15 to
//! 5.18 it also waits until they have returned (`xfs_inodegc_flush`).

use crate::filesystems::costs::Costs;
use crate::kernel::xfs::Inactivation;
use crate::waist::Machine;
use crate::waist::{Access, LineId, LockId, Side, TaskId, Time};
use std::cell::{Cell, RefCell};

/// When a list starts its worker at once, and when it stops who adds to it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// More inodes than a cluster holds.
    pub batch: usize,
    /// `XFS_INODEGC_MAX_BACKLOG`.
    pub throttle: usize,
    /// The worker of the mount begins at once (`queue_delayed_work` without a delay), and nobody waits for it.
    pub at_once: bool,
}

impl Limits {
    /// Those of the costs; the error names one that is missing.
    pub fn new(costs: &Costs<'_>) -> Result<Self, String> {
        let count = |name: &str| costs.number(name).map(|n| n as usize);
        Ok(Self { batch: count("inodegc_batch")?, throttle: count("inodegc_throttle")?, at_once: false })
    }

    /// Those of the kernel that frees inodes so.
    pub fn of(self, inactivation: Inactivation) -> Self {
        match inactivation {
            Inactivation::PerMount => Self { throttle: usize::MAX, at_once: true, ..self },
            _ => self,
        }
    }
}

/// The queue of all workers (`m_inodegc_wq`), as `flush_workqueue` goes over it: under its mutex it changes the colour of each CPU's
/// part of the queue (`struct pool_workqueue`), under the lock of the workers of that CPU (`struct worker_pool`), one after the other.
pub struct WorkQueue {
    mutex: LockId,
    /// A line of each part, and that of its lock.
    parts: Vec<LineId>,
}

impl WorkQueue {
    /// Of a machine with so many CPUs.
    pub fn new<M: Machine>(m: &M) -> Self {
        Self {
            mutex: m.new_lock(m.class("xfs.inodegc_wq", "xfs.inodegc_wq")),
            parts: (0..2 * m.cpus()).map(|_| m.new_line("xfs.inodegc_wq", 1)).collect(),
        }
    }

    /// `flush_workqueue` of lists whose workers were told to start.
    pub async fn flush<M: Machine>(&self, m: &M, lists: &[InodeGc]) {
        m.lock(self.mutex, Side::Write).await;
        for part in &self.parts {
            m.touch(*part, Access::Write);
        }
        m.pay().await;
        let waits: Vec<_> = lists.iter().filter_map(|gc| gc.flush(m)).collect();
        m.unlock(self.mutex, Side::Write).await;
        for done in waits {
            m.wchan("__flush_workqueue");
            m.wait_for(done).await;
            m.drop_completion(done);
        }
    }
}

/// The list and worker of one CPU.
pub struct InodeGc {
    limits: Limits,
    list: RefCell<Vec<(u32, bool)>>,
    /// When the first inode on it came.
    since: Cell<Time>,
    worker: Cell<TaskId>,
    /// From when on the worker may start; without, there is nothing for it to do.
    due: Cell<Option<Time>>,
    /// Who waits for the worker's next turn, and for this one.
    flushers: RefCell<Vec<LockId>>,
    flushing: RefCell<Vec<LockId>>,
    /// The worker is at what it took.
    busy: Cell<bool>,
}

impl InodeGc {
    /// An empty list; the worker is set once it is spawned.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            list: RefCell::default(),
            since: Cell::default(),
            worker: Cell::new(TaskId::MAX),
            due: Cell::new(None),
            flushers: RefCell::default(),
            flushing: RefCell::default(),
            busy: Cell::default(),
        }
    }

    /// Names the worker.
    pub fn set_worker(&self, worker: TaskId) {
        self.worker.set(worker);
    }

    /// Queues an unlinked inode (`written`: it has pages or blocks to drop; `hurries`: the worker starts at once); returns a completion to wait for if the
    /// backlog is too long.
    pub fn queue<M: Machine>(&self, m: &M, slot: u32, written: bool, hurries: bool) -> Option<LockId> {
        let items = self.list.borrow().len();
        if items == 0 {
            self.since.set(m.now());
        }
        self.list.borrow_mut().push((slot, written));
        if self.limits.at_once || hurries || items > self.limits.batch {
            self.push(m);
        } else {
            self.due.set(Some(m.wake_at_tick(self.worker.get(), 1)));
        }
        (items > self.limits.throttle).then(|| waiting(m, &self.flushers))
    }

    /// The worker starts at once, if there is something for it (`xfs_inodegc_queue_all`).
    pub fn push<M: Machine>(&self, m: &M) {
        if !self.list.borrow().is_empty() {
            self.due.set(Some(m.now()));
            m.wake(self.worker.get());
        }
    }

    /// A completion to wait for until the worker has returned from all that it was queued for (`flush_workqueue`).
    pub fn flush<M: Machine>(&self, m: &M) -> Option<LockId> {
        if !self.list.borrow().is_empty() {
            return Some(waiting(m, &self.flushers));
        }
        self.busy.get().then(|| waiting(m, &self.flushing))
    }

    /// The worker starts, if it may: takes the whole list into `batch`, which is empty.
    pub fn start<M: Machine>(&self, m: &M, batch: &mut Vec<(u32, bool)>) -> bool {
        let starts = self.due.get().is_some_and(|due| due <= m.now());
        if starts {
            m.delayed("inodegc", self.since.get());
            self.due.set(None);
            self.busy.set(true);
            std::mem::swap(&mut *self.list.borrow_mut(), batch);
            std::mem::swap(&mut *self.flushers.borrow_mut(), &mut *self.flushing.borrow_mut());
        }
        starts
    }

    /// The timer of what came while the worker was at work rings for the worker: who woke it meanwhile for something else has
    /// stopped it.
    pub fn arm<M: Machine>(&self, m: &M) {
        if let Some(due) = self.due.get().filter(|&due| due > m.now()) {
            let _ = (0..).find(|&ticks| m.wake_at_tick(m.task(), ticks) >= due);
        }
    }

    /// Lets those go on who wait for this turn of the worker.
    pub async fn flushed<M: Machine>(&self, m: &M) {
        self.busy.set(false);
        let mut waiting = std::mem::take(&mut *self.flushing.borrow_mut());
        for done in waiting.drain(..) {
            m.complete(done).await;
        }
        *self.flushing.borrow_mut() = waiting;
    }
}

/// A completion that is among these.
fn waiting<M: Machine>(m: &M, flushers: &RefCell<Vec<LockId>>) -> LockId {
    let done = m.new_completion();
    flushers.borrow_mut().push(done);
    done
}
