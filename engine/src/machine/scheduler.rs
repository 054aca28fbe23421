//! The scheduler: switches, preemption, wake-up placement, idle CPUs and balancing. Who runs next is decided in `policy`.
//!
//! Rules from `kernel/sched/{core,fair}.c` of Linux 5 and 6. What is left out: real-time classes, periodic balancing other than
//! pulls by idle CPUs.

use super::chains::Reason;
use super::cpu::{Account, Phase};
use super::entity::Member;
use super::policy::{Entering, Leaving};
use super::queue::Happening;
use super::run_queue::Level;
use super::state::{Broken, State};
use super::task::{Resume, Status, TaskId, TaskKind};
use super::time::Time;
use super::topology::CpuId;
use super::trace::Object;
use crate::spec::Preemption;

impl State {
    // ---- switching ------------------------------------------------------------------------------------------

    /// Who should run on `cpu` instead of its current task, which could go on (`schedule`, `pick_next_task`). What made the CPU look
    /// is dealt with.
    pub(super) fn replacement(&mut self, cpu: CpuId) -> Option<TaskId> {
        self.update_current(cpu);
        self.cpus[cpu as usize].need_resched = false;
        let next = self.pick(cpu);
        next.filter(|_| next != self.cpus[cpu as usize].current)
    }

    /// The current task of `cpu` is taken off involuntarily for `next`; it goes on later where it was.
    pub(super) fn preempt(&mut self, cpu: CpuId, next: TaskId) {
        let id = self.cpus[cpu as usize].current.expect("only a running task is preempted");
        self.counters.involuntary += 1;
        self.note("preempt", id, Object::Nothing);
        self.give_way(cpu, id, next);
    }

    /// The running task `id` yields to `next` and stays runnable; its program goes on when it is picked again.
    pub(super) fn yield_cpu(&mut self, id: TaskId, next: TaskId) {
        let cpu = self.tasks[id as usize].cpu;
        self.tasks[id as usize].resume = Resume::Program;
        self.note("yield", id, Object::Nothing);
        self.give_way(cpu, id, next);
    }

    fn give_way(&mut self, cpu: CpuId, id: TaskId, next: TaskId) {
        self.leave_cpu(id, Status::Runnable, Reason::Preempted);
        self.switch_to(cpu, next);
        self.add_to_queue(cpu, id);
    }

    /// The running task `id` goes to sleep; its program goes on after a wake-up. `reason` is why, if it is not for a lock.
    pub(super) fn sleep(&mut self, id: TaskId, reason: Reason) {
        let cpu = self.tasks[id as usize].cpu;
        if self.tasks[id as usize].preempt_off > 0 {
            self.sleeps_while_atomic(id);
        }
        self.tasks[id as usize].resume = Resume::Program;
        self.note("sleep", id, Object::Nothing);
        self.dequeue_task(cpu, id, Leaving::Sleeping);
        self.leave_cpu(id, Status::Sleeping, reason);
        self.schedule(cpu);
    }

    #[cold]
    fn sleeps_while_atomic(&mut self, id: TaskId) {
        let detail = format!("task {id} sleeps at {} ps and holds a spinlock", self.now);
        self.broken.push(Broken { law: "no sleep while atomic", detail });
    }

    /// The running task `id` has ended.
    pub(super) fn exit(&mut self, id: TaskId) {
        let cpu = self.tasks[id as usize].cpu;
        self.note("exit", id, Object::Nothing);
        self.dequeue_task(cpu, id, Leaving::Ended);
        self.detach_load(id, cpu);
        self.leave_cpu(id, Status::Dead, Reason::Gone);
        self.schedule(cpu);
    }

    pub(super) fn leave_cpu(&mut self, id: TaskId, status: Status, reason: Reason) {
        let now = self.now;
        let cpu = self.tasks[id as usize].cpu;
        let idle = if status == Status::Runnable { self.idle_clock(cpu) } else { 0 };
        let task = &mut self.tasks[id as usize];
        task.become_status(now, idle, status);
        task.reason = reason;
        task.generation = task.generation.wrapping_add(1);
        task.last_ran = now;
        if !task.watchers.is_empty() {
            self.tell_watchers(id);
        }
        let cpu = &mut self.cpus[cpu as usize];
        debug_assert_eq!(cpu.accounted, now, "time before a switch is accounted");
        cpu.current = None;
        self.chain_of_task_changes(id);
    }

    /// Who spins as long as `id` stays on its CPU looks again.
    #[cold]
    fn tell_watchers(&mut self, id: TaskId) {
        let mut watchers = std::mem::take(&mut self.tasks[id as usize].watchers);
        for watcher in watchers.drain(..) {
            self.spin_check(watcher, self.now);
        }
        self.tasks[id as usize].watchers = watchers;
    }

    /// Gives `cpu`, whose task has left, the next one; pulls one from elsewhere or idles when it has none.
    pub(super) fn schedule(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].need_resched = false;
        match self.pick(cpu).or_else(|| self.pull(cpu)) {
            Some(next) => self.switch_to(cpu, next),
            None => {
                self.idle.insert(cpu);
                self.note_idle_core(cpu);
                self.set_next(cpu, None);
                self.begin_switch(cpu, None);
            }
        }
    }

    fn switch_to(&mut self, cpu: CpuId, next: TaskId) {
        self.set_next(cpu, Some(next));
        self.remove_from_queue(cpu, next);
        self.cpus[cpu as usize].exec_start = self.now;
        self.begin_switch(cpu, Some(next));
    }

    #[inline]
    fn begin_switch(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let c = &mut self.cpus[cpu as usize];
        let end = self.now + self.costs.context_switch + std::mem::take(&mut c.stopper);
        c.phase = Phase::Switching(next);
        c.generation = c.generation.wrapping_add(1);
        let generation = c.generation;
        self.set_executing(cpu, true);
        self.push(end, Happening::SwitchDone, cpu, generation);
    }

    /// A switch is complete. Returns the task whose program is to take its next step.
    pub(super) fn switch_done(&mut self, cpu: CpuId) -> Option<TaskId> {
        let now = self.now;
        let c = &mut self.cpus[cpu as usize];
        c.account(now, Account::Switch);
        let Phase::Switching(next) = c.phase else { unreachable!("a switch was under way") };
        self.counters.switches += 1; // also to idle: rq->nr_switches
        let c = &mut self.cpus[cpu as usize];
        let Some(id) = next else {
            self.set_executing(cpu, false);
            let c = &mut self.cpus[cpu as usize];
            if c.queue.is_empty() {
                c.phase = Phase::Idle(now);
                self.enter_idle(cpu);
                self.idle.insert(cpu); // the tick may have moved away who was woken meanwhile
                self.note_cpu("idle", cpu, Object::Nothing);
            } else {
                self.idle.remove(cpu);
                self.woken_while_switching(cpu);
            }
            return None;
        };
        c.phase = Phase::Running;
        c.current = Some(id);
        let owed = std::mem::take(&mut c.owed_irq);
        let arrived = std::mem::take(&mut c.arrived);
        let idle = self.idle_clock(cpu);
        let task = &mut self.tasks[id as usize];
        task.segment.irq += owed;
        task.become_status(now, idle, Status::Running);
        self.chain_of_task_changes(id);
        self.note("run", id, Object::Nothing);
        self.runs_after_wakeup(id);
        self.arm_tick(cpu);
        let goes_on = self.tasks[id as usize].resume == Resume::Program;
        if !goes_on {
            self.continue_segment(id);
        }
        if arrived {
            self.look_at_arrivals(cpu);
        }
        goes_on.then_some(id)
    }

    /// Who was woken while `cpu` switched had to wait for the lock of its run queue, and is now compared with who has it.
    fn look_at_arrivals(&mut self, cpu: CpuId) {
        let mut preempted = false;
        for at in 0..self.cpus[cpu as usize].queue.len() {
            let id = self.cpus[cpu as usize].queue[at];
            let arrived = std::mem::take(&mut self.tasks[id as usize].arrived);
            preempted |= arrived && self.preempts(id, cpu);
        }
        self.cpus[cpu as usize].need_resched |= preempted;
        self.heed_resched(cpu);
    }

    /// A task was woken here before the switch to idle was complete. The waker left it to an interrupt
    /// (`ttwu_queue_wakelist`), for which the CPU idles.
    fn woken_while_switching(&mut self, cpu: CpuId) {
        let (now, arrives) = (self.now, self.cpus[cpu as usize].interrupted);
        if arrives <= now {
            self.schedule(cpu);
        } else {
            self.exit_idle(cpu, arrives + self.exit_time(cpu, self.idle_ladder.deepest(arrives - now)));
        }
    }

    // ---- waking ---------------------------------------------------------------------------------------------

    /// Wakes `id`. `waker` is the running task that does it and pays for it; without one it is an interrupt on the
    /// sleeper's CPU. A task that is awake remembers the wake-up (it came before the sleep).
    pub(super) fn wake(&mut self, id: TaskId, waker: Option<TaskId>) {
        self.wake_fetched(id, waker, 0);
    }

    /// The same where the waker has spent the time `fetched` on the lines of `id` already.
    pub(super) fn wake_fetched(&mut self, id: TaskId, waker: Option<TaskId>, fetched: Time) {
        match self.tasks[id as usize].status {
            Status::Sleeping => {}
            Status::Dead => return,
            Status::Running | Status::Runnable => {
                self.tasks[id as usize].woken = true;
                if let Some(waker) = waker.filter(|_| fetched == 0) {
                    self.read_node(waker, id); // its `pi_lock` and state
                }
                return;
            }
        }
        self.counters.wakeups += 1;
        let from = waker.map(|w| self.tasks[w as usize].cpu);
        if self.tasks[id as usize].entity.delayed {
            self.note_wakeup(id, self.tasks[id as usize].cpu, from);
            return self.wake_in_queue(id, waker, fetched);
        }
        let cpu = self.choose_cpu(id, waker);
        self.note_wakeup(id, cpu, from);
        let delay = waker.map_or(0, |w| self.charge_waker(w, cpu, fetched));
        self.enqueue(id, cpu, from, delay, Entering::Woken);
    }

    /// Wakes `id`, which sleeps and has not left its queue yet: it stays there (`ttwu_runnable`). It is placed beside what the current
    /// task was when it was last accounted: `enqueue_task_fair` with `ENQUEUE_DELAYED` (6.12) comes before any `update_curr`, so who
    /// has run since is ahead and gives way.
    fn wake_in_queue(&mut self, id: TaskId, waker: Option<TaskId>, fetched: Time) {
        let cpu = self.tasks[id as usize].cpu;
        if let Some(waker) = waker {
            self.charge_waker(waker, cpu, fetched);
        }
        self.requeue(cpu, self.tasks[id as usize].level, Member::Task(id));
        self.update_current(cpu);
        self.add_awake(id, cpu);
    }

    /// Wakes `id` if it is parked; else its next park ends at once. Its timer, if it has one, is stopped.
    pub(super) fn kick(&mut self, id: TaskId, waker: Option<TaskId>) {
        let task = &mut self.tasks[id as usize];
        task.timer = None;
        if std::mem::take(&mut task.parked) {
            self.wake(id, waker);
        } else {
            task.kicked = true;
        }
    }

    /// Makes the new task `id` runnable on the CPU chosen for it (`wake_up_new_task`).
    pub(super) fn start_task(&mut self, id: TaskId, parent: Option<TaskId>) {
        let (cpu, kind) = (self.tasks[id as usize].cpu, self.tasks[id as usize].kind);
        self.note("start", id, Object::Operation(kind.name()));
        let from = parent.map(|p| self.tasks[p as usize].cpu);
        let delay = parent.map_or(0, |p| self.charge_waker(p, cpu, 0));
        self.enqueue(id, cpu, from, delay, Entering::New);
    }

    /// The waker pays for the wake-up; the time until it is done is returned.
    fn charge_waker(&mut self, waker: TaskId, target: CpuId, fetched: Time) -> Time {
        let own = self.tasks[waker as usize].cpu;
        let interrupt = target != own && self.is_idle(target);
        let cost = self.costs.wakeup.saturating_sub(fetched) + if interrupt { self.costs.ipi_send } else { 0 };
        let segment = &mut self.tasks[waker as usize].segment;
        segment.debt += cost;
        segment.debt
    }

    /// Makes `id` runnable on `cpu`.
    pub(super) fn enqueue(&mut self, id: TaskId, cpu: CpuId, from: Option<CpuId>, delay: Time, entering: Entering) {
        let old = self.tasks[id as usize].cpu;
        if entering == Entering::New {
            if from.is_some() || self.tasks[id as usize].kind == TaskKind::Load {
                self.load_of_new(id, cpu);
            } // else a kernel thread that the machine begins with: it has slept for long
            self.attach_load(id, cpu);
        } else if old != cpu {
            self.counters.migrations += 1;
            self.detach_load(id, old);
            self.attach_load(id, cpu);
        }
        if entering == Entering::Woken {
            self.note_idle_time(cpu);
        }
        self.enqueue_task(cpu, id, entering);
        self.add_awake(id, cpu);
        match self.cpus[cpu as usize].phase {
            Phase::Idle(since) => self.leave_idle(cpu, since, from, delay),
            Phase::Switching(None) if self.is_idle(cpu) => {
                self.idle.remove(cpu);
                self.cpus[cpu as usize].interrupted = self.now + delay + self.delivery(cpu, from);
            }
            Phase::Switching(None) => {} // somebody else's interrupt is under way
            Phase::Running | Phase::Switching(Some(_)) | Phase::IdleExit(_) => {}
        }
    }

    /// The queued `id` is runnable on `cpu`, and runs at once if it should.
    #[inline]
    fn add_awake(&mut self, id: TaskId, cpu: CpuId) {
        let (now, idle) = (self.now, self.idle_clock(cpu));
        let task = &mut self.tasks[id as usize];
        task.become_status(now, idle, Status::Runnable);
        task.reason = Reason::Woken;
        self.chain_of_task_changes(id);
        self.note("wake", id, Object::Nothing);
        match self.cpus[cpu as usize].phase {
            Phase::Running => {
                let preempts = self.preempts(id, cpu);
                self.cpus[cpu as usize].need_resched |= preempts;
                self.heed_resched(cpu);
                self.arm_tick(cpu);
            }
            Phase::Switching(Some(_)) => {
                self.cpus[cpu as usize].arrived = true;
                self.tasks[id as usize].arrived = true;
            }
            _ => {}
        }
    }

    pub(super) fn leave_idle(&mut self, cpu: CpuId, since: Time, from: Option<CpuId>, delay: Time) {
        let now = self.now;
        self.idle.remove(cpu);
        let (state, joules) = self.end_idle(cpu, since);
        self.idle_joules += joules;
        self.exit_idle(cpu, now + delay + self.delivery(cpu, from) + self.exit_time(cpu, state));
    }

    /// How long `cpu` takes to leave an idle state. A package sleeps only with all its CPUs.
    fn exit_time(&self, cpu: CpuId, state: usize) -> Time {
        let sleeps = || self.topology.group_of_socket(cpu).all(|other| other == cpu || self.is_idle(other));
        self.idle_ladder.exit_where(state, sleeps)
    }

    /// From sending an interrupt, if it takes one to wake somebody on `cpu`, to its arrival.
    fn delivery(&self, cpu: CpuId, from: Option<CpuId>) -> Time {
        if from.is_some_and(|from| from != cpu) {
            self.costs.ipi_deliver
        } else {
            0
        }
    }

    /// From now until `end`, `cpu` leaves its idle state.
    #[inline]
    fn exit_idle(&mut self, cpu: CpuId, end: Time) {
        let c = &mut self.cpus[cpu as usize];
        c.phase = Phase::IdleExit(self.now);
        c.generation = c.generation.wrapping_add(1);
        let generation = c.generation;
        self.push(end, Happening::IdleExit, cpu, generation);
    }

    /// `cpu` has left its idle state.
    pub(super) fn idle_exit_done(&mut self, cpu: CpuId) {
        let now = self.now;
        if let Phase::IdleExit(since) = self.cpus[cpu as usize].phase {
            self.idle_joules += self.idle_ladder.exit_joules(now - since.max(self.window_start));
        }
        self.cpus[cpu as usize].account(now, Account::Idle);
        self.note_cpu("idle exit", cpu, Object::Nothing);
        self.schedule(cpu);
    }

    pub(super) fn is_idle(&self, cpu: CpuId) -> bool {
        self.idle.contains(cpu)
    }
}

impl State {
    // ---- preemption and the tick ------------------------------------------------------------------------------

    /// The scheduler wants `cpu` for another task, if `need_resched` is set: preempts its current one at once if it may.
    pub(super) fn heed_resched(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu as usize];
        let Some(id) = c.current.filter(|_| c.need_resched && c.phase == Phase::Running) else { return };
        let task = &self.tasks[id as usize];
        if task.resume == Resume::Segment && self.preemptible(id) {
            self.book_segment(id);
            match self.replacement(cpu) {
                Some(next) => self.preempt(cpu, next),
                None => self.run_segment(id),
            }
        } else if task.spins_until_resched {
            self.spin_check(id, self.now);
        } else if task.spinning && self.kernel.preemption == Preemption::Host {
            let Some(next) = self.replacement(cpu) else { return };
            self.tasks[id as usize].spinning = false; // it looks again when it comes to run
            self.book_spin(id);
            self.preempt(cpu, next);
        }
    }

    /// A busy CPU ticks when somebody waits for it, or its group's weight is to be kept up to date.
    pub(super) fn arm_tick(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu as usize];
        let grouped = c.run_queues[Level::Root as usize].current == Some(Member::Group);
        if !c.tick_armed && (grouped || !c.queue.is_empty()) {
            self.cpus[cpu as usize].tick_armed = true;
            let next = (self.now / self.kernel.tick + 1) * self.kernel.tick;
            self.push(next, Happening::Tick, cpu, 0);
        }
    }

    /// The scheduler tick: ends a used-up slice, and lets an idle CPU pull a waiting task.
    pub(super) fn tick(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].tick_armed = false;
        self.note_cpu("tick", cpu, Object::Nothing);
        if !self.cpus[cpu as usize].queue.is_empty() {
            self.kick_idle_cpus(cpu);
        }
        if let (Phase::Running, Some(id)) = (self.cpus[cpu as usize].phase, self.cpus[cpu as usize].current) {
            self.tick_current(cpu, id);
            self.heed_resched(cpu);
        }
        self.arm_tick(cpu);
    }
}
