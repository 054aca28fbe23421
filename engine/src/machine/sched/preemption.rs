//! The scheduler wants a CPU back: preemption, and the tick that asks for it.

use crate::machine::cpus::cpu::Phase;
use crate::machine::queue::Happening;
use crate::machine::state::State;
use crate::machine::task::Resume;
use crate::machine::trace::Object;
use crate::spec::Preemption;
use crate::waist::CpuId;

impl State {
    /// The scheduler wants `cpu` for another task, if `need_resched` is set: preempts its current one at once if it may.
    pub(in crate::machine) fn heed_resched(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu as usize];
        let Some(id) = c.current.filter(|_| c.need_resched && c.phase == Phase::Running) else { return };
        if c.in_tick(self.now) {
            return; // when the interrupt ends
        }
        let task = &self.tasks[id as usize];
        if task.resume == Resume::Segment && self.preemptible(id) {
            self.book_segment(id);
            match self.replacement(cpu) {
                Some(next) => self.preempt(cpu, next),
                None => self.run_segment(id),
            }
        } else if task.resume == Resume::Segment && task.in_turns {
            self.book_segment(id);
            self.run_segment(id); // to the end of the turn
        } else if task.spins_until_resched {
            self.spin_check(id, self.now);
        } else if task.spinning && self.kernel.preemption == Preemption::Host {
            let Some(next) = self.replacement(cpu) else { return };
            self.tasks[id as usize].spinning = false; // it looks again when it comes to run
            self.book_spin(id);
            self.preempt(cpu, next);
        }
    }

    /// A busy CPU ticks; an idle one for RCU.
    #[inline(always)]
    pub(in crate::machine) fn arm_tick(&mut self, cpu: CpuId) {
        if self.cpus[cpu as usize].next_tick.is_none() {
            self.arm_tick_if_wanted(cpu);
        }
    }

    #[inline(never)]
    pub(super) fn arm_tick_if_wanted(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu as usize];
        if c.current.is_some() || !c.queue.is_empty() || self.rcu_needs_tick(cpu) {
            let next = (self.now / self.kernel.tick + 1) * self.kernel.tick;
            self.cpus[cpu as usize].next_tick = Some(next);
            self.push(next, Happening::Tick, cpu, 0);
        }
    }

    /// The scheduler tick: accounts the running task, which ends a used-up slice, and lets an idle CPU pull a waiting task. Then its
    /// timers ring and RCU's softirq runs.
    pub(in crate::machine) fn tick(&mut self, cpu: CpuId) {
        self.note_cpu("tick", cpu, Object::Nothing);
        if !self.cpus[cpu as usize].queue.is_empty() {
            self.kick_idle_cpus(cpu);
        }
        let (phase, current) = (self.cpus[cpu as usize].phase, self.cpus[cpu as usize].current);
        let pending = self.rcu_tick(cpu);
        if let Some(id) = current.filter(|_| phase == Phase::Running) {
            self.tick_current(cpu, id);
        }
        if pending || self.cpus[cpu as usize].need_resched {
            let done = self.now + self.kernel.tick_timers;
            self.push(done, Happening::TickDone, cpu, u32::from(pending));
        } else {
            self.tick_done(cpu, false);
        }
    }

    /// The interrupt of the tick ends, after RCU's softirq if that has something to do.
    pub(in crate::machine) fn tick_done(&mut self, cpu: CpuId, pending: bool) {
        if pending {
            self.meet_in_leaf(cpu);
            self.softirqs(cpu);
        }
        self.cpus[cpu as usize].next_tick = None;
        self.heed_resched(cpu);
        self.arm_tick(cpu);
    }
}
