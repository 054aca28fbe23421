//! Address spaces: whose page tables a CPU uses. A kernel thread has none of its own and borrows those that are loaded, as an idle CPU
//! does (`context_switch`, `enter_lazy_tlb`), so that the way back to the same process loads nothing.

use crate::machine::state::State;
use crate::spec::{WorkloadKind, WorkloadSpec};
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};

/// An address space (`struct mm_struct`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mm(u16);

impl Mm {
    /// That of the kernel (`init_mm`), of which kernel threads say that they have none.
    pub const KERNEL: Self = Self(0);
    /// That of the load, if its tasks are threads of one process.
    pub const LOAD: Self = Self(1);

    /// The next one of a process; they have few numbers, and those of processes that have long ended are used again.
    pub fn next(&mut self) -> Self {
        self.0 = self.0.checked_add(1).unwrap_or(Self::LOAD.0 + 1);
        *self
    }
}

/// Whether the tasks of a load are threads of one process.
pub fn are_threads(load: &WorkloadSpec) -> bool {
    match load.kind {
        WorkloadKind::LockCycle | WorkloadKind::RangeLock => true,
        WorkloadKind::Mix => load.number("threads") > 0.0,
        _ => false,
    }
}

impl State {
    /// `cpu` switches to `next` or to idle, and has loaded the page tables that are wanted there. Returns how long that takes.
    #[inline(always)]
    pub(in crate::machine) fn switch_mm(&mut self, cpu: CpuId, next: Option<TaskId>) -> Time {
        let time = self.time_to_switch(cpu, next);
        self.cpus[cpu as usize].active_mm = self.active_after(cpu, next);
        time
    }

    /// What a switch of `cpu` to `next` or to idle would take now.
    #[inline(always)]
    pub(super) fn time_to_switch(&self, cpu: CpuId, next: Option<TaskId>) -> Time {
        let loads = self.active_after(cpu, next) != self.cpus[cpu as usize].active_mm;
        self.costs.context_switch + if loads { self.costs.switch_mm } else { 0 }
    }

    #[inline(always)]
    fn active_after(&self, cpu: CpuId, next: Option<TaskId>) -> Mm {
        match next.map_or(Mm::KERNEL, |id| self.tasks[id as usize].mm) {
            Mm::KERNEL if self.kernel.rules.lazy_tlb => self.cpus[cpu as usize].active_mm,
            own => own,
        }
    }
}
