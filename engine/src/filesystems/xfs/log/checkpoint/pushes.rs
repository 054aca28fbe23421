//! Which checkpoints are being pushed, and who waits for those that were before him (`flush_workqueue` of `xfs-cil`, before 5.15
//! `flush_work` of its one item).

use crate::waist::LockId;
use crate::waist::Machine;
use std::cell::RefCell;

/// Contexts that are queued or written.
#[derive(Debug, Default)]
pub struct Pushes {
    under_way: RefCell<Vec<u32>>,
    /// The last context that somebody waits for, and what is completed for him.
    waiters: RefCell<Vec<(u32, LockId)>>,
}

impl Pushes {
    /// A context is queued.
    pub fn begin(&self, sequence: u32) {
        self.under_way.borrow_mut().push(sequence);
    }

    /// Its worker has returned, whether what it wrote is on disk or not.
    pub async fn end<M: Machine>(&self, m: &M, sequence: u32) {
        self.under_way.borrow_mut().retain(|other| *other != sequence);
        loop {
            let oldest = self.under_way.borrow().iter().min().copied().unwrap_or(u32::MAX);
            let next = self.waiters.borrow().iter().position(|(last, _)| *last < oldest);
            let Some(next) = next else { return };
            let (_, ended) = self.waiters.borrow_mut().remove(next);
            m.complete(ended).await;
        }
    }

    /// Waits for all that are under way now.
    pub async fn wait<M: Machine>(&self, m: &M) {
        let last = self.under_way.borrow().iter().max().copied();
        let Some(last) = last else { return };
        let ended = m.new_completion();
        self.waiters.borrow_mut().push((last, ended));
        m.wchan("__flush_workqueue");
        m.wait_for(ended).await;
        m.drop_completion(ended);
    }
}
