//! EEVDF (`kernel/sched/fair.c`, Linux 6.6 and later) on the tasks of one CPU, all at equal weight: virtual run time, lag,
//! deadlines, run to parity, delayed dequeue.
//!
//! From 6.12 on (`DELAY_DEQUEUE`) a task that goes to sleep ahead of the average stays in the queue's average, and competes until
//! it has fallen behind: then it is picked and leaves without lag. Who is woken before that goes on where it is.

use super::policy::Entering;
use super::state::State;
use super::task::TaskId;
use super::topology::CpuId;

impl State {
    /// A used-up slice starts a new request.
    pub(super) fn eevdf_update(&mut self, current: TaskId, cpu: CpuId) {
        let entity = &mut self.tasks[current as usize].entity;
        if entity.vruntime >= entity.deadline {
            entity.deadline = entity.vruntime + self.kernel.base_slice as i64;
            entity.protected = false;
        }
        self.cpus[cpu as usize].base_vruntime = entity.vruntime;
    }

    /// The queue's average virtual run time (`avg_vruntime`), and over how many tasks.
    pub(super) fn average_vruntime(&self, cpu: CpuId) -> (i64, i64) {
        let c = &self.cpus[cpu as usize];
        let members = c.queue.iter().chain(&c.delayed).chain(c.current.as_ref());
        let base = c.base_vruntime;
        let (sum, count) = members.fold((0i64, 0i64), |(sum, count), &id| {
            (sum + (self.tasks[id as usize].entity.vruntime - base), count + 1)
        });
        (base + if count == 0 { 0 } else { sum.div_euclid(count) }, count)
    }

    /// Where a task enters a queue (`place_entity`): its lag is kept, scaled so that entering does not shrink it.
    /// A new task has half a slice to begin with (`PLACE_DEADLINE_INITIAL`).
    pub(super) fn eevdf_enter(&mut self, id: TaskId, cpu: CpuId, entering: Entering) {
        let (average, count) = self.average_vruntime(cpu);
        let entity = &mut self.tasks[id as usize].entity;
        let lag = if count == 0 { 0 } else { entity.lag * (count + 1) / count };
        entity.vruntime = average - lag;
        let slice = self.kernel.base_slice as i64;
        entity.deadline = entity.vruntime + if entering == Entering::New { slice - slice / 2 } else { slice };
    }

    /// Remembers the service that `id`, which has just left `cpu`'s queue, is still owed (`update_entity_lag`).
    pub(super) fn store_lag(&mut self, id: TaskId, cpu: CpuId) {
        let (average, count) = self.average_vruntime(cpu);
        let limit = (2 * self.kernel.base_slice).max(self.kernel.tick) as i64;
        let entity = &mut self.tasks[id as usize].entity;
        let with_itself = (average * count + entity.vruntime).div_euclid(count + 1);
        entity.lag = (with_itself - entity.vruntime).clamp(-limit, limit);
        if count == 0 {
            self.cpus[cpu as usize].base_vruntime = entity.vruntime;
        }
    }

    /// The task that should run (`pick_eevdf`): of those not ahead of the average, the one with the earliest deadline;
    /// the current one, if it is not ahead, stays while its slice is protected.
    pub(super) fn pick(&self, cpu: CpuId) -> Option<TaskId> {
        let c = &self.cpus[cpu as usize];
        if c.delayed.is_empty() {
            if c.queue.is_empty() {
                return c.current;
            }
            if c.queue.len() == 1 && c.current.is_none() {
                return Some(c.queue[0]);
            }
        }
        let (average, _) = self.average_vruntime(cpu);
        if let Some(current) = c.current {
            let entity = self.tasks[current as usize].entity;
            if self.kernel.run_to_parity && entity.protected && entity.vruntime <= average {
                return Some(current);
            }
        }
        let entity = |id: &&TaskId| self.tasks[**id as usize].entity;
        let everybody = || c.current.iter().chain(&c.queue).chain(&c.delayed);
        everybody()
            .filter(|id| entity(id).vruntime <= average)
            .min_by_key(|id| entity(id).deadline)
            .or_else(|| everybody().min_by_key(|id| entity(id).vruntime))
            .copied()
    }

    /// The same, after those who only compete for the end of their delay have left.
    pub(super) fn pick_awake(&mut self, cpu: CpuId) -> Option<TaskId> {
        loop {
            let picked = self.pick(cpu);
            let delayed = picked.and_then(|id| self.cpus[cpu as usize].delayed.iter().position(|&other| other == id));
            let (Some(id), Some(at)) = (picked, delayed) else { return picked };
            self.cpus[cpu as usize].delayed.remove(at);
            self.store_lag(id, cpu);
            let entity = &mut self.tasks[id as usize].entity;
            entity.delayed = false;
            entity.lag = entity.lag.min(0); // DELAY_ZERO
        }
    }

    /// `id`, which has just left `cpu`, sleeps from now on (`dequeue_entity`).
    pub(super) fn eevdf_sleep(&mut self, id: TaskId, cpu: CpuId) {
        self.store_lag(id, cpu);
        let entity = &mut self.tasks[id as usize].entity;
        if self.kernel.delay_dequeue && entity.lag < 0 {
            entity.delayed = true;
            self.cpus[cpu as usize].delayed.push(id);
        }
    }

    /// The delayed `id` is awake again: what it has gained while it was asleep is forfeit (`requeue_delayed_entity`).
    pub(super) fn eevdf_requeue(&mut self, id: TaskId, cpu: CpuId) {
        self.cpus[cpu as usize].delayed.retain(|&other| other != id);
        self.store_lag(id, cpu);
        let entity = &mut self.tasks[id as usize].entity;
        entity.delayed = false;
        if entity.lag > 0 {
            entity.lag = 0;
            self.eevdf_enter(id, cpu, Entering::Woken);
        }
    }

    /// Whether the tick finds the slice used up and another task to run: being ahead of the average does not end a slice.
    pub(super) fn eevdf_slice_ends(&mut self, cpu: CpuId) -> bool {
        let current = self.cpus[cpu as usize].current;
        let protected = current.is_some_and(|id| self.tasks[id as usize].entity.protected);
        !(self.kernel.run_to_parity && protected) && self.pick_awake(cpu) != current
    }
}
