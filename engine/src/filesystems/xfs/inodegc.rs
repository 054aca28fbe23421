//! Background inactivation (`xfs_inodegc_queue`, `xfs_inodegc_worker`): every CPU has a list of unlinked inodes and a worker
//! bound to it that frees them.
//!
//! A queued inode starts the worker one tick later; with more than a cluster's worth of inodes on the list (32 of 512
//! bytes) at once; with more than 256 the unlinking task waits for the worker (`xfs_inodegc_want_flush_work`).

use crate::machine::{LockId, TaskId};
use crate::waist::Machine;
use std::cell::{Cell, RefCell};

/// When a list starts its worker at once, and when it stops who adds to it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// More inodes than a cluster holds.
    pub batch: usize,
    /// `XFS_INODEGC_MAX_BACKLOG`.
    pub throttle: usize,
}

/// The list and worker of one CPU.
pub struct InodeGc {
    limits: Limits,
    list: RefCell<Vec<(u32, bool)>>,
    worker: Cell<TaskId>,
    timer_armed: Cell<bool>,
    flushers: RefCell<Vec<LockId>>,
}

impl InodeGc {
    /// An empty list; the worker is set once it is spawned.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            list: RefCell::default(),
            worker: Cell::new(TaskId::MAX),
            timer_armed: Cell::new(false),
            flushers: RefCell::default(),
        }
    }

    /// Names the worker.
    pub fn set_worker(&self, worker: TaskId) {
        self.worker.set(worker);
    }

    /// Queues an unlinked inode (`written`: it has pages or blocks to drop); returns a completion to wait for if the
    /// backlog is too long.
    pub fn queue<M: Machine>(&self, m: &M, slot: u32, written: bool) -> Option<LockId> {
        let items = self.list.borrow().len();
        self.list.borrow_mut().push((slot, written));
        if items > self.limits.batch {
            m.wake(self.worker.get());
        } else if !self.timer_armed.replace(true) {
            m.wake_at_tick(self.worker.get(), 0);
        }
        (items > self.limits.throttle).then(|| {
            let done = m.new_completion();
            self.flushers.borrow_mut().push(done);
            done
        })
    }

    /// Takes the whole list into `batch`, which is empty.
    pub fn take(&self, batch: &mut Vec<(u32, bool)>) {
        self.timer_armed.set(false);
        std::mem::swap(&mut *self.list.borrow_mut(), batch);
    }

    /// Lets those go on who wait for the worker.
    pub async fn flushed<M: Machine>(&self, m: &M) {
        let waiting = std::mem::take(&mut *self.flushers.borrow_mut());
        for done in waiting {
            m.complete(done).await;
        }
    }
}
