//! The scheduler: a CPU goes from one task to the next, or idles. Who runs next is decided in `policy`; `waking` makes tasks
//! runnable, `preemption` ends their turns, `idle_exit` brings CPUs back.
//!
//! Rules from `kernel/sched/{core,fair}.c` of Linux 5 and 6. What is left out: real-time classes, periodic balancing other than
//! pulls by idle CPUs.

use super::policy::Leaving;
use super::resched::Waker;
use crate::machine::chains::Reason;
use crate::machine::cpus::cpu::{Errand, Phase};
use crate::machine::queue::Happening;
use crate::machine::state::{Broken, State};
use crate::machine::task::{Resume, Status, TaskKind};
use crate::machine::trace::Object;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};

impl State {
    /// Who should run on `cpu` instead of its current task, which could go on (`schedule`, `pick_next_task`). What made the CPU look
    /// is dealt with.
    pub(in crate::machine) fn replacement(&mut self, cpu: CpuId) -> Option<TaskId> {
        self.read_clock(cpu);
        self.cpus[cpu as usize].forget_resched();
        self.rcu_passes(cpu);
        let next = self.pick(cpu);
        if next == self.cpus[cpu as usize].current {
            self.run_by_clock(cpu);
            return None;
        }
        next
    }

    /// The current task of `cpu` is taken off involuntarily for `next`; it goes on later where it was.
    pub(in crate::machine) fn preempt(&mut self, cpu: CpuId, next: TaskId) {
        let id = self.cpus[cpu as usize].current.expect("only a running task is preempted");
        self.counters.involuntary += 1;
        self.note("preempt", id, Object::Nothing);
        self.give_way(cpu, id, next);
    }

    /// The running task `id` yields to `next` and stays runnable; its program goes on when it is picked again.
    pub(in crate::machine) fn yield_cpu(&mut self, id: TaskId, next: TaskId) {
        let cpu = self.tasks[id as usize].cpu;
        self.tasks[id as usize].resume = Resume::Program;
        self.note("yield", id, Object::Nothing);
        self.give_way(cpu, id, next);
    }

    #[inline(never)]
    fn give_way(&mut self, cpu: CpuId, id: TaskId, next: TaskId) {
        self.leave_cpu(id, Status::Runnable, Reason::Preempted);
        self.switch_to(cpu, next);
        self.add_to_queue(cpu, id);
    }

    /// The running task `id` goes to sleep; its program goes on after a wake-up. `reason` is why, if it is not for a lock.
    pub(in crate::machine) fn sleep(&mut self, id: TaskId, reason: Reason) {
        let task = &mut self.tasks[id as usize];
        let cpu = task.cpu;
        task.resume = Resume::Program;
        if task.preempt_off > 0 {
            self.sleeps_while_atomic(id);
        }
        if self.tasks[id as usize].plugged {
            self.flush_plug_asleep(id);
        }
        self.worker_sleeps(id);
        self.note("sleep", id, Object::Nothing);
        if self.runs_alone(cpu, id) && !self.cpus[cpu as usize].skips_clock {
            return self.sleep_alone(cpu, id, reason);
        }
        self.read_clock(cpu);
        self.dequeue_task(cpu, id, Leaving::Sleeping);
        self.leave_cpu(id, Status::Sleeping, reason);
        self.cpus[cpu as usize].io_waiters += u32::from(self.tasks[id as usize].in_iowait);
        self.cpus[cpu as usize].leaving = Some(id);
        self.schedule(cpu);
    }

    #[cold]
    fn sleeps_while_atomic(&mut self, id: TaskId) {
        let detail = format!("{} sleeps at {} ps and holds a spinlock", self.called(id), self.now);
        self.broken.push(Broken { law: "no sleep while atomic", detail });
    }

    /// The running task `id` has ended.
    pub(in crate::machine) fn exit(&mut self, id: TaskId) {
        let cpu = self.tasks[id as usize].cpu;
        self.note("exit", id, Object::Nothing);
        self.read_clock(cpu);
        self.dequeue_task(cpu, id, Leaving::Ended);
        self.detach_load(id, cpu);
        self.leave_cpu(id, Status::Dead, Reason::Gone);
        self.schedule(cpu);
        let task = &self.tasks[id as usize];
        if task.kind == TaskKind::Load && task.background {
            self.leave_stack(cpu);
        }
    }

    #[inline(always)]
    pub(super) fn leave_cpu(&mut self, id: TaskId, status: Status, reason: Reason) {
        let now = self.now;
        let cpu = self.tasks[id as usize].cpu;
        let idle = if status == Status::Runnable { self.idle_clock(cpu) } else { 0 };
        self.tasks[id as usize].leave_cpu(now, idle, status, reason);
        let cpu = &mut self.cpus[cpu as usize];
        debug_assert_eq!(cpu.accounted, now, "time before a switch is accounted");
        cpu.current = None;
        self.tell_who_left(id);
    }

    /// Who has to do with `id`, which has left its CPU, learns of it.
    #[inline(always)]
    pub(super) fn tell_who_left(&mut self, id: TaskId) {
        if !self.tasks[id as usize].watchers().is_empty() {
            self.tell_watchers(id);
        }
        self.chain_of_task_changes(id);
    }

    /// Who spins as long as `id` stays on its CPU looks again.
    #[cold]
    fn tell_watchers(&mut self, id: TaskId) {
        let mut watchers = std::mem::take(&mut self.tasks[id as usize].others().watchers);
        for watcher in watchers.drain(..) {
            self.spin_check(watcher, self.now);
        }
        self.tasks[id as usize].others().watchers = watchers;
    }

    /// Gives `cpu`, whose task has left, the next one, if it has one.
    #[inline(always)]
    pub(in crate::machine) fn schedule(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].forget_resched();
        match self.only_choice(cpu) {
            Some(Some(only)) if self.nobody_runs(cpu) => self.switch_to_only(cpu, only),
            Some(next) => self.switch_to_next(cpu, next),
            None => {
                let next = self.pick_of_several(cpu);
                self.switch_to_next(cpu, next);
            }
        }
    }

    #[inline(never)]
    fn switch_to_next(&mut self, cpu: CpuId, next: Option<TaskId>) {
        match next {
            Some(next) => self.switch_to(cpu, next),
            None => {
                self.cpus[cpu as usize].behind = 0;
                self.newly_idle(cpu);
            }
        }
    }

    /// Nobody is to run on `cpu`.
    #[inline(always)]
    pub(super) fn go_idle(&mut self, cpu: CpuId) {
        self.begin_idling(cpu);
        self.note_idle_core(cpu);
        self.switch_to_idle(cpu);
    }

    #[inline(always)]
    pub(super) fn switch_to(&mut self, cpu: CpuId, next: TaskId) {
        self.set_next(cpu, Some(next));
        self.remove_from_queue(cpu, next);
        self.run_by_clock(cpu);
        self.begin_switch(cpu, Some(next));
    }

    #[inline(always)]
    pub(in crate::machine) fn begin_switch(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let time = self.switch_mm(cpu, next);
        let before = std::mem::take(&mut self.cpus[cpu as usize].before_switch);
        self.occupy(cpu, next, time + before);
    }

    /// For so long `cpu` is between tasks, before `next` or idle.
    #[inline(always)]
    pub(in crate::machine) fn occupy(&mut self, cpu: CpuId, next: Option<TaskId>, time: Time) {
        let end = self.now + time;
        let to_idle = self.time_to_switch(cpu, None);
        let c = &mut self.cpus[cpu as usize];
        c.switches_to(next);
        c.leaves_at = if c.looks() { end + to_idle } else { end };
        let generation = c.generation;
        self.set_executing(cpu, true);
        self.push(end, Happening::SwitchDone, cpu, generation);
    }

    /// A switch is complete. Returns the task whose program is to take its next step.
    #[inline(always)]
    pub(in crate::machine) fn switch_done(&mut self, cpu: CpuId) -> Option<TaskId> {
        let now = self.now;
        let c = &mut self.cpus[cpu as usize];
        c.account(now, c.between_tasks());
        let Phase::Switching(next) = c.phase else { unreachable!("a switch was under way") };
        if let Some(errand) = c.errand.take() {
            self.errand_done(cpu, errand);
            return None;
        }
        c.leaving = None;
        let switched = !std::mem::take(&mut c.in_softirq);
        self.counters.switches += u64::from(switched); // also to idle: rq->nr_switches
        let Some(id) = next else {
            self.idles(cpu);
            return None;
        };
        c.phase = Phase::Running;
        c.current = Some(id);
        let arrived = std::mem::take(&mut c.arrived);
        let ticks = c.next_tick.is_some();
        let task = &mut self.tasks[id as usize];
        task.come_to_run(now, c.idle_clock(now), std::mem::take(&mut c.owed_irq));
        let goes_on = task.resume == Resume::Program;
        self.chain_of_task_changes(id);
        self.note("run", id, Object::Nothing);
        self.runs_after_wakeup(id);
        if !ticks {
            self.arm_tick_if_wanted(cpu);
        }
        if !goes_on {
            self.continue_segment(id);
        }
        if arrived {
            self.look_at_arrivals(cpu);
        }
        goes_on.then_some(id)
    }

    #[cold]
    fn errand_done(&mut self, cpu: CpuId, errand: Errand) {
        match errand {
            Errand::Look(at, spent) => self.look_done(cpu, at, spent),
            Errand::Move(id, to) => self.moved_running(cpu, id, to),
        }
    }

    /// Who was woken while `cpu` switched had to wait for the lock of its run queue, and is now compared with who has it.
    fn look_at_arrivals(&mut self, cpu: CpuId) {
        let order = |by: &Waker| (by.cpu != cpu, by.done);
        let mut preempted: Option<Waker> = None;
        for at in 0..self.cpus[cpu as usize].queue.len() {
            let id = self.cpus[cpu as usize].queue[at];
            let Some(by) = self.tasks[id as usize].arrived.take() else { continue };
            if self.preempts(id, cpu) && preempted.is_none_or(|first| order(&by) < order(&first)) {
                preempted = Some(Waker { task: None, ..by });
            }
        }
        if preempted.is_some() {
            self.cpus[cpu as usize].skips_clock = true;
            self.resched(cpu, preempted);
        }
    }
}
