//! Kernel stacks of processes that have ended (`kernel/fork.c` of 6.12). Each CPU keeps two for new processes; others are freed by a
//! worker of the CPU, after a grace period.

use super::rcu::callbacks::Batch;
use super::state::State;
use crate::kernel::process::StackFree;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};

/// Stacks that a CPU keeps (`NR_CACHED_STACKS`).
const KEPT: u64 = 2;

/// Those of a CPU.
#[derive(Clone, Copy, Debug)]
struct OfCpu {
    kept: u64,
    /// To be freed by the worker.
    waiting: u64,
    worker: TaskId,
}

/// Those of all CPUs.
#[derive(Debug)]
pub struct Stacks {
    cpus: Vec<OfCpu>,
    callback: Time,
}

impl State {
    /// From now on CPUs keep stacks. What they cannot is for these workers; a callback takes so long.
    pub(super) fn keep_stacks(&mut self, workers: &[TaskId], callback: Time) {
        let of = |&worker| OfCpu { kept: 0, waiting: 0, worker };
        self.stacks = Some(Stacks { cpus: workers.iter().map(of).collect(), callback });
    }

    /// A process that runs on `cpu` starts another (`alloc_thread_stack_node`).
    pub(super) fn take_stack(&mut self, cpu: CpuId) {
        if let Some(stacks) = &mut self.stacks {
            let kept = &mut stacks.cpus[cpu as usize].kept;
            *kept = kept.saturating_sub(1);
        }
    }

    /// A process has ended on `cpu`, which has switched to another (`free_thread_stack`).
    pub(super) fn leave_stack(&mut self, cpu: CpuId) {
        let Some(time) = self.stacks.as_ref().map(|stacks| stacks.callback) else { return };
        if self.keeps_stack(cpu) {
            return;
        }
        if self.kernel.rules.stack_free == StackFree::Callback {
            self.queue_callbacks(cpu, Batch { count: 1, time, stacks: 1 });
        } else {
            self.free_stacks(cpu, 1);
        }
    }

    fn keeps_stack(&mut self, cpu: CpuId) -> bool {
        let Some(stacks) = &mut self.stacks else { return true };
        let kept = &mut stacks.cpus[cpu as usize].kept;
        let room = *kept < KEPT;
        *kept += u64::from(room);
        room
    }

    /// So many callbacks of stacks are invoked on `cpu` (`thread_stack_free_rcu`).
    pub(super) fn callbacks_of_stacks(&mut self, cpu: CpuId, count: u64) {
        let left = (0..count).filter(|_| !self.keeps_stack(cpu)).count() as u64;
        self.free_stacks(cpu, left);
    }

    /// `vfree_atomic`: the worker is woken for the first of those that wait for it.
    fn free_stacks(&mut self, cpu: CpuId, count: u64) {
        let Some(stacks) = self.stacks.as_mut().filter(|_| count > 0) else { return };
        let of = &mut stacks.cpus[cpu as usize];
        let (first, worker) = (of.waiting == 0, of.worker);
        of.waiting += count;
        if first {
            self.kick(worker, None);
        }
    }

    /// How many the worker of `cpu` is to free: all that wait.
    pub(super) fn stacks_to_free(&mut self, cpu: CpuId) -> u64 {
        self.stacks.as_mut().map_or(0, |stacks| std::mem::take(&mut stacks.cpus[cpu as usize].waiting))
    }
}
