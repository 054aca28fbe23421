//! Queues of tasks that wait until the log has changed (`xlog_wait`). What they look at is under a spinlock of the log. They have it until they
//! are in the queue; who makes the change has it while he wakes all (`wake_up_all`).

use crate::waist::Machine;
use crate::waist::{LockId, Side};
use std::cell::RefCell;

/// One queue.
#[derive(Debug)]
pub struct LogWait {
    /// Its own spinlock: who wakes all has it until the last is awake, and who is awake leaves the queue under it.
    lock: LockId,
    waiters: RefCell<Vec<LockId>>,
}

impl LogWait {
    /// An empty one.
    pub fn new<M: Machine>(m: &M, name: &'static str) -> Self {
        Self { lock: m.new_lock(m.class(name, "xfs.log_wait")), waiters: RefCell::default() }
    }

    /// `xlog_wait`, called by `function`: gives `guard` back and waits. Whoever is woken looks again.
    pub async fn wait<M: Machine>(&self, m: &M, guard: LockId, function: &'static str) {
        let woken = m.new_completion();
        m.lock(self.lock, Side::Write).await; // add_wait_queue_exclusive
        self.waiters.borrow_mut().push(woken);
        m.unlock(self.lock, Side::Write).await;
        m.unlock(guard, Side::Write).await;
        m.wchan(function);
        m.wait_for(woken).await;
        m.drop_completion(woken);
        m.lock(self.lock, Side::Write).await; // remove_wait_queue
        m.unlock(self.lock, Side::Write).await;
    }

    /// Whether somebody waits (`waitqueue_active`).
    pub fn is_active(&self) -> bool {
        !self.waiters.borrow().is_empty()
    }

    /// `wake_up_all`, by who has the lock of what has changed.
    pub async fn wake_all<M: Machine>(&self, m: &M) {
        if !self.is_active() {
            return;
        }
        m.lock(self.lock, Side::Write).await;
        let waiters = std::mem::take(&mut *self.waiters.borrow_mut());
        for woken in waiters {
            m.complete(woken).await;
        }
        m.unlock(self.lock, Side::Write).await;
    }
}
