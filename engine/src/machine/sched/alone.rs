//! A task of the group that is alone on its CPU sleeps, is woken and comes to run: the rules of `policy` and `eevdf`, for both run queues
//! at once, where nobody is there to be compared with. Nearly all sleepers of a load that has CPUs enough are alone.

use super::eevdf::eevdf_update;
use super::entity::Member;
use super::load::Wanted;
use super::run_queue::{EntityInQueue, Level};
use crate::machine::state::State;
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

    /// `id`, which runs alone, leaves the run queues of `cpu` (`dequeue_task_fair`).
    pub(super) fn leave_alone(&mut self, cpu: CpuId, id: TaskId) {
        let (now, slice) = (self.now, self.kernel.base_slice as i64);
        let c = &mut self.cpus[cpu as usize];
        let ran = (now - std::mem::replace(&mut c.exec_start, now)) as i64;
        c.group_is_next = false;
        let [mut own, mut group] = self.entities_in_queues(cpu, id);
        own.leave_alone(ran, slice);
        group.leave_alone(ran, slice);
        group.queue.runnable -= 1;
    }

    /// `id` comes into the empty run queues of `cpu` (`enqueue_task_fair`).
    pub(super) fn enter_alone(&mut self, cpu: CpuId, id: TaskId) {
        let slice = self.kernel.base_slice as i64;
        let [mut own, mut group] = self.entities_in_queues(cpu, id);
        own.update_loads(Wanted::NOTHING, Wanted::NOTHING);
        own.enter_alone(slice);
        group.update_loads(Wanted::NOTHING, Wanted::NOTHING);
        let weight = own.weight_of_group();
        if weight != group.entity.weight {
            self.reweigh(cpu, Level::Root, Member::Group, weight);
            group = self.entity_in_queue(cpu, Level::Root, Member::Group);
        }
        group.enter_alone(slice);
        group.queue.runnable += 1;
        self.tasks[id as usize].cpu = cpu;
        self.add_to_queue(cpu, id);
    }

    /// Whether no task has `cpu` at all.
    #[inline(always)]
    pub(super) fn nobody_runs(&self, cpu: CpuId) -> bool {
        self.cpus[cpu as usize].run_queues.iter().all(|queue| queue.current.is_none())
    }

    /// `id` of the group, which has been picked, has `cpu`, which nobody had.
    #[inline(never)]
    pub(super) fn come_to_run(&mut self, cpu: CpuId, id: TaskId) {
        let [mut own, mut group] = self.entities_in_queues(cpu, id);
        own.come_to_run();
        group.come_to_run();
        self.cpus[cpu as usize].group_is_next = false;
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
