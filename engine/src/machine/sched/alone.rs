//! A task of the group that is alone on its CPU sleeps, is woken and comes to run: the rules of `policy` and `eevdf`, for both run queues
//! at once, where nobody is there to be compared with. Nearly all sleepers of a load that has CPUs enough are alone.

use super::eevdf::eevdf_update;
use super::entity::Member;
use super::load::Wanted;
use super::run_queue::{EntityInQueue, Level};
use crate::machine::chains::Reason;
use crate::machine::cpus::cpu::Cpu;
use crate::machine::state::State;
use crate::machine::task::{Status, Task};
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};

impl EntityInQueue<'_> {
    /// It has run for so long and leaves its queue, in which it was alone: it is owed nothing.
    #[inline(always)]
    fn leave_alone(&mut self, ran: i64, slice: i64) {
        if ran != 0 {
            self.entity.vruntime += self.entity.virtual_time(ran);
            self.entity.ran += ran;
            eevdf_update(self.entity, self.queue, slice, false);
        }
        self.entity.lag = 0;
        self.update_load_of(Wanted::RUNS);
        self.leave_running();
    }

    /// It comes into the empty queue from sleep, or from another CPU.
    #[inline(always)]
    fn enter_alone(&mut self, slice: i64) {
        self.entity.vruntime = self.queue.base;
        self.entity.request(self.entity.virtual_time(slice));
        self.join();
    }
}

/// A task of the group and the CPU that it has to itself, looked up once.
struct Alone<'a> {
    number: CpuId,
    cpu: &'a mut Cpu,
    id: TaskId,
    task: &'a mut Task,
    group_load: &'a mut u64,
    slice: i64,
    now: Time,
}

impl Alone<'_> {
    /// The task in the group's run queue, and the group in the root's.
    #[inline(always)]
    fn entities(&mut self) -> [EntityInQueue<'_>; 2] {
        let Cpu { run_queues: [root, of_group], group, contribution, .. } = &mut *self.cpu;
        let sum = Some((contribution, &mut *self.group_load));
        [
            EntityInQueue::of_eevdf(&mut self.task.entity, of_group, Member::Task(self.id), sum, self.now),
            EntityInQueue::of_eevdf(group, root, Member::Group, None, self.now),
        ]
    }

    #[inline(always)]
    fn leave_queues(&mut self) {
        let (now, slice) = (self.now, self.slice);
        let ran = (now - std::mem::replace(&mut self.cpu.exec_start, now)) as i64;
        let [mut own, mut group] = self.entities();
        own.leave_alone(ran, slice);
        group.leave_alone(ran, slice);
        group.queue.runnable -= 1;
        self.cpu.group_is_next = false;
    }

    #[inline(always)]
    fn enter_queues(&mut self) {
        let slice = self.slice;
        let [mut own, mut group] = self.entities();
        own.update_loads(Wanted::NOTHING, Wanted::NOTHING);
        own.enter_alone(slice);
        group.update_loads(Wanted::NOTHING, Wanted::NOTHING);
        let weight = own.weight_of_group();
        if weight != group.entity.weight {
            group.reweigh(weight);
        }
        group.enter_alone(slice);
        group.queue.runnable += 1;
        self.task.cpu = self.number;
        self.cpu.queue.push(self.id);
    }

    #[inline(always)]
    fn come_to_run(&mut self) {
        let [mut own, mut group] = self.entities();
        own.come_to_run();
        group.come_to_run();
        self.cpu.group_is_next = false;
    }
}

impl State {
    /// Whether `id` of the group runs on `cpu`, and nobody else is in its run queues, by the rules of EEVDF.
    #[inline(always)]
    pub(super) fn runs_alone(&self, cpu: CpuId, id: TaskId) -> bool {
        let [root, group] = &self.cpus[cpu as usize].run_queues;
        group.current == Some(Member::Task(id)) && group.members == 1 && root.members == 1 && self.kernel.cfs.is_none()
    }

    /// Whether `id` of the group would be alone in the run queues of `cpu`, by the rules of EEVDF.
    #[inline(always)]
    pub(super) fn would_be_alone(&self, cpu: CpuId, id: TaskId) -> bool {
        let [root, _] = &self.cpus[cpu as usize].run_queues;
        root.members == 0 && self.tasks[id as usize].level == Level::Group && self.kernel.cfs.is_none()
    }

    /// `id` of the group on `cpu`, which it has or will have to itself.
    #[inline(always)]
    fn alone(&mut self, cpu: CpuId, id: TaskId) -> Alone<'_> {
        Alone {
            number: cpu,
            cpu: &mut self.cpus[cpu as usize],
            id,
            task: &mut self.tasks[id as usize],
            group_load: &mut self.group_load,
            slice: self.kernel.base_slice as i64,
            now: self.now,
        }
    }

    /// `id`, which runs alone, leaves the run queues of `cpu` (`dequeue_task_fair`).
    pub(super) fn leave_alone(&mut self, cpu: CpuId, id: TaskId) {
        self.alone(cpu, id).leave_queues();
    }

    /// `id` comes into the empty run queues of `cpu` (`enqueue_task_fair`).
    pub(super) fn enter_alone(&mut self, cpu: CpuId, id: TaskId) {
        self.alone(cpu, id).enter_queues();
        self.queued.insert(cpu);
    }

    /// The same on a CPU that idles: it is awake from now on.
    #[inline(always)]
    pub(super) fn becomes_runnable_alone(&mut self, cpu: CpuId, id: TaskId) {
        let mut alone = self.alone(cpu, id);
        alone.enter_queues();
        alone.task.become_runnable(alone.now, alone.cpu.idle_clock(alone.now));
        self.queued.insert(cpu);
        self.is_awake(id);
    }

    /// `id`, which runs alone on `cpu`, goes to sleep, and nobody comes next. No wake-up has read the clock before.
    #[inline(always)]
    pub(super) fn sleep_alone(&mut self, cpu: CpuId, id: TaskId, reason: Reason) {
        let mut alone = self.alone(cpu, id);
        alone.leave_queues();
        let Alone { cpu: c, task, now, .. } = alone;
        debug_assert_eq!(c.accounted, now, "time before a switch is accounted");
        task.leave_cpu(now, 0, Status::Sleeping, reason);
        c.current = None;
        c.leaving = Some(id);
        c.io_waiters += u32::from(task.in_iowait);
        c.forget_resched();
        c.behind = 0;
        self.tell_who_left(id);
        self.newly_idle(cpu);
    }

    /// `cpu`, which nobody had, switches to the only task that is there.
    #[inline(always)]
    pub(super) fn switch_to_only(&mut self, cpu: CpuId, id: TaskId) {
        let mut alone = self.alone(cpu, id);
        alone.come_to_run();
        let Alone { cpu: c, now, .. } = alone;
        debug_assert_eq!(c.queue, [id]);
        c.queue.clear();
        c.exec_start = now - std::mem::take(&mut c.behind);
        self.queued.remove(cpu);
        self.begin_switch(cpu, Some(id));
    }

    /// Whether no task has `cpu` at all.
    #[inline(always)]
    pub(super) fn nobody_runs(&self, cpu: CpuId) -> bool {
        self.cpus[cpu as usize].run_queues.iter().all(|queue| queue.current.is_none())
    }

    /// `id` of the group, which has been picked, has `cpu`, which nobody had.
    #[inline(never)]
    pub(super) fn come_to_run(&mut self, cpu: CpuId, id: TaskId) {
        self.alone(cpu, id).come_to_run();
    }

    /// What `cpu` should run where there is no choice: nothing, or the only task of the group, awake. Else nothing is known.
    #[inline(always)]
    pub(super) fn only_choice(&self, cpu: CpuId) -> Option<Option<TaskId>> {
        let c = &self.cpus[cpu as usize];
        let [root, group] = &c.run_queues;
        if root.members == 0 {
            return Some(None);
        }
        let alone = root.members == 1 && group.members == 1 && c.delayed == 0 && !c.group.delayed;
        match group.waiting.first()?.member {
            Member::Task(id) if alone => Some(Some(id)),
            _ => None,
        }
    }
}
