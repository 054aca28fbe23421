//! Counts of which each CPU keeps a part (`struct percpu_counter`). Who wants the sum, as a `statfs` does, takes the counter's lock
//! and looks at the parts of all CPUs under it (`__percpu_counter_sum`, lib/percpu_counter.c, 3.0 to 6.18), so callers on one mount wait for each other.

use crate::waist::{Access, Account, LineId, LockId, Machine, Side, Time};

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

/// A counter that is compared with zero after each change, which takes the sum while it is small.
pub struct ComparedCounter {
    lock: LockId,
    /// The lines with the parts of the CPUs.
    parts: Vec<LineId>,
    /// To add up all parts.
    time: Time,
    /// Above this the parts that are not in the common count do not matter.
    enough: u64,
}

impl ComparedCounter {
    /// With the time to add one CPU's part.
    pub fn new<M: Machine>(m: &M, each: Time) -> Self {
        let cpus = m.cpus();
        let batch = (2 * cpus).max(32); // compute_batch_value
        Self {
            lock: m.new_lock(m.class("vfs.percpu_counter", "vfs.percpu_counter")),
            parts: (0..cpus).map(|_| m.new_line("vfs.percpu counter parts", 1)).collect(),
            time: Time::from(cpus) * each,
            enough: u64::from(batch) * u64::from(cpus),
        }
    }

    /// Adds to the part of this CPU, and compares the count, which is now `count`, with zero (`percpu_counter_compare`).
    pub async fn change<M: Machine>(&self, m: &M, count: u64) {
        m.touch(self.parts[m.cpu() as usize], Access::Write);
        if count > self.enough {
            return;
        }
        m.lock(self.lock, Side::Write).await;
        for part in &self.parts {
            m.touch(*part, Access::Read);
        }
        m.run(Account::System, self.time).await;
        m.unlock(self.lock, Side::Write).await;
    }
}
