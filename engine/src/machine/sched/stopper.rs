//! A running task begins another program and is moved first, if another CPU is idler (`sched_exec`, `stop_one_cpu`).

use super::policy::{Entering, Leaving};
use super::resched::Waker;
use crate::machine::chains::Reason;
use crate::machine::cpus::cpu::Errand;
use crate::machine::state::State;
use crate::machine::task::{Resume, Status};
use crate::machine::trace::Object;
use crate::waist::{CpuId, TaskId};

impl State {
    /// The CPU that a running task is moved to when it calls `execve`, if to another one.
    pub(in crate::machine) fn moves_for_exec(&mut self, id: TaskId) -> Option<CpuId> {
        if self.tasks[id as usize].pinned.is_some() {
            return None;
        }
        self.note_idle_cpus();
        let own = self.tasks[id as usize].cpu;
        let cpu = self.idlest_cpu(own, Some(id));
        (cpu != own).then_some(cpu)
    }

    /// The running task `id` wakes the stopper thread of its CPU, which takes it off, and puts it into the queue of `to` when it runs
    /// (`migration_cpu_stop`): a switch to it and another one from it.
    pub(in crate::machine) fn move_running(&mut self, id: TaskId, to: CpuId) {
        let from = self.tasks[id as usize].cpu;
        self.tasks[id as usize].resume = Resume::Program;
        self.counters.involuntary += 1;
        self.note("preempt", id, Object::Nothing);
        self.dequeue_task(from, id, Leaving::Moved);
        self.leave_cpu(id, Status::Runnable, Reason::Preempted);
        self.cpus[from as usize].errand = Some(Errand::Move(id, to));
        let switch = self.switch_mm(from, None);
        self.occupy(from, None, self.costs.wakeup + switch);
    }

    /// The stopper thread of `from` runs, moves `id`, and sleeps again.
    pub(super) fn moved_running(&mut self, from: CpuId, id: TaskId, to: CpuId) {
        self.counters.switches += 1;
        self.note_move(id, to);
        let by = Waker { cpu: from, done: self.now, task: None };
        self.enqueue(id, to, Some(by), Entering::Moved);
        self.schedule(from);
    }
}
