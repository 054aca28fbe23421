//! Group scheduling (`CONFIG_FAIR_GROUP_SCHED`): the load's tasks are one group, a session's (autogroup) or a cgroup, of which each
//! CPU with such tasks has an entity among its kernel threads. All entities together weigh what one task does; each has the share
//! of the load that is on its CPU.

use super::entity::{mul_div, Entity, Member, NICE_0};
use super::load::{unit_at, Average, Change, Wanted};
use super::run_queue::{EntityInQueue, Level, RunQueue};
use crate::machine::state::State;
use crate::waist::time::{Time, US};
use crate::waist::{CpuId, TaskId};

/// The least weight of an entity (`MIN_SHARES`), at the resolution of weights.
const LEAST: i64 = 2;
/// The sum over the CPUs follows a CPU's average at most this often (`update_tg_load_avg`).
const NOTED_EVERY: Time = 1000 * US;

/// What a CPU's part of the group adds to the sum over the CPUs (`tg_load_avg_contrib`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Contribution {
    noted: u64,
    at: Option<Time>,
}

impl Contribution {
    /// `update_tg_load_avg`: differences below a 64th of what is part of the `sum` are not worth it.
    #[inline]
    pub(in crate::machine) fn follow(&mut self, load: u64, now: Time, sum: &mut u64) {
        let lately = |at| now - at < NOTED_EVERY;
        if load.abs_diff(self.noted) > self.noted / 64 && !self.at.is_some_and(lately) {
            *sum = *sum + load - self.noted;
            *self = Self { noted: load, at: Some(now) };
        }
    }
}

impl EntityInQueue<'_> {
    /// The weight that the group's entity should have on the CPU of this member of it.
    #[inline(always)]
    pub(super) fn weight_of_group(&self) -> i64 {
        let Some((contribution, sum)) = &self.sum else { unreachable!("it is in the group's run queue") };
        self.queue.weight_of_group(contribution, **sum)
    }

    /// The member weighs so much from now on; if it is in the queue, its virtual times are right for that already.
    pub(super) fn reweigh(&mut self, weight: i64) {
        let Self { entity, queue, .. } = self;
        let (old, before) = (entity.weight, entity.share() as u64);
        entity.weight = weight;
        let after = entity.share() as u64;
        queue.load.reweigh(&mut entity.load, before, after);
        if entity.queued {
            queue.weight += weight - old;
        } else {
            entity.lag = mul_div(entity.lag, old, weight);
        }
        if self.stop_waiting() {
            self.start_waiting();
        }
    }
}

impl RunQueue {
    /// The weight of the group's entity on the CPU of this run queue of the group, whose load on all CPUs is `sum` (`calc_group_shares`).
    #[inline(always)]
    fn weight_of_group(&self, contribution: &Contribution, sum: u64) -> i64 {
        let load = (self.weight >> 10).max(self.load.load as i64);
        let all = (sum - contribution.noted) as i64 + load;
        (NICE_0 * load / all.max(1)).clamp(LEAST, NICE_0)
    }

    /// What it is since its averages were brought up to date.
    #[inline(always)]
    pub(in crate::machine) fn wanted(&self) -> Wanted {
        Wanted { load: (self.weight >> 10) as u64, tasks: u64::from(self.runnable), running: self.current.is_some() }
    }

    /// Brings its averages up to date with the `unit` of time that has begun (`update_cfs_rq_load_avg`), until when it was as `wanted`.
    #[inline(always)]
    pub(super) fn update_load(&mut self, unit: u64, wanted: Wanted) {
        if self.load.update(unit, wanted) {
            self.load.average(1);
        }
    }
}

impl Entity {
    /// What it is since its averages were brought up to date, if it runs or does not.
    #[inline(always)]
    pub(in crate::machine) fn wanted(&self, running: bool) -> Wanted {
        let (queued, awake) = (self.queued, self.queued && !self.delayed);
        Wanted { load: u64::from(queued), tasks: u64::from(awake), running }
    }

    /// Brings its averages up to date with that `unit`, until when it was as `wanted`.
    #[inline(always)]
    pub(super) fn update_load(&mut self, unit: u64, wanted: Wanted) {
        if self.load.update(unit, wanted) {
            self.load.average(self.share() as u64);
        }
    }
}

impl State {
    /// Brings the averages of a member and of its run queue up to date (`update_load_avg`).
    #[inline(always)]
    pub(super) fn update_load(&mut self, cpu: CpuId, level: Level, member: Member) {
        self.entity_in_queue(cpu, level, member).update_load();
    }

    /// Brings the averages of a run queue alone up to date.
    #[inline(always)]
    pub(super) fn update_queue_load(&mut self, cpu: CpuId, level: Level) {
        let unit = unit_at(self.now);
        let queue = self.run_queue_mut(cpu, level);
        queue.update_load(unit, queue.wanted());
        if level == Level::Group {
            self.note_group_load(cpu);
        }
    }

    #[inline]
    fn note_group_load(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu as usize];
        c.contribution.follow(c.run_queues[Level::Group as usize].load.load, self.now, &mut self.group_load);
    }

    /// Gives the group's entity the weight that it should have now (`update_cfs_group`). That of an empty group stays.
    pub(super) fn update_group_weight(&mut self, cpu: CpuId) {
        if self.run_queue(cpu, Level::Group).weight == 0 {
            return;
        }
        let c = &self.cpus[cpu as usize];
        let weight = c.run_queues[Level::Group as usize].weight_of_group(&c.contribution, self.group_load);
        if weight != self.cpus[cpu as usize].group.weight {
            self.reweigh(cpu, Level::Root, Member::Group, weight);
        }
    }

    /// Gives a member another weight, and its queue what follows from that (`reweight_entity`).
    pub(super) fn reweigh(&mut self, cpu: CpuId, level: Level, member: Member, weight: i64) {
        let queued = self.entity(cpu, member).queued;
        if queued {
            self.update_current(cpu);
            if self.kernel.cfs.is_none() {
                self.eevdf_reweigh(cpu, level, member, weight);
            }
        }
        self.entity_in_queue(cpu, level, member).reweigh(weight);
    }

    /// `id` comes to `cpu`, from another one or for the first time: its averages count there (`attach_entity_load_avg`).
    pub(super) fn attach_load(&mut self, id: TaskId, cpu: CpuId) {
        let level = self.tasks[id as usize].level;
        self.update_queue_load(cpu, level);
        let queue = self.run_queue(cpu, level).load;
        let entity = &mut self.tasks[id as usize].entity;
        let weight = entity.share() as u64;
        entity.load.align(&queue, weight);
        let load = entity.load;
        self.run_queue_mut(cpu, level).load.attach(&load, weight);
        if level == Level::Group {
            self.note_group_load(cpu);
            self.propagate_load(cpu, Change::Came(load.sum()));
            self.run_queue_mut(cpu, Level::Root).load.attach_use(&load);
        }
    }

    /// What happens to the load of the group on `cpu` happens to that of the CPU at once (`propagate_entity_cfs_rq`).
    fn propagate_load(&mut self, cpu: CpuId, change: Change) {
        self.update_load(cpu, Level::Root, Member::Group);
        let EntityInQueue { entity, queue, .. } = self.entity_in_queue(cpu, Level::Root, Member::Group);
        let weight = entity.share() as u64;
        queue.load.propagate(&mut entity.load, weight, change);
    }

    /// `id` leaves `cpu` for good (`detach_entity_load_avg`, `remove_entity_load_avg`).
    pub(super) fn detach_load(&mut self, id: TaskId, cpu: CpuId) {
        let level = self.tasks[id as usize].level;
        self.update_load(cpu, level, Member::Task(id));
        let entity = &self.tasks[id as usize].entity;
        let (load, weight) = (entity.load, entity.share() as u64);
        self.run_queue_mut(cpu, level).load.detach(&load, weight);
        if level == Level::Group {
            self.note_group_load(cpu);
            let queue = self.run_queue(cpu, Level::Group);
            let rest = queue.load.of_members((queue.weight >> 10) as u64);
            self.propagate_load(cpu, Change::Went(rest));
            self.run_queue_mut(cpu, Level::Root).load.detach_use(&load);
        }
    }

    /// The averages of a new task: it is as heavy as it may be, and runs as much as those that are there, but leaves half of the
    /// CPU. That is read as it was when somebody last came, went, or saw a tick (`post_init_entity_util_avg` has no `update_load_avg`).
    pub(super) fn load_of_new(&mut self, id: TaskId, cpu: CpuId) {
        let level = self.tasks[id as usize].level;
        let queue = self.run_queue(cpu, level).load;
        let entity = &mut self.tasks[id as usize].entity;
        let weight = entity.share() as u64;
        let half = 1024u64.saturating_sub(queue.utilization) / 2;
        entity.load = Average::of_new(weight);
        entity.load.utilization = match queue.utilization {
            0 => half,
            utilization => (utilization * weight / (queue.load + 1)).min(half),
        };
        entity.load.runnable = entity.load.utilization;
    }
}
