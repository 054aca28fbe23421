//! Idle CPUs take waiting tasks from beyond their last-level cache: from other caches of their socket, then from other sockets. As
//! since 5.5; before, they do not here.

use crate::kernel::sched::Busiest;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::CpuId;

impl State {
    /// Whether there are domains beyond a last-level cache, into which CPUs look.
    pub(super) fn looks_afar(&self) -> bool {
        self.kernel.rules.busiest != Busiest::Waiting && self.topology.cpus > self.topology.llc(0).len() as u32
    }

    /// The domains beyond the last-level cache of `cpu`, the smallest first.
    fn far_domains(&self, cpu: CpuId) -> impl Iterator<Item = usize> {
        let near = self.topology.llc(cpu).len() as u32;
        let far = self.topology.domains().iter().filter(|domain| domain.span > near).count();
        (0..if self.looks_afar() { far } else { 0 }).rev()
    }

    /// The idle `cpu` looks afar, once in as many ms as the domain has CPUs. Only the first idle one of each part does so for it
    /// (`should_we_balance`). Whether it has taken a task.
    pub(super) fn balances_afar(&mut self, cpu: CpuId) -> bool {
        for at in self.far_domains(cpu) {
            if self.now < self.cpus[cpu as usize].next_afar[at] {
                continue;
            }
            let domain = self.topology.domains()[at];
            let first = self.topology.group(cpu, domain.parts).find(|&other| self.is_idle(other));
            let moved = first == Some(cpu) && self.take_in(cpu, at, false).is_some();
            self.cpus[cpu as usize].next_afar[at] = self.next_balance(Time::from(domain.span), moved);
            if moved {
                return true;
            }
        }
        false
    }
}
