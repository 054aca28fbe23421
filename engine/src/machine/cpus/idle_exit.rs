//! CPUs leave their idle states: who wakes one, how long it takes, and its energy.

use super::cpu::Phase;
use crate::machine::queue::Happening;
use crate::machine::state::State;
use crate::machine::trace::Object;
use crate::waist::time::Time;
use crate::waist::{Account, CpuId};

impl State {
    /// A task was woken here before the switch to idle was complete. The waker left it to an interrupt
    /// (`ttwu_queue_wakelist`), for which the CPU idles.
    pub(super) fn woken_while_switching(&mut self, cpu: CpuId) {
        let (now, arrives, waiters) =
            (self.now, self.cpus[cpu as usize].interrupted, self.cpus[cpu as usize].idles_for_io);
        if arrives <= now {
            self.schedule(cpu);
        } else {
            self.exit_idle(cpu, arrives + self.exit_time(cpu, self.idle_ladder.after(arrives - now, waiters)));
        }
    }

    #[inline(always)]
    pub(in crate::machine) fn leave_idle(&mut self, cpu: CpuId, since: Time, from: Option<CpuId>, delay: Time) {
        let now = self.now;
        self.end_idling(cpu);
        let arrives = now + delay + self.delivery(cpu, from);
        let (state, joules) = self.end_idle(cpu, since);
        self.idle_joules += joules;
        self.exit_idle(cpu, arrives + self.exit_time(cpu, state));
    }

    /// How long `cpu` takes to leave an idle state. A package sleeps only with all its CPUs.
    fn exit_time(&self, cpu: CpuId, state: usize) -> Time {
        let sleeps = || self.topology.group_of_socket(cpu).all(|other| other == cpu || self.is_idle(other));
        self.idle_ladder.exit_where(state, sleeps)
    }

    /// From sending an interrupt, if it takes one to wake somebody on `cpu`, to its arrival.
    #[inline(always)]
    pub(in crate::machine) fn delivery(&self, cpu: CpuId, from: Option<CpuId>) -> Time {
        if from.is_some_and(|from| from != cpu) && !self.polls_in_guest(cpu) {
            self.costs.ipi_deliver
        } else {
            0
        }
    }

    /// From now until `end`, `cpu` leaves its idle state.
    #[inline(always)]
    fn exit_idle(&mut self, cpu: CpuId, end: Time) {
        let c = &mut self.cpus[cpu as usize];
        c.phase = Phase::IdleExit(self.now);
        c.generation = c.generation.wrapping_add(1);
        let generation = c.generation;
        self.push(end, Happening::IdleExit, cpu, generation);
    }

    /// `cpu` has left its idle state.
    pub(in crate::machine) fn idle_exit_done(&mut self, cpu: CpuId) {
        let now = self.now;
        if let Phase::IdleExit(since) = self.cpus[cpu as usize].phase {
            self.idle_joules += self.idle_ladder.exit_joules(now - since.max(self.window_start));
        }
        self.cpus[cpu as usize].account(now, Account::Idle);
        self.note_cpu("idle exit", cpu, Object::Nothing);
        self.schedule(cpu);
    }

    /// `cpu` has nothing to run.
    #[inline(always)]
    pub(in crate::machine) fn begin_idling(&mut self, cpu: CpuId) {
        if self.idle.insert(cpu) {
            let c = &mut self.cpus[cpu as usize];
            c.idles_since = self.now;
            c.idles_for_io = if self.kernel.rules.io_waiters { c.io_waiters } else { 0 };
        }
    }

    /// Somebody is to run on `cpu`.
    #[inline(always)]
    pub(in crate::machine) fn end_idling(&mut self, cpu: CpuId) {
        if self.idle.remove(cpu) {
            self.cpus[cpu as usize].idled_until = self.now;
        }
    }

    /// Whether `cpu` idled at a moment that is not long ago.
    pub(in crate::machine) fn idled_at(&self, cpu: CpuId, moment: Time) -> bool {
        let c = &self.cpus[cpu as usize];
        c.idles_since <= moment && (self.is_idle(cpu) || moment < c.idled_until)
    }

    #[inline(always)]
    pub(in crate::machine) fn is_idle(&self, cpu: CpuId) -> bool {
        self.idle.contains(cpu)
    }
}
