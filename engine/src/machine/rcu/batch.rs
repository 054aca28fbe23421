//! How many callbacks a round of the softirq invokes (`rcu_do_batch`), and what happens where there are too many (`call_rcu_core`).

use super::Rcu;
use crate::machine::rcu::callbacks::Batch;
use crate::waist::time::{Time, US};
use crate::waist::CpuId;

/// Callbacks in a round of the softirq (`blimit`), and where there are too many.
const BLIMIT: u64 = 10;
const MAX_BLIMIT: u64 = 10_000;
/// Of many at once, a 128th (`rcu_divisor`).
const DIVISOR: u32 = 7;
/// More callbacks than these are too many, until there are so few (`qhimark`, `qlowmark`).
pub(super) const QHIMARK: u64 = 10_000;
const QLOWMARK: u64 = 100;
/// A round of more than so many callbacks is over when it takes too long (`rcu_resched_ns`), which is looked at now and then.
const LONG_ROUND: u64 = 100;
const RESCHED: Time = 3000 * US;
const LOOK: u64 = 32;

impl Rcu {
    /// `cpu` has too many callbacks (`call_rcu_core`). Returns whether RCU's thread is to do something about that.
    pub(super) fn too_many(&mut self, cpu: CpuId) -> bool {
        if !self.under_way() {
            return self.accelerate(cpu);
        }
        let forces = self.forces;
        let of = self.of(cpu);
        of.hurries = true;
        of.last_check = of.callbacks.count();
        std::mem::replace(&mut of.forced, forces) == forces
    }

    /// `rcu_do_batch`, of a CPU that idles or does not. Returns what is invoked.
    pub(super) fn do_batch(&mut self, cpu: CpuId, idle: bool) -> Batch {
        let of = self.of(cpu);
        let (ready, time) = (of.callbacks.ready(), of.callbacks.ready_time());
        let limit = (ready >> DIVISOR).max(if of.hurries { MAX_BLIMIT } else { BLIMIT });
        let mut count = if idle { ready } else { ready.min(limit) };
        if limit > LONG_ROUND {
            let in_time = u128::from(RESCHED) * u128::from(ready) / u128::from(time.max(1));
            count = count.min((in_time as u64 / LOOK + 1) * LOOK);
        }
        let took = of.callbacks.invoke(count);
        let left = of.callbacks.count();
        of.hurries &= left > QLOWMARK;
        if left == 0 || left + QHIMARK < of.last_check {
            of.last_check = left;
        }
        self.invoked += count;
        took
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::rcu;
    use super::*;

    /// RCU of one CPU on which so many callbacks of 1 us each may be invoked.
    pub fn with_ready(count: u64) -> Rcu {
        let mut rcu = rcu(1);
        rcu.of(0).callbacks.enqueue(Batch { count, time: count * US, stacks: 0 });
        rcu.accelerate(0);
        let wanted = rcu.wanted;
        rcu.of(0).callbacks.advance(wanted);
        rcu
    }

    fn invoked(mut rcu: Rcu, idle: bool) -> u64 {
        assert_eq!(rcu.do_batch(0, idle).time, rcu.invoked * US);
        rcu.invoked
    }

    #[test]
    fn a_round_invokes_ten_callbacks_or_a_128th_and_on_an_idle_cpu_all() {
        assert_eq!([5, 1_000, 2_560].map(|count| invoked(with_ready(count), false)), [5, 10, 20]);
        assert_eq!([5, 1_000, 2_560].map(|count| invoked(with_ready(count), true)), [5, 1_000, 2_560]);
    }

    #[test]
    fn a_cpu_that_has_had_too_many_invokes_all_that_fit_three_milliseconds() {
        let mut many = with_ready(20_000);
        many.sequence = 1;
        assert!(many.too_many(0), "nobody has looked for idle CPUs");
        many.forces += 1;
        assert!(!many.too_many(0), "somebody has since");
        assert_eq!(many.do_batch(0, false).time, 3_008 * US, "it looks at the clock each 32");
        while many.of(0).callbacks.count() > QLOWMARK {
            assert!(many.of(0).hurries);
            many.do_batch(0, false);
        }
        assert!(!many.of(0).hurries);
    }
}
