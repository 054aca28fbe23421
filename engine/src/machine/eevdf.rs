//! EEVDF (`kernel/sched/fair.c`, Linux 6.6 and later) on the tasks of one CPU, all at equal weight: virtual run time, lag,
//! deadlines, run to parity, and the tick that ends a slice.

use super::cpu::Phase;
use super::queue::Happening;
use super::state::State;
use super::task::{Resume, TaskId};
use super::topology::CpuId;
use super::trace::Object;

impl State {
    /// Brings the current task's virtual run time up to date; a used-up slice starts a new request.
    pub(super) fn update_current(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu as usize];
        let Some(id) = c.current else { return };
        let ran = (self.now - c.exec_start) as i64;
        c.exec_start = self.now;
        let entity = &mut self.tasks[id as usize].entity;
        entity.vruntime += ran;
        if entity.vruntime >= entity.deadline {
            entity.deadline = entity.vruntime + self.kernel.base_slice as i64;
            entity.protected = false;
        }
        c.base_vruntime = entity.vruntime;
    }

    /// The queue's average virtual run time (`avg_vruntime`), and over how many tasks.
    pub(super) fn average_vruntime(&self, cpu: CpuId) -> (i64, i64) {
        let c = &self.cpus[cpu as usize];
        let members = c.queue.iter().chain(c.current.as_ref());
        let base = c.base_vruntime;
        let (sum, count) = members.fold((0i64, 0i64), |(sum, count), &id| {
            (sum + (self.tasks[id as usize].entity.vruntime - base), count + 1)
        });
        (base + if count == 0 { 0 } else { sum.div_euclid(count) }, count)
    }

    /// Where a task enters a queue (`place_entity`): its lag is kept, scaled so that entering does not shrink it.
    pub(super) fn place(&mut self, id: TaskId, cpu: CpuId) {
        let (average, count) = self.average_vruntime(cpu);
        let entity = &mut self.tasks[id as usize].entity;
        let lag = if count == 0 { 0 } else { entity.lag * (count + 1) / count };
        entity.vruntime = average - lag;
        entity.deadline = entity.vruntime + self.kernel.base_slice as i64;
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
    /// the current one stays while its slice is protected.
    pub(super) fn pick(&self, cpu: CpuId) -> Option<TaskId> {
        let c = &self.cpus[cpu as usize];
        if c.queue.is_empty() {
            return c.current;
        }
        if let Some(current) = c.current {
            if self.kernel.run_to_parity && self.tasks[current as usize].entity.protected {
                return Some(current);
            }
        }
        if c.queue.len() == 1 && c.current.is_none() {
            return Some(c.queue[0]);
        }
        let (average, _) = self.average_vruntime(cpu);
        let entity = |id: &&TaskId| self.tasks[**id as usize].entity;
        let everybody = || c.current.iter().chain(c.queue.iter());
        everybody()
            .filter(|id| entity(id).vruntime <= average)
            .min_by_key(|id| entity(id).deadline)
            .or_else(|| everybody().min_by_key(|id| entity(id).vruntime))
            .copied()
    }

    pub(super) fn add_to_queue(&mut self, cpu: CpuId, id: TaskId) {
        self.cpus[cpu as usize].queue.push(id);
        self.queued.insert(cpu);
    }

    pub(super) fn remove_from_queue(&mut self, cpu: CpuId, id: TaskId) {
        let queue = &mut self.cpus[cpu as usize].queue;
        if let Some(at) = queue.iter().position(|&other| other == id) {
            queue.remove(at);
            if queue.is_empty() {
                self.queued.remove(cpu);
            }
        }
    }

    /// The scheduler wants `cpu` for another task: preempts its current one at once if it may.
    pub(super) fn set_need_resched(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].need_resched = true;
        let Some(id) = self.cpus[cpu as usize].current else { return };
        let task = &self.tasks[id as usize];
        if task.resume == Resume::Segment && self.preemptible(id) {
            self.book_segment(id);
            self.preempt(cpu);
        } else if task.spins_until_resched {
            self.spin_check(id, self.now);
        }
    }

    pub(super) fn arm_tick(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu as usize];
        if !c.tick_armed {
            c.tick_armed = true;
            let next = (self.now / self.kernel.tick + 1) * self.kernel.tick;
            self.push(next, Happening::Tick, cpu, 0);
        }
    }

    /// The scheduler tick: ends a used-up slice, and lets an idle CPU pull a waiting task.
    pub(super) fn tick(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].tick_armed = false;
        self.note_cpu("tick", cpu, Object::Nothing);
        if self.cpus[cpu as usize].queue.is_empty() {
            return;
        }
        self.kick_idle_cpu(cpu);
        if self.cpus[cpu as usize].phase == Phase::Running {
            self.update_current(cpu);
            if self.pick(cpu) != self.cpus[cpu as usize].current {
                self.set_need_resched(cpu);
            }
        }
        if !self.cpus[cpu as usize].queue.is_empty() {
            self.arm_tick(cpu);
        }
    }
}
