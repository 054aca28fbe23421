//! Tasks become runnable: woken from their sleep, or new (`try_to_wake_up`, `wake_up_new_task`).

use super::entity::Member;
use super::policy::Entering;
use super::resched::Waker;
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
        let (slept_on, delayed, waits_for_io) = (task.cpu, task.entity.delayed, task.waits_for_io());
        if self.rests_on(id) {
            return;
        }
        self.chain_wakes(id);
        self.counters.wakeups += 1;
        if waits_for_io {
            self.cpus[slept_on as usize].io_waiters -= 1;
        }
        let from = waker.map(|w| self.tasks[w as usize].cpu);
        if delayed {
            self.note_wakeup(id, slept_on, from);
            return self.wake_in_queue(id, waker, fetched);
        }
        let cpu = self.choose_cpu(id, waker);
        self.note_wakeup(id, cpu, from);
        if let Some(waker) = waker.filter(|_| self.kernel.rules.waits_for_dequeue) {
            self.wait_for_dequeue(waker, id);
        }
        let by = waker.map(|w| self.charge_waker(w, cpu, fetched, Entering::Woken));
        self.enqueue(id, cpu, by, Entering::Woken);
    }

    /// Who wakes `id` on another CPU, which is just taking it off its run queue, waits for the queue's lock until that CPU has switched:
    /// `on_rq` is cleared after the dequeuing (`__block_task`, 6.12), and until then `ttwu_runnable` asks for the lock.
    fn wait_for_dequeue(&mut self, waker: TaskId, id: TaskId) {
        let sleeper = &self.tasks[id as usize];
        let (home, slept) = (sleeper.cpu, sleeper.times.since);
        let waker = &mut self.tasks[waker as usize];
        let at = self.now + waker.segment.debt;
        if waker.cpu != home && at < slept + self.kernel.dequeue {
            waker.segment.debt += (slept + self.costs.context_switch).saturating_sub(at);
        }
    }

    /// Wakes `id`, which sleeps and has not left its queue yet: it stays there (`ttwu_runnable`). It is placed beside what the current
    /// task was when it was last accounted: `enqueue_task_fair` with `ENQUEUE_DELAYED` (6.12) comes before any `update_curr`, so who
    /// has run since is ahead and gives way.
    fn wake_in_queue(&mut self, id: TaskId, waker: Option<TaskId>, fetched: Time) {
        let cpu = self.tasks[id as usize].cpu;
        let by = waker.map(|w| self.charge_waker(w, cpu, fetched, Entering::Woken));
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
        let by = parent.map(|p| self.charge_waker(p, cpu, 0, Entering::New));
        self.enqueue(id, cpu, by, Entering::New);
    }

    /// The waker pays for the wake-up. An idle CPU is only told whom to wake, and does the
    /// rest before it switches (`ttwu_queue_wakelist`, `sched_ttwu_pending`).
    #[inline(always)]
    fn charge_waker(&mut self, waker: TaskId, target: CpuId, fetched: Time, entering: Entering) -> Waker {
        let &mut Task { ref mut segment, cpu: own, .. } = &mut self.tasks[waker as usize];
        let c = &mut self.cpus[target as usize];
        let interrupt = target != own && (self.idle.contains(target) || c.looks());
        let queued = interrupt && entering == Entering::Woken && self.kernel.rules.wakeup_queue;
        let wakeup = if queued { self.costs.wakeup_queued } else { self.costs.wakeup };
        c.before_switch += self.costs.wakeup - wakeup;
        segment.debt += wakeup.saturating_sub(fetched) + if interrupt { self.costs.ipi_send } else { 0 };
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
