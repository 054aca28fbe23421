//! CPUs switch to idle. That is an event of its own only where somebody may look between: for everybody else it is enough that a CPU
//! idles from a moment on, which whoever comes to the CPU later finds out.

use super::cpu::Phase;
use crate::machine::queue::{rank, Happening};
use crate::machine::state::State;
use crate::machine::trace::Object;
use crate::waist::time::Time;
use crate::waist::CpuId;

impl State {
    /// Whether switches to idle need no event: nobody records them, takes ties in another order, runs faster beside an idle CPU, or
    /// waits for CPUs to idle.
    pub(in crate::machine) fn idles_quietly(&self) -> bool {
        !self.takes_ties_by_chance() && self.trace.is_none() && self.rcu.is_none() && !self.topology.has_siblings()
    }

    /// `cpu` has nobody to run and switches to idle.
    #[inline(always)]
    pub(in crate::machine) fn switch_to_idle(&mut self, cpu: CpuId) {
        self.set_next(cpu, None);
        let now = self.now;
        if !self.quiet_idle || self.costs.context_switch + self.cpus[cpu as usize].before_switch == 0 {
            return self.begin_switch(cpu, None); // what takes no time happens after the present event, whatever that is
        }
        let switch = self.switch_mm(cpu, None);
        let c = &mut self.cpus[cpu as usize];
        let time = switch + c.before_switch;
        debug_assert!(c.queue.is_empty(), "CPU {cpu} has somebody to run");
        c.switches_to(None);
        c.before_switch = 0;
        c.idles_at = now + time;
        c.leaves_at = c.idles_at;
    }

    /// Somebody is to be put into the queue of `cpu`. If it still switches to idle without an event, it has one now.
    #[inline(always)]
    pub(in crate::machine) fn come_to_cpu(&mut self, cpu: CpuId) {
        if self.cpus[cpu as usize].idles_at != 0 && !self.idles_by_now(cpu) {
            self.switches_with_event(cpu);
        }
    }

    #[cold]
    fn switches_with_event(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu as usize];
        let (end, generation) = (std::mem::take(&mut c.idles_at), c.generation);
        self.push(end, Happening::SwitchDone, cpu, generation);
    }

    /// If `cpu` has come to idle meanwhile, its books say so now. Returns whether it has.
    #[inline(always)]
    fn idles_by_now(&mut self, cpu: CpuId) -> bool {
        let at = self.cpus[cpu as usize].idles_at;
        let over = (at, rank(Happening::SwitchDone, cpu)) < (self.now, self.at);
        if over {
            let c = &mut self.cpus[cpu as usize];
            c.idles_at = 0;
            c.leaving = None;
            c.account(at, c.between_tasks());
            self.processed += 1;
            self.counters.switches += 1;
            self.begin_to_idle(cpu, at);
        }
        over
    }

    /// All CPUs that have come to idle say so.
    pub(in crate::machine) fn note_idle_cpus(&mut self) {
        for cpu in 0..self.cpus.len() as CpuId {
            if self.cpus[cpu as usize].idles_at != 0 {
                self.idles_by_now(cpu);
            }
        }
    }

    /// Whether nothing is going to happen but that time goes by, where nothing does before `end`. The last thing that happened
    /// may be that a CPU idles.
    pub(in crate::machine) fn is_over(&mut self, end: Time) -> bool {
        let last = self.cpus.iter().map(|cpu| cpu.idles_at).max().unwrap_or(0);
        let over = self.only_ticks() && last < end;
        if over {
            self.wait_until(last.max(self.now));
            self.at = u64::MAX; // and all of that instant is past
        }
        over
    }

    /// Whether nothing is pending but ticks that change nothing: some CPUs tick for a spinner alone.
    fn only_ticks(&self) -> bool {
        let waits = self.cpus.iter().any(|cpu| !cpu.queue.is_empty());
        !waits && self.events.has_only(Happening::Tick) && self.rcu.as_ref().is_none_or(|rcu| rcu.pending() == 0)
    }

    /// Nothing goes on any more, nor do switches to idle.
    pub(in crate::machine) fn stop_switches(&mut self) {
        self.note_idle_cpus();
        self.cpus.iter_mut().for_each(|cpu| cpu.idles_at = 0);
    }

    /// `cpu` has switched to idle, and idles if nobody was woken meanwhile.
    #[inline(always)]
    pub(in crate::machine) fn idles(&mut self, cpu: CpuId) {
        self.set_executing(cpu, false);
        if self.cpus[cpu as usize].queue.is_empty() {
            self.begin_to_idle(cpu, self.now);
            self.begin_idling(cpu); // the tick may have moved away who was woken meanwhile
            self.note_cpu("idle", cpu, Object::Nothing);
            self.arm_tick(cpu);
        } else {
            self.end_idling(cpu);
            self.woken_while_switching(cpu);
        }
    }

    #[inline(always)]
    fn begin_to_idle(&mut self, cpu: CpuId, at: Time) {
        self.cpus[cpu as usize].phase = Phase::Idle(at);
        self.enter_idle(cpu, at);
    }
}
