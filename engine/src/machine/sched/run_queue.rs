//! A CPU's run queues (`cfs_rq`): the root's, with the kernel's threads and the load's group, and the group's, with the tasks of
//! the load on this CPU. Without groups all tasks are in the root's.

use super::entity::{Entity, Member};
use super::group::Contribution;
use super::load::{unit_at, Average, Wanted};
use super::waiters::{Waiters, Waiting};
use crate::machine::cpus::cpu::Cpu;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};
use std::num::NonZeroU64;

/// One of a CPU's run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Level {
    /// The root's.
    Root,
    /// The group's.
    Group,
}

/// The group's place among equals; sleepers come after it.
const GROUP: u64 = 1 << 62;

/// A run queue.
#[derive(Clone, Debug, Default)]
pub struct RunQueue {
    /// The member that runs, or whose task does.
    pub current: Option<Member>,
    /// How many members, those included that sleep and have not left.
    pub members: u32,
    /// Of the root's: how many tasks run or wait in it or in the group's (`h_nr_runnable`).
    pub runnable: u32,
    /// The sum of their weights.
    pub weight: i64,
    /// The virtual time of an empty queue: EEVDF's last, CFS's least so far (`min_vruntime`).
    pub base: i64,
    /// Its averages.
    pub load: Average,
    /// Who waits, by place.
    pub waiting: Waiters,
    /// How many tasks have begun to wait in it so far.
    arrivals: u64,
}

impl RunQueue {
    /// The weighted average of those who wait and the `current` one, and the sum of their weights.
    pub(super) fn average(&self, current: Option<&Entity>) -> (i64, i64) {
        let (base, (sum, mut weight)) = (self.base, self.waiting.sums());
        let mut sum = sum - i128::from(base) * i128::from(weight);
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

/// A member in a run queue, with what a change of its state there needs: looked up once.
pub(in crate::machine) struct EntityInQueue<'a> {
    pub entity: &'a mut Entity,
    pub queue: &'a mut RunQueue,
    /// Who it is.
    member: Member,
    /// In the group's run queue: what this adds to the sum over all CPUs, and that sum.
    pub(in crate::machine) sum: Option<(&'a mut Contribution, &'a mut u64)>,
    /// Who waits is ordered by virtual run time (CFS).
    by_vruntime: bool,
    now: Time,
}

impl<'a> EntityInQueue<'a> {
    /// One that waits by the rules of EEVDF, if it is to begin to.
    #[inline(always)]
    pub(super) fn of_eevdf(
        entity: &'a mut Entity,
        queue: &'a mut RunQueue,
        member: Member,
        sum: Option<(&'a mut Contribution, &'a mut u64)>,
        now: Time,
    ) -> Self {
        Self { entity, queue, member, sum, by_vruntime: false, now }
    }

    /// Whether it runs, or its task does.
    #[inline(always)]
    pub fn is_current(&self) -> bool {
        self.queue.current == Some(self.member)
    }

    /// Brings the averages of the member and of its run queue up to date (`update_load_avg`).
    #[inline(always)]
    pub fn update_load(&mut self) {
        self.update_load_of(self.entity.wanted(self.is_current()));
    }

    /// The same of a member that was as `wanted` until now.
    #[inline(always)]
    pub fn update_load_of(&mut self, wanted: Wanted) {
        self.update_loads(wanted, self.queue.wanted());
    }

    /// The same of a run queue that was as `of_queue` until now.
    #[inline(always)]
    pub fn update_loads(&mut self, of_member: Wanted, of_queue: Wanted) {
        let unit = unit_at(self.now);
        self.entity.update_load(unit, of_member);
        self.queue.update_load(unit, of_queue);
        if let Some((contribution, sum)) = &mut self.sum {
            contribution.follow(self.queue.load.load, self.now, sum);
        }
    }

    /// The queued member waits from now on.
    #[inline(always)]
    pub fn start_waiting(&mut self) {
        let order = match self.member {
            Member::Group => GROUP,
            Member::Task(_) => {
                self.queue.arrivals += 1;
                self.queue.arrivals + if self.entity.delayed { GROUP } else { 0 }
            }
        };
        let order = NonZeroU64::MIN.saturating_add(order); // no place needs no room
        let place = (if self.by_vruntime { self.entity.vruntime } else { self.entity.deadline }, order);
        self.entity.place = Some(place);
        let (member, vruntime, share) = (self.member, self.entity.vruntime, self.entity.share());
        self.queue.waiting.add(Waiting { place, member, vruntime, share });
    }

    /// The member waits no longer, if it did, which is told.
    #[inline(always)]
    pub fn stop_waiting(&mut self) -> bool {
        let Some(place) = self.entity.place.take() else { return false };
        let removed = self.queue.waiting.remove(place);
        debug_assert!(
            removed.is_some_and(|r| r.member == self.member),
            "{:?} is not at its place {place:?}",
            self.member
        );
        true
    }

    /// It is in the queue from now on, and waits.
    #[inline(always)]
    pub fn join(&mut self) {
        self.entity.queued = true;
        self.queue.members += 1;
        self.queue.weight += self.entity.weight;
        self.start_waiting();
    }

    /// It has been picked and runs from now on, or its task does (`set_next_entity`).
    #[inline(always)]
    pub fn come_to_run(&mut self) {
        self.update_load_of(Wanted::WAITS);
        self.stop_waiting();
        self.entity.protected = true;
        self.entity.ran = 0;
        self.queue.current = Some(self.member);
    }

    /// It is no longer in the queue, whether it ran or waited.
    #[inline(always)]
    pub fn leave(&mut self) {
        if self.is_current() {
            self.leave_running();
        } else {
            self.stop_waiting();
            self.be_gone();
        }
    }

    /// The same of one that ran.
    #[inline(always)]
    pub fn leave_running(&mut self) {
        self.queue.current = None;
        self.be_gone();
    }

    #[inline(always)]
    fn be_gone(&mut self) {
        self.entity.queued = false;
        self.entity.protected = false;
        self.queue.members -= 1;
        self.queue.weight -= self.entity.weight;
    }
}

impl State {
    pub(in crate::machine) fn entity(&self, cpu: CpuId, member: Member) -> &Entity {
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

    /// A member and the run queue that it is, or is to be, in.
    #[inline(always)]
    pub(super) fn entity_in_queue(&mut self, cpu: CpuId, level: Level, member: Member) -> EntityInQueue<'_> {
        let Cpu { run_queues, group, contribution, .. } = &mut self.cpus[cpu as usize];
        let entity = match member {
            Member::Task(id) => &mut self.tasks[id as usize].entity,
            Member::Group => group,
        };
        let [root, of_group] = run_queues;
        let (queue, sum) = match level {
            Level::Root => (root, None),
            Level::Group => (of_group, Some((contribution, &mut self.group_load))),
        };
        EntityInQueue { entity, queue, member, sum, by_vruntime: self.kernel.cfs.is_some(), now: self.now }
    }

    pub(in crate::machine) fn run_queue(&self, cpu: CpuId, level: Level) -> &RunQueue {
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
        self.entity_in_queue(cpu, level, member).start_waiting();
    }

    /// `member` waits no longer, if it did, which is told.
    pub(super) fn stop_waiting(&mut self, cpu: CpuId, level: Level, member: Member) -> bool {
        self.entity_in_queue(cpu, level, member).stop_waiting()
    }

    /// The weighted average of the virtual run times in a run queue, and the sum of the weights (`avg_vruntime`).
    #[inline]
    pub(super) fn average_vruntime(&self, cpu: CpuId, level: Level) -> (i64, i64) {
        let queue = self.run_queue(cpu, level);
        if queue.members == 0 {
            return (queue.base, 0);
        }
        match queue.current.map(|member| self.entity(cpu, member)) {
            Some(alone) if queue.members == 1 => (alone.vruntime, alone.share()),
            current => queue.average(current),
        }
    }
}
