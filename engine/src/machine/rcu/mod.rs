//! RCU (`kernel/rcu/tree.c` of 6.12): callbacks wait for a grace period, in which each CPU has been seen outside of readers; then the
//! softirq of their CPU invokes them.
//!
//! Its thread, which begins and ends grace periods, is a program ([`crate::softirq`]); what it changes is here. Who reads is
//! not known: a CPU is outside of readers in user mode, when it idles and when it switches, and, where the kernel can be preempted,
//! in a part of its code ([`super::rcu::leaf`], which also has the locks of the tree's nodes).

pub(super) mod callbacks;
pub(super) mod leaf;

mod batch;
mod urgent;

use super::cpus::cpu::Phase;
use super::rcu::callbacks::{Batch, Callbacks};
use super::rcu::leaf::Leaves;
use super::state::{Broken, State};
use crate::waist::time::Time;
use crate::waist::{CpuId, GracePeriod, LockId, TaskId};
use batch::QHIMARK;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The law that what is queued is invoked, or still waits.
pub const CALLBACKS: &str = "no callback is lost";

/// What RCU knows of a CPU (`struct rcu_data`).
#[derive(Clone, Debug, Default)]
struct OfCpu {
    callbacks: Callbacks,
    /// The state of grace periods that it knows of.
    noted: u64,
    /// It has not reported in the present one (`qsmask`), and has to (`core_needs_qs`).
    missing: bool,
    needed: bool,
    /// It has been outside of readers since it knows of that; else when it last switched, by the count of its switches.
    passed: bool,
    switch: u32,
    /// How long it had idled when that was first looked at.
    idled: Option<Time>,
    /// Its next tick has its task give way (`rcu_urgent_qs`).
    urgent: bool,
    /// Whether it invokes many at once.
    hurries: bool,
    /// How many callbacks it had when there were too many (`qlen_last_fqs_check`).
    last_check: u64,
    /// How often CPUs had been looked at by then.
    forced: u64,
    /// It will find its node's lock held in the softirq of this tick.
    misses: bool,
    /// How many timers have rung in this tick.
    rang: u32,
    /// Its `ksoftirqd`, what that waits for, and whether it was woken.
    ksoftirqd: Option<(TaskId, LockId)>,
    awake: bool,
}

/// RCU.
#[derive(Debug, Default)]
pub struct Rcu {
    cpus: Vec<OfCpu>,
    leaves: Option<Leaves>,
    thread: TaskId,
    /// Twice the number of grace periods that are over, and 1 while one is under way (`gp_seq`).
    sequence: u64,
    /// When the present one began (`gp_start`).
    began: Time,
    /// So many grace periods are wanted.
    wanted: u64,
    /// How often CPUs that idle were looked for (`n_force_qs`).
    forces: u64,
    /// Callbacks since the start.
    queued: u64,
    /// How many of them have been invoked.
    invoked: u64,
}

impl Rcu {
    fn of(&mut self, cpu: CpuId) -> &mut OfCpu {
        &mut self.cpus[cpu as usize]
    }

    fn under_way(&self) -> bool {
        self.sequence & 1 == 1
    }

    pub(super) fn leaves(&mut self) -> &mut Leaves {
        self.leaves.as_mut().expect("it has been started")
    }

    /// `cpu` finds its node's lock held when it next tries for it.
    pub(super) fn misses(&mut self, cpu: CpuId) {
        self.of(cpu).misses = true;
    }

    /// Whether it matters that `cpu`, which has switched so often, is outside of readers.
    pub(super) fn asks(&self, cpu: CpuId, switch: u32) -> bool {
        let of = &self.cpus[cpu as usize];
        of.needed && !of.passed && of.switch == switch
    }

    /// `cpu` ticks, outside of readers or not.
    pub(super) fn ticks(&mut self, cpu: CpuId, outside: bool) {
        let of = self.of(cpu);
        of.passed |= outside;
        (of.misses, of.rang) = (false, 0);
    }

    /// A timer rings in the tick of `cpu`.
    pub(super) fn rings(&mut self, cpu: CpuId) {
        self.of(cpu).rang += 1;
    }

    /// Whether `cpu`, which has switched so often, wants its node's lock in this tick: whether it only tries for it, and how many timers
    /// have rung before.
    pub(super) fn wants_leaf(&self, cpu: CpuId, switch: u32) -> Option<(bool, u32)> {
        let of = &self.cpus[cpu as usize];
        let tries = of.noted != self.sequence;
        let reports = of.needed && self.under_way() && (of.passed || of.switch != switch);
        (tries || reports).then_some((tries, of.rang))
    }

    /// Callbacks that have not been invoked.
    pub(super) fn pending(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.callbacks.count()).sum()
    }

    /// How many are neither pending nor invoked, if any.
    pub fn has_lost(&self) -> Option<Broken> {
        let (queued, invoked, pending) = (self.queued, self.invoked, self.pending());
        let detail = format!("{queued} queued, {invoked} invoked, {pending} pending");
        (queued != invoked + pending).then_some(Broken { law: CALLBACKS, detail })
    }

    /// Of the callbacks of `cpu`, those that are not waiting yet will wait for the next grace period that begins
    /// (`rcu_accelerate_cbs`). Returns whether RCU's thread is to begin one.
    fn accelerate(&mut self, cpu: CpuId) -> bool {
        let number = self.sequence.div_ceil(2) + 1;
        if !self.of(cpu).callbacks.accelerate(number) || self.wanted >= number {
            return false;
        }
        self.wanted = number;
        !self.under_way()
    }

    /// What has become of grace periods comes to be known on `cpu`, which has switched so often (`__note_gp_changes`).
    fn note(&mut self, cpu: CpuId, switch: u32) -> bool {
        let now = self.sequence;
        let of = self.of(cpu);
        let before = std::mem::replace(&mut of.noted, now);
        if before == now {
            return false;
        }
        if before / 2 < now / 2 {
            of.callbacks.advance(now / 2);
            of.needed = false;
        }
        if before.div_ceil(2) < now.div_ceil(2) {
            of.needed = of.missing;
            (of.passed, of.switch) = (false, switch);
        }
        self.accelerate(cpu)
    }

    /// Whether the softirq has something to do on `cpu`, which has switched so often (`rcu_pending`); `ever`: or will have without
    /// anything else.
    fn is_pending(&self, cpu: CpuId, switch: u32, ever: bool) -> bool {
        let of = &self.cpus[cpu as usize];
        let reports = of.needed && (ever || of.passed || of.switch != switch);
        self.under_way() && reports
            || of.callbacks.ready() > 0
            || !self.under_way() && of.callbacks.any_new()
            || of.noted != self.sequence
    }

    /// `cpu` has been outside of readers in this grace period. Returns whether it was the last.
    fn report(&mut self, cpu: CpuId) -> bool {
        std::mem::take(&mut self.of(cpu).missing) && self.all_reported()
    }

    fn all_reported(&self) -> bool {
        !self.cpus.iter().any(|of| of.missing)
    }
}

impl State {
    /// From now on there is RCU, with this thread, and the softirq of each CPU has a thread that waits for a completion.
    pub(super) fn start_rcu(&mut self, thread: TaskId, ksoftirqds: &[(TaskId, LockId)], random: Xoshiro256PlusPlus) {
        let of = |&ksoftirqd| OfCpu { ksoftirqd: Some(ksoftirqd), ..OfCpu::default() };
        let leaves = Some(Leaves::new(ksoftirqds.len(), random));
        self.rcu = Some(Rcu { cpus: ksoftirqds.iter().map(of).collect(), leaves, thread, ..Rcu::default() });
    }

    /// The running task queues callbacks (`call_rcu`).
    pub(super) fn call_rcu(&mut self, cpu: CpuId, count: u64, time: Time) {
        self.queue_callbacks(cpu, Batch { count, time, stacks: 0 });
    }

    /// Callbacks are queued on `cpu`.
    pub(super) fn queue_callbacks(&mut self, cpu: CpuId, more: Batch) {
        let switch = self.cpus[cpu as usize].generation;
        let Some(rcu) = &mut self.rcu else { return };
        rcu.queued += more.count;
        let of = rcu.of(cpu);
        of.callbacks.enqueue(more);
        if of.callbacks.count() > of.last_check + QHIMARK {
            let wakes = rcu.note(cpu, switch) || rcu.too_many(cpu);
            self.wake_rcu(wakes);
        }
        self.arm_tick(cpu);
    }

    fn wake_rcu(&mut self, wakes: bool) {
        if let Some(rcu) = self.rcu.as_ref().filter(|_| wakes) {
            self.kick(rcu.thread, None);
        }
    }

    /// `rcu_core` in the softirq of `cpu`, in a round in which its tick meets those of others or not. Returns how long it takes.
    pub(super) fn rcu_core(&mut self, cpu: CpuId, idle: bool, meets: bool) -> Time {
        let switch = self.cpus[cpu as usize].generation;
        let Some(rcu) = &mut self.rcu else { return 0 };
        let held = std::mem::take(&mut rcu.of(cpu).misses) && meets;
        let mut wakes = !held && rcu.note(cpu, switch);
        let of = rcu.of(cpu);
        if of.needed && (of.passed || of.switch != switch) {
            of.needed = false;
            wakes |= rcu.accelerate(cpu) | rcu.report(cpu);
        }
        if !rcu.under_way() && rcu.of(cpu).callbacks.any_new() {
            wakes |= rcu.accelerate(cpu);
        }
        let batch = rcu.do_batch(cpu, idle);
        self.wake_rcu(wakes);
        self.callbacks_of_stacks(cpu, batch.stacks);
        batch.time + self.kernel.rcu_core
    }

    /// The tick of `cpu` (`rcu_sched_clock_irq`). Returns whether the softirq has something to do.
    pub(super) fn rcu_tick(&mut self, cpu: CpuId) -> bool {
        self.heed_urgency(cpu);
        self.tick_in_readers(cpu);
        let switch = self.cpus[cpu as usize].generation;
        self.rcu.as_ref().is_some_and(|rcu| rcu.is_pending(cpu, switch, false))
    }

    /// Whether `cpu` is to tick for RCU: when it idles, for its callbacks only (`rcu_needs_cpu`).
    pub(super) fn rcu_needs_tick(&self, cpu: CpuId) -> bool {
        let (busy, switch) = (!self.is_idle(cpu), self.cpus[cpu as usize].generation);
        let needs =
            |rcu: &Rcu| (busy || rcu.cpus[cpu as usize].callbacks.count() > 0) && rcu.is_pending(cpu, switch, true);
        self.rcu.as_ref().is_some_and(needs)
    }

    /// Whether callbacks of `cpu` may be invoked.
    pub(super) fn callbacks_ready(&self, cpu: CpuId) -> bool {
        self.rcu.as_ref().is_some_and(|rcu| rcu.cpus[cpu as usize].callbacks.ready() > 0)
    }

    /// The next round for `ksoftirqd` of `cpu`; without one it sleeps. Between rounds there are no readers (`rcu_softirq_qs`).
    pub(super) fn next_softirq(&mut self, cpu: CpuId) -> Option<Time> {
        let ready = self.callbacks_ready(cpu);
        let of = self.rcu.as_mut()?.of(cpu);
        (of.awake, of.passed) = (ready, true);
        ready.then(|| self.rcu_core(cpu, false, false))
    }

    /// Who is `ksoftirqd` of `cpu`, and whether it is awake.
    pub(super) fn ksoftirqd(&self, cpu: CpuId) -> Option<(TaskId, bool)> {
        let of = &self.rcu.as_ref()?.cpus[cpu as usize];
        of.ksoftirqd.map(|(task, _)| (task, of.awake))
    }

    /// `wakeup_softirqd`: what is to be completed, if it is not awake.
    pub(super) fn wakes_ksoftirqd(&mut self, cpu: CpuId) -> Option<LockId> {
        let of = self.rcu.as_mut()?.of(cpu);
        let asleep = !std::mem::replace(&mut of.awake, true);
        of.ksoftirqd.filter(|_| asleep).map(|(_, wait)| wait)
    }

    /// A step of RCU's thread, which runs on `cpu`.
    pub(super) fn grace_period(&mut self, cpu: CpuId, step: GracePeriod) -> bool {
        let (switch, now) = (self.cpus[cpu as usize].generation, self.now);
        let Some(rcu) = &mut self.rcu else { return false };
        match step {
            GracePeriod::Wanted => return rcu.wanted > rcu.sequence / 2,
            GracePeriod::Passed => return rcu.all_reported(),
            GracePeriod::Force => self.force_quiescent_states(),
            GracePeriod::Begin => {
                (rcu.sequence, rcu.began) = (rcu.sequence + 1, now);
                rcu.cpus.iter_mut().for_each(|of| (of.missing, of.idled) = (true, None));
                rcu.note(cpu, switch);
                let thread = rcu.thread;
                self.tasks[thread as usize].kicked = false; // that was for this one
            }
            GracePeriod::End => {
                rcu.sequence += 1;
                rcu.note(cpu, switch);
                rcu.accelerate(cpu);
            }
        }
        (0..self.cpus.len() as CpuId).for_each(|cpu| self.arm_tick(cpu));
        true
    }

    /// CPUs that idle, or have since they were first looked at, are outside of readers (`force_qs_rnp`).
    fn force_quiescent_states(&mut self) {
        for cpu in 0..self.cpus.len() as CpuId {
            let (idle, idles) = (self.idle_clock(cpu), matches!(self.cpus[cpu as usize].phase, Phase::Idle(_)));
            let Some(rcu) = &mut self.rcu else { return };
            let of = rcu.of(cpu);
            of.missing &= !idles && idle <= *of.idled.get_or_insert(idle);
        }
        self.rcu.iter_mut().for_each(|rcu| rcu.forces += 1);
        self.make_urgent();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::batch::tests::with_ready;
    use super::*;

    /// RCU on so many CPUs.
    pub fn rcu(cpus: usize) -> Rcu {
        Rcu { cpus: vec![OfCpu::default(); cpus], ..Rcu::default() }
    }

    #[test]
    fn timers_that_ring_in_a_tick_come_before_the_lock_of_the_node() {
        let mut rcu = rcu(2);
        rcu.sequence += 1;
        (0..2).for_each(|cpu| rcu.ticks(cpu, true));
        (0..2).for_each(|_| rcu.rings(1));
        assert_eq!([0, 1].map(|cpu| rcu.wants_leaf(cpu, 0)), [Some((true, 0)), Some((true, 2))]);
        rcu.ticks(1, true);
        assert_eq!(rcu.wants_leaf(1, 0), Some((true, 0)), "those of the last tick do not count");
    }

    #[test]
    fn a_grace_period_begins_for_callbacks_and_ends_when_each_cpu_has_reported_since() {
        let mut rcu = rcu(2);
        rcu.of(0).callbacks.enqueue(Batch { count: 3, time: 3, stacks: 0 });
        assert!(rcu.is_pending(0, 7, false) && rcu.accelerate(0), "the thread is to begin one");
        rcu.sequence += 1;
        rcu.cpus.iter_mut().for_each(|of| of.missing = true);
        (0..2).for_each(|cpu| _ = rcu.note(cpu, 7));
        assert!(!rcu.is_pending(0, 7, false), "it has not been outside of readers since");
        assert!(rcu.is_pending(0, 8, false), "a switch is outside");
        assert!(!rcu.report(0));
        assert!(rcu.report(1) && !rcu.report(1), "the last one, once");
        rcu.of(0).callbacks.enqueue(Batch { count: 1, time: 1, stacks: 0 });
        rcu.sequence += 1;
        assert!(rcu.note(0, 9), "another one is wanted for those that came meanwhile");
        assert_eq!((rcu.of(0).callbacks.ready(), rcu.pending()), (3, 4));
    }

    #[test]
    fn a_callback_that_is_neither_invoked_nor_pending_breaks_a_law() {
        let mut rcu = with_ready(20);
        rcu.queued = 20;
        rcu.do_batch(0, false);
        assert!(rcu.has_lost().is_none());
        rcu.of(0).callbacks = Callbacks::default();
        assert_eq!(rcu.has_lost().map(|broken| broken.law), Some(CALLBACKS));
    }
}
