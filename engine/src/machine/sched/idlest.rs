//! Where a new task starts, and one that begins another program goes on (`sched_balance_find_dst_cpu`, before 6.9 `find_idlest_cpu`): from the largest domain down, in its parent's
//! part unless another is idler.

use super::placement::IMBALANCE;
use super::sched_group::{Group, Kind};
use crate::machine::cpus::cpu::Phase;
use crate::machine::cpus::topology::Domain;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{CpuId, TaskId};
use std::cmp::Reverse;
use std::ops::Range;

impl Group {
    /// Whether a new task should rather go to `self` (`update_pick_idlest`).
    fn is_idler_than(&self, other: &Self) -> bool {
        let by_kind = self.kind.cmp(&other.kind);
        let by_use = match self.kind {
            Kind::HasSpare => (Reverse(self.idle), self.utilization).cmp(&(Reverse(other.idle), other.utilization)),
            _ => self.load.cmp(&other.load),
        };
        by_kind.then(by_use).is_lt()
    }

    /// Whether it is so much idler than the group of the parent that the task goes there.
    fn beats(&self, local: &Self) -> bool {
        if self.kind != local.kind {
            return self.kind < local.kind;
        }
        match self.kind {
            Kind::HasSpare => self.idle > local.idle,
            _ => self.load < local.load + Self::allowance() && 100 * local.load > IMBALANCE * self.load,
        }
    }

    /// How much more load a group may have than another.
    pub(super) fn allowance() -> u64 {
        1024 * (IMBALANCE - 100) / 100
    }
}

impl State {
    /// The CPU of a task of the load, or of a kernel thread that is there from the beginning. All start at one moment, when no
    /// average tells the CPUs apart; so they are spread as periodic balancing, which is not modelled, would have left them: over the
    /// sockets as far as that would have moved them, and over all CPUs where the choice is one that has something to do.
    pub(super) fn choose_cpu_at_start(&self, parent: CpuId) -> CpuId {
        let goes = self.setting_up; // who set up
        let load = |cpu: CpuId| {
            let cpu = &self.cpus[cpu as usize];
            cpu.queue.len() + usize::from(cpu.executing_task().is_some_and(|running| Some(running) != goes))
        };
        let cpu = self.find_idlest_cpu(parent, None, true);
        if load(cpu) == 0 {
            return cpu;
        }
        (0..self.topology.cpus).min_by_key(|&cpu| load(cpu)).unwrap_or(cpu)
    }

    /// The CPU of a new task whose parent runs on `parent`.
    pub(super) fn choose_cpu_for_new(&self, parent: CpuId) -> CpuId {
        self.idlest_cpu(parent, None)
    }

    /// The CPU for a task that is on `own`, or is about to be: as if `without`, which is this task, were not there.
    pub(super) fn idlest_cpu(&self, own: CpuId, without: Option<TaskId>) -> CpuId {
        self.find_idlest_cpu(own, without, false)
    }

    fn find_idlest_cpu(&self, own: CpuId, without: Option<TaskId>, at_start: bool) -> CpuId {
        let mut cpu = own;
        for &domain in self.topology.domains() {
            let mut parts = self.parts_of(cpu, domain);
            let Some(near) = parts.next() else { continue };
            let moment = if at_start { self.now } else { self.looked_at(domain, without.is_none()) };
            let mut idlest: Option<(Range<CpuId>, Group)> = None;
            for part in parts {
                let group = self.group_seen(&part, without, moment);
                if idlest.as_ref().is_none_or(|(_, best)| group.is_idler_than(best)) {
                    idlest = Some((part, group));
                }
            }
            let Some((part, best)) = idlest else { continue };
            let local = self.group_seen(&near, without, self.now);
            if best.beats(&local) && !self.keeps_new(domain, &local, &best, at_start) {
                cpu = self.idlest_of(part, moment);
            }
        }
        cpu
    }

    /// When the CPUs of a domain were looked at, on average, for a task that is queued now, if it is `new`, or later by the stopper:
    /// who comes to a CPU meanwhile has not been seen, and the task may queue behind it.
    fn looked_at(&self, domain: Domain, new: bool) -> Time {
        let search = Time::from(domain.span) * self.kernel.seek_cpu;
        self.now.saturating_sub(search / 2 + if new { self.kernel.queue_new } else { 0 })
    }

    /// Whether a new task stays on its parent's NUMA node though `idlest` is idler, and, at the start, whether balancing would have
    /// left it there when who sets up has gone.
    fn keeps_new(&self, domain: Domain, local: &Group, idlest: &Group, at_start: bool) -> bool {
        let others = local.tasks.saturating_sub(if at_start { self.about_to_sleep() } else { 0 });
        local.kind == idlest.kind
            && self.stays_on_node(domain, &Group { tasks: others, ..*local }, idlest)
            && (!at_start || self.is_left_on_node(local, others, idlest))
    }

    /// How many tasks want a CPU only while a run is set up: the one that does so, and the kernel threads that it keeps from going to sleep.
    fn about_to_sleep(&self) -> u64 {
        let Some(id) = self.setting_up else { return 0 };
        let queue = &self.cpus[self.tasks[id as usize].cpu as usize].queue;
        1 + queue.iter().filter(|&&id| self.tasks[id as usize].background).count() as u64
    }

    /// Of some CPUs the idle one that wakes fastest, of equals the one that became idle last; else the least loaded
    /// (`sched_balance_find_dst_group_cpu`).
    fn idlest_of(&self, part: Range<CpuId>, moment: Time) -> CpuId {
        let since = |cpu: CpuId| match self.cpus[cpu as usize].phase {
            Phase::Idle(since) => since,
            _ => self.now,
        };
        let exit = |cpu: CpuId| -> Time { self.declared_exit(cpu) };
        let idle = part
            .clone()
            .filter(|&cpu| self.idled_at(cpu, moment))
            .min_by_key(|&cpu| (exit(cpu), Reverse(since(cpu)), cpu));
        idle.or_else(|| part.clone().min_by_key(|&cpu| (self.load_of(cpu), cpu))).unwrap_or(part.start)
    }
}
