//! From which CPU an idle one takes a task (`sched_balance_find_src_group` and `sched_balance_find_src_rq`, before 6.9
//! `find_busiest_group` and `find_busiest_queue`; as since 5.5).

use super::placement::IMBALANCE;
use super::sched_group::{Group, Kind};
use crate::machine::cpus::topology::Domain;
use crate::machine::state::State;
use crate::waist::CpuId;
use std::cmp::Reverse;
use std::ops::Range;

impl Group {
    /// `update_sd_pick_busiest`.
    fn is_busier_than(&self, other: &Self) -> bool {
        self.kind > other.kind
            || self.kind == other.kind
                && match self.kind {
                    Kind::Overloaded => self.load > other.load,
                    Kind::FullyBusy => false,
                    Kind::HasSpare => (Reverse(self.idle), self.tasks) > (Reverse(other.idle), other.tasks),
                }
    }

    /// Whether `local` takes a task of this group, the busiest. CPUs have so much load on `average`; `spreads` where the parts of the
    /// domain are cores of several CPUs (`SD_PREFER_SIBLING`).
    fn gives_to(&self, local: &Self, average: u64, spreads: bool) -> bool {
        if local.kind > self.kind {
            return false;
        }
        let by_tasks = self.tasks > local.tasks + 1;
        if spreads && local.kind == Kind::HasSpare && by_tasks {
            return true;
        }
        if self.kind != Kind::Overloaded && (self.cpus > 1 && local.idle <= self.idle + 1 || self.tasks == 1) {
            return false;
        }
        match local.kind {
            Kind::HasSpare if self.cpus == 1 || spreads => by_tasks,
            Kind::HasSpare => local.idle > self.idle + 1,
            Kind::FullyBusy => local.load < self.load && local.load < average,
            Kind::Overloaded => local.load < average && 100 * self.load > IMBALANCE * local.load,
        }
    }
}

impl State {
    /// Whether anybody waits behind anybody: else there is nobody to take.
    pub(super) fn is_overloaded(&self) -> bool {
        self.queued.any(|cpu| self.in_queues(cpu) > 1)
    }

    /// The CPU in `domain` from which `cpu`, which idles, takes a task, if it may.
    pub(super) fn busiest_in(&self, cpu: CpuId, domain: Domain) -> Option<CpuId> {
        let mut parts = self.parts_of(cpu, domain);
        let own = parts.next()?;
        let mut others = self.topology.group(cpu, domain.span).filter(|other| !own.contains(other));
        if !others.any(|other| self.in_queues(other) > 1) {
            return None; // whoever is busiest
        }
        let local = self.group_of(&own);
        let mut busiest: Option<(Range<CpuId>, Group)> = None;
        let (mut load, mut number) = (local.load, 1);
        for part in parts {
            let group = self.group_of(&part);
            load += group.load;
            number += 1;
            let can_give = group.tasks > 0 && !part.clone().all(|cpu| self.has_bound_only(cpu));
            if can_give && busiest.as_ref().is_none_or(|(_, best)| group.is_busier_than(best)) {
                busiest = Some((part, group));
            }
        }
        let (part, group) = busiest?;
        if !group.gives_to(&local, load / number, domain.parts > 1) || self.leaves_on_node(domain, &local, &group) {
            return None;
        }
        part.max_by_key(|&cpu| (self.in_queues(cpu), Reverse(cpu))).filter(|&cpu| self.in_queues(cpu) > 1)
    }

    /// Whether `local` takes nothing from `busiest`, another NUMA node, because it is little busier.
    fn leaves_on_node(&self, domain: Domain, local: &Group, busiest: &Group) -> bool {
        let few = local.kind == Kind::HasSpare && busiest.kind != Kind::Overloaded;
        few && self.topology.is_numa(domain)
            && self.tolerates(busiest, local.tasks, busiest.tasks.saturating_sub(local.tasks) / 2)
    }

    /// The CPU under the last-level cache of `cpu` with most waiting tasks: before 5.5 loads were compared, which comes to that.
    pub(super) fn most_waiting(&self, cpu: CpuId) -> Option<CpuId> {
        let near = self.topology.llc(cpu);
        let gives = |&other: &CpuId| {
            other != cpu
                && near.contains(&other)
                && self.cpus[other as usize].executing_task().is_some()
                && !self.has_bound_only(other)
        };
        self.queued.iter().filter(gives).max_by_key(|&other| (self.cpus[other as usize].queue.len(), Reverse(other)))
    }

    pub(super) fn in_queues(&self, cpu: CpuId) -> usize {
        let c = &self.cpus[cpu as usize];
        c.load() + c.delayed as usize
    }

    /// Whether several tasks are there and all are bound (`LBF_ALL_PINNED`: then the search goes on without that CPU).
    fn has_bound_only(&self, cpu: CpuId) -> bool {
        let c = &self.cpus[cpu as usize];
        let bound = |id| self.tasks[id as usize].pinned.is_some();
        c.load() > 1 && c.queue.iter().copied().chain(c.executing_task()).all(bound)
    }
}
