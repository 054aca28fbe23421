//! Where woken tasks go and how long they wait for a CPU there: what is recorded of it.

use crate::machine::cpus::cpu::Phase;
use crate::machine::state::State;
use crate::machine::statistics::WakeStats;
use crate::machine::task::Status;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};

impl State {
    /// For how long `cpu` has idled so far, the ways out of idle states included.
    #[inline(always)]
    pub(in crate::machine) fn idle_clock(&self, cpu: CpuId) -> Time {
        self.cpus[cpu as usize].idle_clock(self.now)
    }

    /// The waiting `id` is about to be moved into the queue of `to`.
    pub(super) fn note_move(&mut self, id: TaskId, to: CpuId) {
        let (now, from, idle) = (self.now, self.idle_clock(self.tasks[id as usize].cpu), self.idle_clock(to));
        let task = &mut self.tasks[id as usize];
        task.become_status(now, from, Status::Runnable);
        task.change_queue(idle);
    }

    /// The sleeping `id` is woken from the CPU `waker` and is to go to `cpu`, where it has not been put yet.
    #[inline(always)]
    pub(super) fn note_wakeup(&mut self, id: TaskId, cpu: CpuId, waker: Option<CpuId>) {
        let task = &self.tasks[id as usize];
        let (previous, kind) = (task.cpu, task.kind as usize);
        let others_idle = || self.topology.llc(previous).any(|other| self.is_idle(other));
        let beside_idle = task.pinned.is_none() && !self.is_idle(previous) && others_idle();
        let stayed = cpu == previous;
        let WakeStats { wakeups, on_previous, on_waker, beside_idle: beside, stacked, .. } = &mut self.wakes[kind];
        *wakeups += 1;
        *on_previous += u64::from(stayed);
        *on_waker += u64::from(!stayed && waker == Some(cpu));
        *beside += u64::from(beside_idle);
        *stacked += u64::from(beside_idle && stayed);
        let busy = matches!(self.cpus[cpu as usize].phase, Phase::Running | Phase::Switching(Some(_)));
        let task = &mut self.tasks[id as usize];
        task.woken_at = self.now;
        task.woken_busy = busy;
    }

    /// `id` has come to run; if that is for the first time since it was woken, the time between is recorded.
    #[inline(always)]
    pub(super) fn runs_after_wakeup(&mut self, id: TaskId) {
        let task = &mut self.tasks[id as usize];
        let woken_at = std::mem::replace(&mut task.woken_at, Time::MAX);
        if woken_at != Time::MAX {
            let waited = self.now - woken_at.max(self.window_start);
            let (kind, busy) = (task.kind as usize, usize::from(task.woken_busy));
            self.wakes[kind].to_run[busy].record(waited);
            self.worker_runs(id);
        }
    }
}
