//! A wake-up that wants a busy CPU elsewhere back sends it an interrupt (`resched_curr`, `smp_send_reschedule`).

use crate::machine::cpus::cpu::Phase;
use crate::machine::queue::Happening;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};

/// Who makes a task runnable.
#[derive(Clone, Copy, Debug)]
pub struct Waker {
    /// On which CPU.
    pub cpu: CpuId,
    /// When it has done so.
    pub done: Time,
    /// The task that pays for it, if one does.
    pub task: Option<TaskId>,
}

impl State {
    /// A task that has become runnable on `cpu` is to run instead of the current one. The CPU's own wake-ups are heeded at once; another
    /// CPU interrupts it, unless it has been told already.
    pub(super) fn resched(&mut self, cpu: CpuId, by: Option<Waker>) {
        match by.filter(|by| by.cpu != cpu) {
            None => self.cpus[cpu as usize].need_resched = true,
            Some(by) => self.send_reschedule(cpu, by),
        }
        self.heed_resched(cpu);
    }

    fn send_reschedule(&mut self, cpu: CpuId, by: Waker) {
        let c = &mut self.cpus[cpu as usize];
        if c.need_resched || c.resched_sent {
            return;
        }
        let (send, costs) = (self.costs.resched_send, &self.costs);
        let served = by.done.max(self.now) + send + costs.resched_deliver + costs.resched_serve;
        if let Some(waker) = by.task {
            self.tasks[waker as usize].segment.debt += send;
        }
        if served == self.now {
            c.need_resched = true;
            return;
        }
        c.resched_sent = true;
        c.resched = c.resched.wrapping_add(1);
        let generation = c.resched;
        self.push(served, Happening::Rescheduled, cpu, generation);
    }

    /// `cpu` is about to look for another task (`__schedule`): the current one has run until now, or until the wake-up because of
    /// which the CPU looks. What is left of the time is of who runs next.
    #[inline(always)]
    pub(super) fn read_clock(&mut self, cpu: CpuId) {
        let (now, c) = (self.now, &mut self.cpus[cpu as usize]);
        if std::mem::take(&mut c.skips_clock) {
            c.behind = now - std::mem::replace(&mut c.exec_start, now);
        } else {
            c.behind = 0;
            self.update_current(cpu);
        }
    }

    /// Who has been picked runs on `cpu` by the clock of the run queues.
    #[inline(always)]
    pub(super) fn run_by_clock(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu as usize];
        c.exec_start = self.now - std::mem::take(&mut c.behind);
    }

    /// `cpu` has served the interrupt. It looks for another task, unless it has done so since that was sent.
    pub(in crate::machine) fn rescheduled(&mut self, cpu: CpuId, generation: u32) {
        let serve = self.costs.resched_serve;
        let c = &mut self.cpus[cpu as usize];
        match c.phase {
            Phase::Running => {}
            Phase::Switching(Some(_)) => {
                c.owed_irq += serve;
                return;
            }
            _ => return, // it idles: nobody's time
        }
        let wanted = c.resched_sent && c.resched == generation;
        c.need_resched |= wanted;
        c.resched_sent &= !wanted;
        if serve > 0 {
            self.steal(cpu, serve);
        }
        if wanted {
            self.heed_resched(cpu);
        }
    }
}
