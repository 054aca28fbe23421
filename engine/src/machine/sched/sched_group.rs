//! How busy CPUs are together (`sg_lb_stats`): those look at it who seek the idlest of them for a task, and the busiest to take one
//! from.

use super::placement::IMBALANCE;
use super::run_queue::Level;
use crate::kernel::sched::Busiest;
use crate::machine::cpus::topology::Domain;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};
use std::cmp::Ordering;
use std::ops::Range;

/// What CPUs have to do (`group_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::machine) enum Kind {
    HasSpare,
    FullyBusy,
    Overloaded,
}

/// What is known of some CPUs.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Group {
    pub kind: Kind,
    pub cpus: u64,
    /// How many tasks are in their run queues, those included that sleep and have not left (`sum_nr_running`).
    pub tasks: u64,
    pub idle: u64,
    pub utilization: u64,
    /// Average of a CPU.
    pub load: u64,
}

impl State {
    /// The parts of a domain of `cpu`, its own first and then around.
    pub(super) fn parts_of(
        &self,
        cpu: CpuId,
        Domain { span, parts }: Domain,
    ) -> impl Iterator<Item = Range<CpuId>> + '_ {
        let all = self.topology.group(cpu, span);
        let (number, own) = ((all.len() as u32).div_ceil(parts), (cpu - all.start) / parts);
        (0..number).map(move |at| self.topology.group(all.start + (own + at) % number * parts, parts))
    }

    /// `update_sg_lb_stats`.
    pub(super) fn group_of(&self, part: &Range<CpuId>) -> Group {
        self.group_seen(part, None, self.now)
    }

    /// Who idled when that was looked at, at `moment`, counts as idle; where a task is to go on, as if it, `without`, were not there
    /// (`update_sg_wakeup_stats`).
    #[inline(always)]
    pub(super) fn group_seen(&self, part: &Range<CpuId>, without: Option<TaskId>, moment: Time) -> Group {
        let (cpus, before) = (part.len() as u64, moment < self.now);
        let (mut tasks, mut idle, mut utilization, mut runnable, mut load) = (0, 0, 0, 0, 0);
        for cpu in part.clone() {
            let own = without.filter(|&id| self.tasks[id as usize].cpu == cpu);
            let c = &self.cpus[cpu as usize];
            let now = c.load() as u64 + u64::from(c.delayed) - u64::from(own.is_some());
            let idled = before && self.idled_at(cpu, moment);
            let here = match (idled, self.is_idle(cpu)) {
                (true, false) => 0,
                (false, true) if before => now.max(1), // who ran there was still to be seen
                _ => now,
            };
            tasks += here;
            idle += u64::from(if before { idled } else { self.is_idle(cpu) } || own.is_some() && here == 0);
            let (mut used, mut wanted, mut share) = (0, 0, 0);
            if let Some(id) = own {
                let average = &self.tasks[id as usize].entity.load;
                (used, wanted, share) = (average.utilization, average.runnable, self.share_of_load(id));
            }
            let queue = &self.run_queue(cpu, Level::Root).load;
            utilization += queue.utilization.saturating_sub(used);
            runnable += queue.runnable.saturating_sub(wanted);
            load += queue.load.saturating_sub(share);
        }
        let kind = self.kind(cpus, tasks, utilization, runnable);
        Group { kind, cpus, tasks, idle, utilization, load: load / cpus }
    }

    /// `group_classify`: tasks beyond the CPUs count only where these are used, or wanted, more than they can bear.
    fn kind(&self, cpus: u64, tasks: u64, utilization: u64, runnable: u64) -> Kind {
        let counts_runnable = self.kernel.rules.busiest == Busiest::Runnable;
        let full =
            utilization * IMBALANCE >= cpus * 1024 * 100 || counts_runnable && runnable * 100 > cpus * 1024 * IMBALANCE;
        match tasks.cmp(&cpus) {
            Ordering::Greater if full => Kind::Overloaded,
            Ordering::Equal if full => Kind::FullyBusy,
            _ => Kind::HasSpare,
        }
    }
}
