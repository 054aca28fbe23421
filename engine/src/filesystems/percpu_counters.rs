//! What a `statfs` adds up: counts of which each CPU keeps a part (`struct percpu_counter`). Who wants the sum takes the counter's lock
//! and looks at the parts of all CPUs under it (`__percpu_counter_sum`, lib/percpu_counter.c, 3.0 to 6.18), so callers on one mount wait for each other.

use crate::waist::{Account, LockId, Machine, Side, Time};

/// The locks of those that one mount's `statfs` adds up.
pub struct StatfsSums(Vec<LockId>);

impl StatfsSums {
    /// Of so many counters.
    pub fn new<M: Machine>(m: &M, counters: u32) -> Self {
        Self((0..counters).map(|_| m.new_lock(m.class("vfs.percpu_counter", "vfs.percpu_counter"))).collect())
    }

    /// The sums are taken one after the other, all together in `time`.
    pub async fn sum<M: Machine>(&self, m: &M, time: Time) {
        for lock in &self.0 {
            m.lock(*lock, Side::Write).await;
            m.run(Account::System, time / self.0.len() as Time).await;
            m.unlock(*lock, Side::Write).await;
        }
    }
}
