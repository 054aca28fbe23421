//! Tasks become runnable: woken from their sleep, or new (`try_to_wake_up`, `wake_up_new_task`).

use super::entity::Member;
use super::policy::Entering;
use super::resched::Waker;
use crate::kernel::sched::Descheduling;
use crate::machine::cpus::cpu::Phase;
use crate::machine::state::State;
use crate::machine::task::{Status, Task, TaskKind};
use crate::machine::trace::Object;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};

impl State {
    /// Wakes `id`. `waker` is the running task that does it and pays for it; without one it is an interrupt on the
    /// sleeper's CPU. A task that is awake remembers the wake-up (it came before the sleep).
    pub(in crate::machine) fn wake(&mut self, id: TaskId, waker: Option<TaskId>) {
        self.wake_fetched(id, waker, 0);
    }

    /// The same where the waker has spent the time `fetched` on the lines of `id` already.
    pub(in crate::machine) fn wake_fetched(&mut self, id: TaskId, waker: Option<TaskId>, fetched: Time) {
        let task = &self.tasks[id as usize];
        match task.status {
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
        let (slept_on, delayed, waits_for_io) = (task.cpu, task.entity.delayed, task.in_iowait);
        if self.rests_on(id) {
            return;
        }
        self.chain_wakes(id);
        self.counters.wakeups += 1;
        if waits_for_io {
            self.cpus[slept_on as usize].io_waiters -= 1;
        }
        let from = waker.map(|w| self.tasks[w as usize].cpu);
        let left = waker.is_some_and(|waker| self.leaves_to_switch(waker, id));
        if delayed {
            self.note_wakeup(id, slept_on, from);
            return self.wake_in_queue(id, waker, fetched);
        }
        let cpu = if left { slept_on } else { self.choose_cpu(id, waker) };
        self.note_wakeup(id, cpu, from);
        let mut by = waker.map(|w| self.charge_waker(w, (slept_on, cpu), fetched, Entering::Woken, left));
        if left && self.cpus[cpu as usize].executing_task().is_some() {
            by = None; // the interrupt that queues it comes right after the switch
        }
        self.enqueue(id, cpu, by, Entering::Woken);
    }

    /// Whether `waker` leaves `id` to its CPU, another one, which has not switched from it yet (`try_to_wake_up`, `ttwu_queue_cond`); else
    /// it waits until that has.
    #[inline(always)]
    fn leaves_to_switch(&mut self, waker: TaskId, id: TaskId) -> bool {
        let home = self.tasks[id as usize].cpu;
        self.cpus[home as usize].leaving == Some(id)
            && self.tasks[waker as usize].cpu != home
            && self.finds_descheduling(waker, id, home)
    }

    #[inline(never)]
    fn finds_descheduling(&mut self, waker: TaskId, id: TaskId, home: CpuId) -> bool {
        let (sleeper, c) = (&self.tasks[id as usize], &self.cpus[home as usize]);
        let &Task { ref segment, cpu: own, .. } = &self.tasks[waker as usize];
        let (at, end) = (self.now + segment.debt, c.leaves_at);
        if at >= end {
            return false;
        }
        let dequeued = at >= sleeper.times.since + self.kernel.dequeue && !sleeper.entity.delayed;
        let others = c.load() + c.delayed as usize;
        let (afar, in_queue) = (!self.topology.share_llc(own, home), others + usize::from(!dequeued));
        let left = match self.kernel.rules.descheduling {
            Descheduling::Waits => false,
            Descheduling::QueuesBesideOne => afar || in_queue <= 1,
            Descheduling::QueuesAlone => afar || in_queue == 0,
            Descheduling::DequeuedFirst => dequeued && (afar || others == 0),
        };
        if !left {
            self.tasks[waker as usize].segment.debt += (end - at).saturating_sub(self.lock_code.before_wait);
        }
        left
    }

    /// Wakes `id`, which sleeps and has not left its queue yet: it stays there (`ttwu_runnable`). It is placed beside what the current
    /// task was when it was last accounted: `enqueue_task_fair` with `ENQUEUE_DELAYED` (6.12) comes before any `update_curr`, so who
    /// has run since is ahead and gives way.
    fn wake_in_queue(&mut self, id: TaskId, waker: Option<TaskId>, fetched: Time) {
        let cpu = self.tasks[id as usize].cpu;
        let by = waker.map(|w| self.charge_waker(w, (cpu, cpu), fetched, Entering::Woken, false));
        let told = std::mem::take(&mut self.cpus[cpu as usize].need_resched);
        self.requeue(cpu, self.tasks[id as usize].level, Member::Task(id));
        self.update_current(cpu);
        self.add_awake(id, cpu, by, told);
    }

    /// Wakes `id` if it is parked; else its next park ends at once. Its timer, if it has one, is stopped.
    pub(in crate::machine) fn kick(&mut self, id: TaskId, waker: Option<TaskId>) {
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
        let by = parent.map(|p| self.charge_waker(p, (cpu, cpu), 0, Entering::New, false));
        self.enqueue(id, cpu, by, Entering::New);
    }

    /// The waker pays for the wake-up of who slept on the CPU `home`. An idle CPU, or one to which it was `left`, is only told whom to
    /// wake, and does the rest before it switches (`ttwu_queue_wakelist`, `sched_ttwu_pending`), or in the interrupt after the switch
    /// to another task. Costs of wake-ups and switches are those within a socket; from another one their lines take longer.
    #[inline(always)]
    fn charge_waker(
        &mut self,
        waker: TaskId,
        (home, target): (CpuId, CpuId),
        fetched: Time,
        entering: Entering,
        left: bool,
    ) -> Waker {
        let polls = self.finds_polling(target);
        let &mut Task { ref mut segment, cpu: own, .. } = &mut self.tasks[waker as usize];
        let lines = self.kernel.wakeup_lines * self.topology.beyond_socket(home, own);
        let lines_back = self.kernel.woken_lines * self.topology.beyond_socket(own, target);
        let c = &mut self.cpus[target as usize];
        let interrupt = left || target != own && (self.idle.contains(target) || c.looks());
        let queued = left || interrupt && entering == Entering::Woken && self.kernel.rules.wakeup_queue;
        let wakeup = if queued { self.costs.wakeup_queued } else { self.costs.wakeup };
        match c.phase {
            Phase::Switching(Some(_)) if left => {
                c.owed_irq += self.costs.wakeup - wakeup + lines_back + self.costs.resched_serve;
            }
            _ => c.before_switch += self.costs.wakeup - wakeup + lines_back,
        }
        segment.debt +=
            (wakeup + lines).saturating_sub(fetched) + if interrupt && !polls { self.costs.ipi_send } else { 0 };
        Waker { cpu: own, done: self.now + segment.debt, task: Some(waker) }
    }

    /// Makes `id` runnable on `cpu`.
    #[inline(always)]
    pub(in crate::machine) fn enqueue(&mut self, id: TaskId, cpu: CpuId, by: Option<Waker>, entering: Entering) {
        self.come_to_cpu(cpu);
        let old = self.tasks[id as usize].cpu;
        if entering == Entering::New {
            if by.is_some() || self.tasks[id as usize].kind == TaskKind::Load {
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
        if let Phase::Idle(since) = self.cpus[cpu as usize].phase {
            return self.enqueue_on_idle(id, cpu, since, by, entering);
        }
        let told = std::mem::take(&mut self.cpus[cpu as usize].need_resched);
        self.enqueue_task(cpu, id, entering);
        self.add_awake(id, cpu, by, told);
        if self.cpus[cpu as usize].phase == Phase::Switching(None)
            && (self.is_idle(cpu) || self.cpus[cpu as usize].looks())
        {
            self.end_idling(cpu);
            let (from, delay) = self.told_by(by);
            self.cpus[cpu as usize].interrupted = self.now + delay + self.delivery(cpu, from);
        } // else nobody is told: it runs, is on its way to that, or somebody else's interrupt is
    }

    /// The same on a CPU that idles since `since`, which nobody asks for another task: it leaves its idle state.
    #[inline(always)]
    fn enqueue_on_idle(&mut self, id: TaskId, cpu: CpuId, since: Time, by: Option<Waker>, entering: Entering) {
        if entering != Entering::New && self.would_be_alone(cpu, id) {
            self.becomes_runnable_alone(cpu, id);
        } else {
            self.enqueue_task(cpu, id, entering);
            self.becomes_runnable(id, cpu);
        }
        let (from, delay) = self.told_by(by);
        self.leave_idle(cpu, since, from, delay);
    }

    /// From which CPU a wake-up comes, if a task is woken by another, and in how much time.
    #[inline(always)]
    fn told_by(&self, by: Option<Waker>) -> (Option<CpuId>, Time) {
        (by.map(|by| by.cpu), by.map_or(0, |by| by.done - self.now))
    }

    #[inline(always)]
    fn becomes_runnable(&mut self, id: TaskId, cpu: CpuId) {
        let (now, idle) = (self.now, self.idle_clock(cpu));
        self.tasks[id as usize].become_runnable(now, idle);
        self.is_awake(id);
    }

    /// Who waits for `id` and who records learns that it is runnable.
    #[inline(always)]
    pub(super) fn is_awake(&mut self, id: TaskId) {
        self.chain_of_task_changes(id);
        self.note("wake", id, Object::Nothing);
    }

    /// The queued `id` is runnable on `cpu`, and runs at once if it should. `told` is whether the CPU was to look for another task
    /// before; who uses up a slice is noticed now, too.
    #[inline(always)]
    fn add_awake(&mut self, id: TaskId, cpu: CpuId, by: Option<Waker>, told: bool) {
        self.becomes_runnable(id, cpu);
        match self.cpus[cpu as usize].phase {
            Phase::Running => {
                let preempts = self.preempts(id, cpu);
                let c = &mut self.cpus[cpu as usize];
                let wanted = preempts | std::mem::replace(&mut c.need_resched, told);
                c.skips_clock |= wanted || told || c.resched_sent; // `rq_clock_skip_update` in `wakeup_preempt`
                if wanted {
                    self.resched(cpu, by);
                }
                self.arm_tick(cpu);
            }
            Phase::Switching(Some(_)) => {
                self.cpus[cpu as usize].need_resched |= told;
                self.cpus[cpu as usize].arrived = true;
                self.tasks[id as usize].arrived = Some(by.unwrap_or(Waker { cpu, done: self.now, task: None }));
            }
            _ => self.cpus[cpu as usize].need_resched |= told,
        }
    }
}
