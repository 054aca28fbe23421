//! CFS (`kernel/sched/fair.c` before Linux 6.6) in one run queue: the member with the least virtual run time runs, for its share
//! of a period; sleepers get up to half a period of credit.
//!
//! The `base` of a run queue is its `min_vruntime`. Left out: the buddies of tasks.

use super::entity::{mul_div, Entity, Member};
use super::policy::Entering;
use super::run_queue::Level;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::CpuId;

/// The times of CFS.
#[derive(Clone, Copy, Debug)]
pub struct Cfs {
    /// The period that all runnable tasks share (`sched_latency`).
    pub latency: Time,
    /// The least share of it (`sched_min_granularity`): with more tasks the period grows.
    pub min_granularity: Time,
    /// How far behind the current task a woken one must be to preempt it (`sched_wakeup_granularity`).
    pub wakeup_granularity: Time,
}

impl Cfs {
    /// The period of so many members (`__sched_period`).
    fn period(&self, members: u32) -> i64 {
        self.latency.max(Time::from(members) * self.min_granularity) as i64
    }
}

impl State {
    /// `update_min_vruntime`: never goes back.
    pub(super) fn cfs_update(&mut self, cpu: CpuId, level: Level) {
        let queue = self.run_queue(cpu, level);
        let current = queue.current.map(|member| self.entity(cpu, member).vruntime);
        if let Some(least) = current.into_iter().chain(queue.waiting.first().map(|first| first.vruntime)).min() {
            let queue = self.run_queue_mut(cpu, level);
            queue.base = queue.base.max(least);
        }
    }

    /// A member's share of the period of its queue, and so on upwards (`sched_slice`); one that is about to enter counts already.
    fn cfs_slice(&self, cfs: Cfs, cpu: CpuId, level: Level, member: Member) -> i64 {
        let entering = |entity_queued: bool| u32::from(!entity_queued);
        let queued = self.entity(cpu, member).queued;
        let mut slice = cfs.period(self.run_queue(cpu, level).members + entering(queued));
        let upper = (level == Level::Group).then_some((Level::Root, Member::Group));
        for (level, member) in [Some((level, member)), upper].into_iter().flatten() {
            let entity = self.entity(cpu, member);
            let others = self.run_queue(cpu, level).weight;
            slice = mul_div(slice, entity.weight, if entity.queued { others } else { others + entity.weight });
        }
        slice
    }

    /// `place_entity`; a task that comes from another CPU keeps its distance to the least virtual run time there.
    pub(super) fn cfs_enter(&mut self, cfs: Cfs, cpu: CpuId, level: Level, member: Member, entering: Entering) {
        let base = self.run_queue(cpu, level).base;
        let old = match member {
            Member::Task(id) => self.run_queue(self.tasks[id as usize].cpu, level).base,
            Member::Group => base,
        };
        let slice = self.cfs_slice(cfs, cpu, level, member);
        let entity = self.entity_mut(cpu, member);
        let moved = entity.vruntime - old + base;
        entity.vruntime = match entering {
            Entering::New => base + entity.virtual_time(slice),
            Entering::Woken => moved.max(base - cfs.latency as i64 / 2),
            Entering::Moved => moved,
        };
    }

    /// The member with the least virtual run time, the first come of equals, the current one only if it has less
    /// (`pick_next_entity`). The group, if it is the next buddy, goes before who is not far behind it.
    pub(super) fn cfs_pick(&self, cfs: Cfs, cpu: CpuId, level: Level) -> Option<Member> {
        let queue = self.run_queue(cpu, level);
        let first = queue.waiting.first().map(|first| (first.member, self.entity(cpu, first.member)));
        let current = queue.current.map(|member| (member, self.entity(cpu, member)));
        let left = match (current, first) {
            (Some(current), Some(first)) if current.1.vruntime < first.1.vruntime => Some(current),
            (current, first) => first.or(current),
        };
        if level == Level::Root && self.cpus[cpu as usize].group_is_next {
            let group = &self.cpus[cpu as usize].group;
            if left.is_some_and(|(_, left)| !cfs_behind(cfs, group.vruntime, left)) {
                return Some(Member::Group);
            }
        }
        left.map(|(member, _)| member)
    }

    /// `check_preempt_wakeup`.
    pub(super) fn cfs_preempts(&self, cfs: Cfs, cpu: CpuId, current: Member, woken: Member) -> bool {
        cfs_behind(cfs, self.entity(cpu, current).vruntime, self.entity(cpu, woken))
    }

    /// `check_preempt_tick`: whether `current` has had its share, or is that far ahead of who waits.
    pub(super) fn cfs_slice_ends(&mut self, cfs: Cfs, cpu: CpuId, level: Level, current: Member) -> bool {
        let slice = self.cfs_slice(cfs, cpu, level, current);
        let entity = self.entity(cpu, current);
        if entity.ran > slice {
            self.cpus[cpu as usize].group_is_next &= current != Member::Group;
            return true;
        }
        let first = self.run_queue(cpu, level).waiting.first();
        entity.ran >= cfs.min_granularity as i64 && first.is_some_and(|first| entity.vruntime - first.vruntime > slice)
    }
}

/// Whether `entity` is so far behind `vruntime` that it should run instead (`wakeup_preempt_entity`).
fn cfs_behind(cfs: Cfs, vruntime: i64, entity: &Entity) -> bool {
    vruntime - entity.vruntime > entity.virtual_time(cfs.wakeup_granularity as i64)
}
