//! A CPU's run queues (`cfs_rq`): the root's, with the kernel's threads and the load's group, and the group's, with the tasks of
//! the load on this CPU. Without groups all tasks are in the root's.

use super::entity::{Entity, Member};
use super::load::Average;
use super::state::State;
use super::task::TaskId;
use super::topology::CpuId;
use std::collections::VecDeque;

/// One of a CPU's run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Level {
    /// The root's.
    Root,
    /// The group's.
    Group,
}

/// Where a waiting member stands: first by deadline (EEVDF) or virtual run time (CFS), of equals tasks in the order of arrival,
/// then the group, then sleepers that have not left.
pub type Place = (i64, u64);

/// The group's place among equals; sleepers come after it.
const GROUP: u64 = 1 << 62;

/// A member that waits in a run queue, as it stands as long as it does.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its place.
    pub place: Place,
    /// Who it is.
    pub member: Member,
    /// Its virtual run time.
    pub vruntime: i64,
    share: i64,
}

/// A run queue.
#[derive(Clone, Debug, Default)]
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
    /// Who waits, by place.
    pub waiting: VecDeque<Waiting>,
    /// The sum of their virtual run times times their shares (`avg_vruntime`).
    sum: i128,
    /// The sum of their shares (`avg_load`).
    shares: i64,
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

    /// The queued `member` waits from now on.
    pub(super) fn start_waiting(&mut self, cpu: CpuId, level: Level, member: Member) {
        let order = self.order_of(cpu, member);
        let fair_clock = self.kernel.cfs.is_some();
        let entity = self.entity_mut(cpu, member);
        let place = (if fair_clock { entity.vruntime } else { entity.deadline }, order);
        let (vruntime, share) = (entity.vruntime, entity.share());
        entity.place = Some(place);
        let queue = self.run_queue_mut(cpu, level);
        queue.sum += i128::from(vruntime) * i128::from(share);
        queue.shares += share;
        let waiting = Waiting { place, member, vruntime, share };
        if queue.waiting.back().is_none_or(|last| last.place < place) {
            queue.waiting.push_back(waiting);
        } else {
            let at = queue.waiting.partition_point(|other| other.place < place);
            queue.waiting.insert(at, waiting);
        }
    }

    /// The place among equals of somebody who begins to wait.
    fn order_of(&mut self, cpu: CpuId, member: Member) -> u64 {
        let Member::Task(id) = member else { return GROUP };
        let c = &mut self.cpus[cpu as usize];
        c.arrivals += 1;
        if self.tasks[id as usize].entity.delayed {
            GROUP + c.arrivals
        } else {
            c.arrivals
        }
    }

    /// `member` waits no longer, if it did, which is told.
    pub(super) fn stop_waiting(&mut self, cpu: CpuId, level: Level, member: Member) -> bool {
        let Some(place) = self.entity_mut(cpu, member).place.take() else { return false };
        let queue = self.run_queue_mut(cpu, level);
        let first = queue.waiting.front().is_some_and(|first| first.place == place);
        let at = if first { 0 } else { queue.waiting.partition_point(|other| other.place < place) };
        debug_assert!(queue.waiting[at].member == member, "{member:?} is not at its place {place:?}");
        if let Some(Waiting { vruntime, share, .. }) = queue.waiting.remove(at) {
            queue.sum -= i128::from(vruntime) * i128::from(share);
            queue.shares -= share;
        }
        true
    }

    /// The weighted average of the virtual run times in a run queue, and the sum of the weights (`avg_vruntime`).
    pub(super) fn average_vruntime(&self, cpu: CpuId, level: Level) -> (i64, i64) {
        let &RunQueue { current, members, base, sum, shares, .. } = self.run_queue(cpu, level);
        let current = current.map(|member| self.entity(cpu, member));
        match (members, current) {
            (0, _) => return (base, 0),
            (1, Some(alone)) => return (alone.vruntime, alone.share()),
            _ => {}
        }
        let mut weight = shares;
        let mut sum = sum - i128::from(base) * i128::from(shares);
        if let Some(entity) = current {
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
