//! A CPU's run queues (`cfs_rq`): the root's, with the kernel's threads and the load's group, and the group's, with the tasks of
//! the load on this CPU. Without groups all tasks are in the root's.

use super::entity::{Entity, Member};
use super::load::Average;
use super::state::State;
use super::task::TaskId;
use super::topology::CpuId;

/// One of a CPU's run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Level {
    /// The root's.
    Root,
    /// The group's.
    Group,
}

/// A run queue but for its waiting tasks: those are in the CPU's queue, in the order of arrival.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunQueue {
    /// The member that runs, or whose task does.
    pub current: Option<Member>,
    /// How many members, those included that sleep and have not left.
    pub members: u32,
    /// The sum of their weights.
    pub weight: i64,
    /// The virtual time of an empty queue: EEVDF's last, CFS's least so far (`min_vruntime`).
    pub base: i64,
    /// Its averages.
    pub load: Average,
}

impl State {
    pub(super) fn entity(&self, cpu: CpuId, member: Member) -> &Entity {
        match member {
            Member::Task(id) => &self.tasks[id as usize].entity,
            Member::Group => &self.cpus[cpu as usize].group,
        }
    }

    pub(super) fn entity_mut(&mut self, cpu: CpuId, member: Member) -> &mut Entity {
        match member {
            Member::Task(id) => &mut self.tasks[id as usize].entity,
            Member::Group => &mut self.cpus[cpu as usize].group,
        }
    }

    pub(super) fn run_queue(&self, cpu: CpuId, level: Level) -> &RunQueue {
        &self.cpus[cpu as usize].run_queues[level as usize]
    }

    pub(super) fn run_queue_mut(&mut self, cpu: CpuId, level: Level) -> &mut RunQueue {
        &mut self.cpus[cpu as usize].run_queues[level as usize]
    }

    /// The member of a run queue that is the task `id` or its group.
    pub(super) fn member_at(&self, level: Level, id: TaskId) -> Member {
        if level == self.tasks[id as usize].level {
            Member::Task(id)
        } else {
            Member::Group
        }
    }

    /// The run queues that `id` competes in, its own first.
    pub(super) fn levels_of(&self, id: TaskId) -> &'static [Level] {
        match self.tasks[id as usize].level {
            Level::Root => &[Level::Root],
            Level::Group => &[Level::Group, Level::Root],
        }
    }

    /// Who waits in a run queue: tasks in the order of arrival, the group, sleepers that have not left.
    pub(super) fn waiting(&self, cpu: CpuId, level: Level) -> impl Iterator<Item = (Member, &Entity)> {
        let c = &self.cpus[cpu as usize];
        let here = move |&id: &TaskId| {
            let task = &self.tasks[id as usize];
            (task.level == level && task.entity.queued).then_some((Member::Task(id), &task.entity))
        };
        let current = c.run_queues[Level::Root as usize].current;
        let group = level == Level::Root && c.group.queued && current != Some(Member::Group);
        c.queue.iter().filter_map(here).chain(group.then_some((Member::Group, &c.group))).chain(c.delayed.iter().filter_map(here))
    }

    /// All members of a run queue, the current one first.
    pub(super) fn members(&self, cpu: CpuId, level: Level) -> impl Iterator<Item = (Member, &Entity)> {
        let current = self.run_queue(cpu, level).current;
        current.map(|member| (member, self.entity(cpu, member))).into_iter().chain(self.waiting(cpu, level))
    }

    /// The weighted average of the virtual run times in a run queue, and the sum of the weights (`avg_vruntime`).
    pub(super) fn average_vruntime(&self, cpu: CpuId, level: Level) -> (i64, i64) {
        let RunQueue { current, members, base, .. } = *self.run_queue(cpu, level);
        match (members, current) {
            (0, _) => return (base, 0),
            (1, Some(member)) => {
                let alone = self.entity(cpu, member);
                return (alone.vruntime, alone.share());
            }
            _ => {}
        }
        let (mut sum, mut weight) = (0i128, 0i64);
        for (_, entity) in self.members(cpu, level) {
            sum += i128::from(entity.vruntime - base) * i128::from(entity.share());
            weight += entity.share();
        }
        let average = match i64::try_from(sum) {
            Ok(sum) => sum.div_euclid(weight),
            Err(_) => sum.div_euclid(i128::from(weight)) as i64,
        };
        (base + average, weight)
    }
}
