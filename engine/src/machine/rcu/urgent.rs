//! A grace period that takes long: CPUs that have not been seen outside of readers are asked to switch.

use super::Rcu;
use crate::machine::cpus::cpu::Phase;
use crate::machine::state::State;
use crate::waist::time::{from_ns, Time};
use crate::waist::CpuId;

/// A grace period is long after a tenth of a second, and a jiffy more for each so many CPUs (`adjust_jiffies_till_sched_qs`,
/// `RCU_JIFFIES_FQS_DIV`).
const LONG_NS: f64 = 1e8;
const CPUS_A_JIFFY: usize = 256;

impl Rcu {
    /// Who has not reported by now is asked, if the grace period is long.
    fn ask(&mut self, now: Time, tick: Time) {
        let long = from_ns(LONG_NS) / tick + (self.cpus.len() / CPUS_A_JIFFY) as Time;
        if now / tick > self.began / tick + long {
            self.cpus.iter_mut().for_each(|of| of.urgent |= of.missing);
        }
    }

    /// Whether the task of `cpu` is asked in this tick.
    fn take_urgency(&mut self, cpu: CpuId) -> bool {
        std::mem::take(&mut self.of(cpu).urgent)
    }
}

impl State {
    /// RCU's thread has looked for CPUs that idle: the rest is asked, if the grace period is long (`rcu_watching_snap_recheck`).
    pub(super) fn make_urgent(&mut self) {
        let (now, tick) = (self.now, self.kernel.tick);
        self.rcu.iter_mut().for_each(|rcu| rcu.ask(now, tick));
    }

    /// In a tick: a task in the kernel is to look for another one, though there may be none; who spins in a lock that sleeps gives up
    /// (`rcu_sched_clock_irq`).
    pub(super) fn heed_urgency(&mut self, cpu: CpuId) {
        let urgent = self.rcu.as_mut().is_some_and(|rcu| rcu.take_urgency(cpu));
        let c = &self.cpus[cpu as usize];
        let running = c.current.filter(|_| c.phase == Phase::Running);
        if urgent && running.is_some_and(|id| !self.in_user_mode(id)) {
            self.cpus[cpu as usize].need_resched = true;
        }
    }

    /// `cpu` looks for another task: that is outside of readers, whether it finds one or not (`rcu_note_context_switch`).
    pub(in crate::machine) fn rcu_passes(&mut self, cpu: CpuId) {
        self.rcu.iter_mut().for_each(|rcu| rcu.of(cpu).passed = true);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rcu;

    #[test]
    fn only_who_is_missing_is_asked_and_only_once_a_grace_period_is_long() {
        let mut rcu = rcu(256);
        let tick = 4_000_000_000;
        rcu.began = tick;
        rcu.of(3).missing = true;
        rcu.ask(tick * 27, tick);
        assert!(!rcu.take_urgency(3), "25 jiffies and one for 256 CPUs must be over");
        rcu.ask(tick * 28, tick);
        assert!(rcu.take_urgency(3) && !rcu.take_urgency(3) && !rcu.take_urgency(4));
    }
}
