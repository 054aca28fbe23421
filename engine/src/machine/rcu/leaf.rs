//! The nodes of RCU's tree that CPUs belong to (`struct rcu_node`, `kernel/rcu/tree.h` of 6.12). All CPUs tick at one moment, and in
//! the first round of its softirq each that has something to tell or to learn wants the lock of its node.

use crate::machine::cpus::cpu::Phase;
use crate::machine::cpus::pace::Paces;
use crate::machine::state::State;
use crate::waist::time::{scaled, Time};
use crate::waist::{CpuId, TaskId};
use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;

/// CPUs of a node at most (`RCU_FANOUT_LEAF`).
const FANOUT: usize = 16;

/// The nodes.
#[derive(Debug)]
pub struct Leaves {
    /// CPUs of each: as few nodes as there can be, all alike (`rcu_init_levelspread`).
    size: usize,
    cpus: usize,
    /// When the CPUs of each have met last.
    met: Vec<Option<Time>>,
    random: Xoshiro256PlusPlus,
}

impl Leaves {
    /// Those of so many CPUs.
    pub fn new(cpus: usize, random: Xoshiro256PlusPlus) -> Self {
        let nodes = cpus.div_ceil(FANOUT);
        Self { size: cpus.div_ceil(nodes), cpus, met: vec![None; nodes], random }
    }

    /// The CPUs of the node of `cpu`, if they have not met at this moment.
    fn meet(&mut self, cpu: CpuId, now: Time) -> Option<Range<CpuId>> {
        let node = cpu as usize / self.size;
        let first = node * self.size;
        let new = self.met[node].replace(now) != Some(now);
        new.then(|| first as CpuId..(first + self.size).min(self.cpus) as CpuId)
    }

    /// Whether a CPU in kernel code is outside of readers: so much of it is inside.
    fn is_outside(&mut self, inside: f64) -> bool {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 >= inside
    }

    /// How long after the tick a CPU wants the lock.
    fn arrives(&mut self, paces: &Paces, code: Time) -> Time {
        scaled(code, paces.of_nobody(&mut self.random))
    }
}

/// A CPU that wants the lock of its node: when, which one, and whether it only tries (`raw_spin_trylock` in `note_gp_changes`), or
/// waits (`rcu_report_qs_rdp`).
type Comer = (Time, CpuId, bool);

/// Which of those that try find the lock held, if it is held so long by who takes it after a trial, and by others.
fn losers(mut comers: Vec<Comer>, noting: Time, reporting: Time) -> impl Iterator<Item = CpuId> {
    comers.sort_unstable();
    let mut free = 0;
    comers.into_iter().filter_map(move |(at, cpu, tries)| {
        if tries && at < free {
            return Some(cpu);
        }
        free = at.max(free) + if tries { noting } else { reporting };
        None
    })
}

impl State {
    /// `cpu` ticks, outside of readers or not.
    pub(in crate::machine) fn tick_in_readers(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu as usize];
        let (running, switch) = (c.current.filter(|_| c.phase == Phase::Running), c.generation);
        let Some(rcu) = &self.rcu else { return };
        let outside = !rcu.asks(cpu, switch) || running.is_none_or(|id| self.is_outside(id));
        self.rcu.iter_mut().for_each(|rcu| rcu.ticks(cpu, outside));
    }

    /// The softirq of a tick begins on `cpu`, and on the other CPUs of its node: who will find the node's lock held.
    pub(in crate::machine) fn meet_in_leaf(&mut self, cpu: CpuId) {
        let now = self.now;
        let Some(cpus) = self.rcu.as_mut().and_then(|rcu| rcu.leaves().meet(cpu, now)) else { return };
        let comers: Vec<Comer> = cpus.filter_map(|other| self.comes_to_leaf(other)).collect();
        let (noting, reporting) = (self.kernel.rcu_note, self.kernel.rcu_report);
        for loser in losers(comers, noting, reporting) {
            self.rcu.as_mut().into_iter().for_each(|rcu| rcu.misses(loser));
        }
    }

    /// The timers of a tick come before (`TIMER_SOFTIRQ`, `RCU_SOFTIRQ`), and each wakes somebody.
    fn comes_to_leaf(&mut self, cpu: CpuId) -> Option<Comer> {
        let c = &self.cpus[cpu as usize];
        let (ticks, switch) = (c.next_tick.is_some_and(|tick| tick <= self.now), c.generation);
        let rcu = self.rcu.as_mut().filter(|_| ticks)?;
        let (tries, rang) = rcu.wants_leaf(cpu, switch)?;
        let at = rcu.leaves().arrives(&self.paces, self.kernel.rcu_tick) + Time::from(rang) * self.costs.wakeup;
        Some((at, cpu, tries))
    }

    /// Whether RCU sees the running task `id` outside of readers (`rcu_flavor_sched_clock_irq`); softirqs of `ksoftirqd` are inside.
    fn is_outside(&mut self, id: TaskId) -> bool {
        let task = &self.tasks[id as usize];
        let softirqs = self.ksoftirqd(task.cpu).is_some_and(|(ksoftirqd, _)| ksoftirqd == id);
        if task.preempt_off > 0 || softirqs {
            return false;
        }
        let inside = self.kernel.rcu_inside;
        self.in_user_mode(id)
            || self.kernel.rules.preemptible_rcu && self.rcu.as_mut().is_some_and(|rcu| rcu.leaves().is_outside(inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    #[test]
    fn as_few_nodes_as_there_can_be_have_as_many_cpus_each() {
        let of = |cpus, cpu| Leaves::new(cpus, stream(0, 0, "")).meet(cpu, 1);
        assert_eq!((of(24, 11), of(24, 12)), (Some(0..12), Some(12..24)));
        assert_eq!((of(16, 15), of(2, 0), of(33, 32)), (Some(0..16), Some(0..2), Some(22..33)));
    }

    #[test]
    fn the_cpus_of_a_node_meet_once_at_a_moment() {
        let mut leaves = Leaves::new(24, stream(0, 0, ""));
        assert!(leaves.meet(3, 7).is_some() && leaves.meet(4, 7).is_none() && leaves.meet(12, 7).is_some());
        assert!(leaves.meet(4, 8).is_some());
    }

    #[test]
    fn who_tries_while_another_has_the_lock_fails_and_who_waits_does_not() {
        let lost = |comers: &[Comer]| losers(comers.to_vec(), 10, 20).collect::<Vec<_>>();
        assert_eq!(lost(&[(5, 0, true), (14, 1, true), (15, 2, true)]), [1]);
        assert_eq!(lost(&[(9, 0, true), (2, 1, true)]), [0], "by time, not by number");
        assert_eq!(lost(&[(0, 0, false), (1, 1, false), (39, 2, true), (40, 3, true)]), [2]);
    }
}
