//! CFS (`kernel/sched/fair.c` before Linux 6.6) on the tasks of one CPU, all at equal weight: the task with the least virtual
//! run time runs, for its share of a period; sleepers get up to half a period of credit.
//!
//! `base_vruntime` of a CPU is its `min_vruntime`. Left out: the buddies, which skip the next in line on a yield.

use super::policy::Entering;
use super::state::State;
use super::task::TaskId;
use super::time::Time;
use super::topology::CpuId;

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
    /// The share of one of `tasks` (`sched_slice`).
    fn slice(&self, tasks: usize) -> i64 {
        let tasks = tasks as Time;
        (self.latency.max(tasks * self.min_granularity) / tasks) as i64
    }
}

impl State {
    /// `update_min_vruntime`: never goes back.
    pub(super) fn cfs_update(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu as usize];
        let everybody = c.current.iter().chain(c.queue.iter());
        if let Some(least) = everybody.map(|&id| self.tasks[id as usize].entity.vruntime).min() {
            let c = &mut self.cpus[cpu as usize];
            c.base_vruntime = c.base_vruntime.max(least);
        }
    }

    /// `place_entity`; who comes from another CPU keeps its distance to the least virtual run time there.
    pub(super) fn cfs_enter(&mut self, cfs: Cfs, id: TaskId, cpu: CpuId, entering: Entering) {
        let c = &self.cpus[cpu as usize];
        let (base, tasks) = (c.base_vruntime, c.queue.len() + usize::from(c.current.is_some()) + 1);
        let old = self.cpus[self.tasks[id as usize].cpu as usize].base_vruntime;
        let entity = &mut self.tasks[id as usize].entity;
        let moved = entity.vruntime - old + base;
        entity.vruntime = match entering {
            Entering::New => base + cfs.slice(tasks),
            Entering::Woken => moved.max(base - cfs.latency as i64 / 2),
            Entering::Moved => moved,
        };
    }

    /// The task with the least virtual run time; the first come of equals.
    pub(super) fn cfs_pick(&self, cpu: CpuId) -> Option<TaskId> {
        let queue = &self.cpus[cpu as usize].queue;
        queue.iter().min_by_key(|&&id| self.tasks[id as usize].entity.vruntime).copied()
    }

    /// `wakeup_preempt_entity`.
    pub(super) fn cfs_preempts(&self, cfs: Cfs, woken: TaskId, cpu: CpuId) -> bool {
        let Some(current) = self.cpus[cpu as usize].current else { return false };
        let vruntime = |id: TaskId| self.tasks[id as usize].entity.vruntime;
        vruntime(current) - vruntime(woken) > cfs.wakeup_granularity as i64
    }

    /// `check_preempt_tick`.
    pub(super) fn cfs_slice_ends(&self, cfs: Cfs, cpu: CpuId) -> bool {
        let c = &self.cpus[cpu as usize];
        let (Some(current), Some(first)) = (c.current, self.cfs_pick(cpu)) else { return false };
        let (entity, slice) = (&self.tasks[current as usize].entity, cfs.slice(c.queue.len() + 1));
        let ran = entity.vruntime - entity.picked;
        let ahead = entity.vruntime - self.tasks[first as usize].entity.vruntime;
        ran > slice || (ran >= cfs.min_granularity as i64 && ahead > slice)
    }
}
