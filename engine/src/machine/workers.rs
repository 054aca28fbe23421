//! Workers that are bound to a CPU share its pool (`kernel/workqueue.c`): as long as one of them is at work, no other is woken for
//! more of it. When the last one falls asleep, it first has the next one woken.

use super::state::State;
use crate::waist::{CpuId, TaskId};
use std::collections::VecDeque;

/// The pool of a CPU.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Workers that are awake, except those that have slept at their work and not run since (`nr_running`).
    at_work: u32,
    /// There is work for these, which rest until somebody else sleeps (`worklist`).
    held_back: VecDeque<TaskId>,
}

impl State {
    /// Whether `id`, which is about to be woken, has to rest on: there is work for it, and another worker is at work
    /// (`need_more_worker` in `kick_pool`). If not, it is at work from now on.
    #[inline(always)]
    pub(in crate::machine) fn rests_on(&mut self, id: TaskId) -> bool {
        self.tasks[id as usize].resting && self.finds_pool_at_work(id)
    }

    #[cold]
    fn finds_pool_at_work(&mut self, id: TaskId) -> bool {
        let Some(cpu) = self.tasks[id as usize].pinned else { return false };
        let pool = &mut self.pools[cpu as usize];
        if pool.at_work == 0 {
            self.begins_work(id, cpu);
            return false;
        }
        if !pool.held_back.contains(&id) {
            pool.held_back.push_back(id);
        }
        true
    }

    fn begins_work(&mut self, id: TaskId, cpu: CpuId) {
        self.pools[cpu as usize].at_work += 1;
        let task = &mut self.tasks[id as usize];
        (task.resting, task.at_work, task.is_worker) = (false, true, true);
    }

    /// A worker that slept at its work runs again (`wq_worker_running`).
    #[inline(always)]
    pub(in crate::machine) fn worker_runs(&mut self, id: TaskId) {
        let task = &self.tasks[id as usize];
        if let Some(cpu) = task.pinned.filter(|_| task.is_worker && !task.at_work) {
            self.begins_work(id, cpu);
        }
    }

    /// A worker is about to sleep: if it was the last at work, the next one is woken (`wq_worker_sleeping`), which its CPU pays for.
    #[inline(always)]
    pub(in crate::machine) fn worker_sleeps(&mut self, id: TaskId) {
        if std::mem::take(&mut self.tasks[id as usize].at_work) {
            self.leaves_work(self.tasks[id as usize].cpu);
        }
    }

    #[cold]
    fn leaves_work(&mut self, cpu: CpuId) {
        let pool = &mut self.pools[cpu as usize];
        pool.at_work -= 1;
        let next = if pool.at_work == 0 { pool.held_back.pop_front() } else { None };
        if let Some(next) = next {
            self.begins_work(next, cpu);
            self.cpus[cpu as usize].before_switch += self.costs.wakeup;
            self.wake(next, None);
        }
    }
}
