//! Hyper-threads: the CPUs of a core share its execution units, and a program runs slower while its sibling executes as well.
//!
//! A CPU executes while a program runs on it or it switches between tasks. It does not while it idles, leaves idle, or waits in a
//! loop of `cpu_relax`, which is there to leave the units to the sibling. Only program time is stretched: a cache line takes as
//! long as ever to come.

use super::cpu::Phase;
use crate::machine::state::State;
use crate::machine::task::Resume;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};

impl State {
    /// `cpu` begins or ends to execute; what its siblings run goes on at another speed.
    #[inline]
    pub(in crate::machine) fn set_executing(&mut self, cpu: CpuId, executing: bool) {
        if self.topology.has_siblings() {
            self.share_core(cpu, executing);
        }
    }

    fn share_core(&mut self, cpu: CpuId, executing: bool) {
        if self.cpus[cpu as usize].executing == executing {
            return;
        }
        self.cpus[cpu as usize].executing = executing;
        for sibling in self.topology.core(cpu).filter(|&other| other != cpu) {
            let beside = &mut self.cpus[sibling as usize].beside;
            *beside = if executing { *beside + 1 } else { *beside - 1 };
            self.retime(sibling);
        }
    }

    /// The speed of what runs on `cpu` may have changed.
    fn retime(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu as usize];
        let Some(id) = c.current.filter(|_| c.phase == Phase::Running) else { return };
        if self.tasks[id as usize].resume == Resume::Segment && c.beside != self.tasks[id as usize].beside {
            self.book_segment(id);
            self.run_segment(id);
        }
    }

    /// Makes what is left of the program's time as long as it takes beside the siblings of now.
    #[inline]
    pub(in crate::machine) fn stretch(&mut self, id: TaskId) {
        let task = &mut self.tasks[id as usize];
        let beside = self.cpus[task.cpu as usize].beside;
        if task.beside == beside {
            return;
        }
        let factor = self.topology.stretch(task.beside, beside);
        task.segment.own = (task.segment.own as f64 * factor) as Time;
        task.beside = beside;
        if task.in_turns {
            self.turns[id as usize].stretch(factor);
        }
    }
}
