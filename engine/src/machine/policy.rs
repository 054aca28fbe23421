//! Which of a CPU's tasks runs: the scheduler's questions, answered by EEVDF or, for kernels before 6.6, by CFS.

use super::cfs::Cfs;
use super::cpu::Phase;
use super::queue::Happening;
use super::state::State;
use super::task::{Resume, TaskId};
use super::topology::CpuId;
use super::trace::Object;
use crate::spec::Preemption;

/// How a task comes into a run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entering {
    /// For the first time.
    New,
    /// From sleep.
    Woken,
    /// From another CPU's queue.
    Moved,
}

impl State {
    fn cfs(&self) -> Option<Cfs> {
        self.kernel.cfs
    }

    /// Brings the current task's virtual run time up to date.
    pub(super) fn update_current(&mut self, cpu: CpuId) {
        let now = self.now;
        let c = &mut self.cpus[cpu as usize];
        let Some(id) = c.current else { return };
        let ran = (now - c.exec_start) as i64;
        c.exec_start = now;
        self.tasks[id as usize].entity.vruntime += ran;
        match self.cfs() {
            None => self.eevdf_update(id, cpu),
            Some(_) => self.cfs_update(cpu),
        }
    }

    /// Places a task that is about to enter a queue.
    pub(super) fn place(&mut self, id: TaskId, cpu: CpuId, entering: Entering) {
        match self.cfs() {
            None => self.eevdf_enter(id, cpu, entering),
            Some(cfs) => self.cfs_enter(cfs, id, cpu, entering),
        }
    }

    /// Notes that `id` has just left `cpu`'s queue.
    pub(super) fn left_queue(&mut self, id: TaskId, cpu: CpuId) {
        match self.cfs() {
            None => self.store_lag(id, cpu),
            Some(_) => self.cfs_update(cpu),
        }
    }

    /// Notes that `id`, which has just left `cpu`, sleeps.
    pub(super) fn went_to_sleep(&mut self, id: TaskId, cpu: CpuId) {
        match self.cfs() {
            None => self.eevdf_sleep(id, cpu),
            Some(_) => self.cfs_update(cpu),
        }
    }

    /// The task that `cpu`, which has no current one, should run.
    pub(super) fn pick_next(&mut self, cpu: CpuId) -> Option<TaskId> {
        match self.cfs() {
            None => self.pick_awake(cpu),
            Some(_) => self.cfs_pick(cpu),
        }
    }

    /// Whether `woken`, which has just been queued, should run at once.
    pub(super) fn preempts(&self, woken: TaskId, cpu: CpuId) -> bool {
        match self.cfs() {
            None => self.pick(cpu) == Some(woken),
            Some(cfs) => self.cfs_preempts(cfs, woken, cpu),
        }
    }

    fn slice_ends(&mut self, cpu: CpuId) -> bool {
        match self.cfs() {
            None => self.eevdf_slice_ends(cpu),
            Some(cfs) => self.cfs_slice_ends(cfs, cpu),
        }
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
        } else if task.spinning && self.kernel.preemption == Preemption::Host {
            self.tasks[id as usize].spinning = false; // it looks again when it comes to run
            self.book_spin(id);
            self.preempt(cpu);
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
            if self.slice_ends(cpu) {
                self.set_need_resched(cpu);
            }
        }
        if !self.cpus[cpu as usize].queue.is_empty() {
            self.arm_tick(cpu);
        }
    }
}
