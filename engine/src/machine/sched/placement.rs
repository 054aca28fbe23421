//! Where a woken task goes (`select_task_rq_fair`): its own CPU or its waker's, or an idle one under the same last-level cache.

use super::run_queue::Level;
use crate::kernel::sched::WakeScan;
use crate::machine::state::State;
use crate::machine::task::TaskKind;
use crate::waist::time::{Time, US};
use crate::waist::{CpuId, TaskId};

/// How much busier in percent a CPU may be than another of its domain (`imbalance_pct` of domains that share a cache).
pub const IMBALANCE: u64 = 117;
/// After this long a task's switches between those whom it wakes count half (`record_wakee`: `HZ` ticks).
const FLIPS_FOR: Time = 1_000_000 * US;
/// A scan ends before this many CPUs at the earliest (`SIS_PROP`).
const LEAST_SCANNED: u64 = 4;

impl State {
    /// The CPU of the woken task `id`. Without a waker an interrupt wakes it where it ran.
    #[inline(always)]
    pub(super) fn choose_cpu(&mut self, id: TaskId, waker: Option<TaskId>) -> CpuId {
        let task = &self.tasks[id as usize];
        if let Some(cpu) = task.pinned {
            return cpu;
        }
        let previous = task.cpu;
        let target = waker.map_or(previous, |waker| self.wake_affine(id, waker, previous));
        let chosen = self.select_idle_sibling(id, waker, previous, target);
        if self.kernel.rules.waker_recent_cpu {
            self.note_cpu_of(waker, id);
        }
        chosen
    }

    /// Who wakes a task that may come to it counts its own CPU as the one that it used last.
    #[inline(never)]
    fn note_cpu_of(&mut self, waker: Option<TaskId>, wakee: TaskId) {
        if let Some(waker) = waker.filter(|&waker| !self.wake_wide(waker, wakee)) {
            let waker = &mut self.tasks[waker as usize];
            waker.recent_used_cpu = waker.cpu;
        }
    }

    /// The waker's CPU or the previous one (`wake_affine`): the previous one if it idles, else that with less load.
    #[inline(always)]
    fn wake_affine(&mut self, id: TaskId, waker: TaskId, previous: CpuId) -> CpuId {
        let this = self.tasks[waker as usize].cpu;
        self.record_wakee(waker, id);
        if this == previous || self.is_idle(previous) || self.wake_wide(waker, id) {
            previous
        } else {
            self.wake_affine_weight(id, this, previous)
        }
    }

    /// The one with less load (`wake_affine_weight`).
    #[inline(never)]
    fn wake_affine_weight(&self, id: TaskId, this: CpuId, previous: CpuId) -> CpuId {
        let load = self.share_of_load(id);
        let here = 100 * (self.load_of(this) + load);
        let there = (100 + (IMBALANCE - 100) / 2) as i64 * (self.load_of(previous) as i64 - load as i64);
        if (here as i64) < there {
            this
        } else {
            previous
        }
    }

    #[inline(always)]
    fn record_wakee(&mut self, waker: TaskId, wakee: TaskId) {
        let now = self.now;
        let waker = &mut self.tasks[waker as usize];
        if now > waker.flips_since + FLIPS_FOR {
            waker.wakee_flips >>= 1;
            waker.flips_since = now;
        }
        if waker.last_wakee != Some(wakee) {
            waker.last_wakee = Some(wakee);
            waker.wakee_flips += 1;
        }
    }

    /// Whether one of the two wakes so many others that they would not fit under one cache (`wake_wide`).
    fn wake_wide(&self, waker: TaskId, wakee: TaskId) -> bool {
        let near = self.topology.llc(self.tasks[waker as usize].cpu).len() as u32;
        let (a, b) = (self.tasks[waker as usize].wakee_flips, self.tasks[wakee as usize].wakee_flips);
        a.min(b) >= near && a.max(b) >= a.min(b) * near
    }

    /// `cpu_load`.
    pub(super) fn load_of(&self, cpu: CpuId) -> u64 {
        self.run_queue(cpu, Level::Root).load.load
    }

    /// What `id` is of the load of its CPU (`task_h_load`).
    pub(super) fn share_of_load(&self, id: TaskId) -> u64 {
        let task = &self.tasks[id as usize];
        let own = task.entity.load.load;
        if task.level == Level::Root {
            return own;
        }
        let (all, group) = (self.load_of(task.cpu), self.cpus[task.cpu as usize].group.load.load);
        own * (all * group / (all + 1)) / (self.run_queue(task.cpu, Level::Group).load.load + 1)
    }

    #[inline(always)]
    fn select_idle_sibling(&mut self, id: TaskId, waker: Option<TaskId>, previous: CpuId, target: CpuId) -> CpuId {
        if self.is_idle(target) {
            target
        } else {
            self.select_other(id, waker, previous, target)
        }
    }

    /// The same where `target` does not idle.
    #[inline(never)]
    fn select_other(&mut self, id: TaskId, waker: Option<TaskId>, previous: CpuId, target: CpuId) -> CpuId {
        if self.is_idle(previous) && self.topology.share_llc(previous, target) {
            return previous;
        }
        if self.kernel.rules.kthread_stacking && waker.is_some_and(|waker| self.stacks(waker, previous)) {
            return previous;
        }
        let recent = self.tasks[id as usize].recent_used_cpu;
        let candidate = recent != previous && recent != target && self.topology.share_llc(recent, target);
        let found = self.kernel.rules.recent_cpu && candidate && self.is_idle(recent);
        if found || !self.kernel.rules.waker_recent_cpu {
            self.tasks[id as usize].recent_used_cpu = previous;
        }
        if found {
            return recent;
        }
        self.scan(waker, previous, target).unwrap_or(target)
    }

    /// Whether a kernel thread of the wakee's own CPU wakes it, which has nothing else to do: it is likely done with what the
    /// wakee gave it (`is_per_cpu_kthread`).
    fn stacks(&self, waker: TaskId, previous: CpuId) -> bool {
        let (waker, c) = (&self.tasks[waker as usize], &self.cpus[previous as usize]);
        waker.kind == TaskKind::Bound && waker.cpu == previous && c.queue.is_empty() && c.delayed == 0
    }

    /// An idle CPU under the last-level cache of `target` (`select_idle_cpu`): on a core that idles altogether if one is said to do so,
    /// else the sibling of `previous`, else any of those that the scan looks at.
    fn scan(&mut self, waker: Option<TaskId>, previous: CpuId, target: CpuId) -> Option<CpuId> {
        let near = self.topology.llc(target);
        let idle_cores = self.cpus[near.start as usize].idle_cores;
        if !idle_cores && self.topology.share_llc(previous, target) {
            let sibling = self.topology.core(previous).find(|&cpu| cpu != previous && self.is_idle(cpu));
            if sibling.is_some() {
                return sibling;
            }
        }
        let this = waker.map_or(previous, |waker| self.tasks[waker as usize].cpu);
        let most = self.most_scanned(this, target)?;
        let start = target + u32::from(self.kernel.rules.wake_scan == WakeScan::Utilization); // before, it began with the target
        let order = (start..near.end).chain(near.start..start);
        if idle_cores {
            return self.scan_cores(near.start, order);
        }
        let found = order.take(most).enumerate().find(|&(_, cpu)| self.is_idle(cpu));
        if found.is_some() || most >= near.len() {
            self.note_scan(this, found.map_or(near.len(), |(at, _)| at + 1));
        }
        found.map(|(_, cpu)| cpu)
    }

    /// A CPU of a core that idles altogether (`select_idle_core`); without one, any idle CPU, and `first`, under whose cache they are,
    /// notes that.
    fn scan_cores(&mut self, first: CpuId, mut order: impl Iterator<Item = CpuId> + Clone) -> Option<CpuId> {
        order.clone().find(|&cpu| self.is_core_idle(cpu)).or_else(|| {
            self.cpus[first as usize].idle_cores = false;
            order.find_map(|cpu| self.topology.core(cpu).find(|&other| self.is_idle(other)))
        })
    }

    /// `cpu` has become idle: if its siblings idle too, wake-ups look for idle cores (`update_idle_core`).
    #[inline]
    pub(in crate::machine) fn note_idle_core(&mut self, cpu: CpuId) {
        if self.topology.has_siblings() && self.is_core_idle(cpu) {
            let first = self.topology.llc(cpu).start;
            self.cpus[first as usize].idle_cores = true;
        }
    }

    /// How long it takes on average to look at idle CPUs (`avg_scan_cost`): a line of each.
    fn note_scan(&mut self, this: CpuId, looked: usize) {
        let time = (looked as Time * self.topology.transfer_within_llc()) as i64;
        let cost = &mut self.cpus[this as usize].scan_cost;
        *cost = (*cost as i64 + (time - *cost as i64) / 8) as Time;
    }

    /// How many CPUs a scan may look at; none if it is not worth beginning.
    fn most_scanned(&mut self, this: CpuId, target: CpuId) -> Option<usize> {
        let near = self.topology.llc(target).len() as u64;
        match self.kernel.rules.wake_scan {
            WakeScan::None => None,
            WakeScan::All => Some(near as usize),
            WakeScan::Proportional => {
                let c = &self.cpus[this as usize];
                let (idle, cost) = (near * (c.average_idle / 512), c.scan_cost + 1000);
                let most = if idle > LEAST_SCANNED * cost { idle / cost } else { LEAST_SCANNED };
                Some(most as usize - 1) // `!--nr` ends it
            }
            WakeScan::Utilization => Some(self.idle_scan(target) as usize).filter(|&most| most > 0),
        }
    }

    /// How many CPUs under the last-level cache of `cpu` a wake-up looks at (`SIS_UTIL`, `update_idle_cpu_scan`): the fewer the
    /// more they are used, none from 85 % on. Load balancing finds that anew once in as many ms as there are CPUs.
    fn idle_scan(&mut self, cpu: CpuId) -> u32 {
        let near = self.topology.llc(cpu);
        let first = near.start as usize;
        if self.now >= self.cpus[first].scan_until {
            let cpus = near.len() as u64;
            let used: u64 = near.clone().map(|cpu| self.run_queue(cpu, Level::Root).load.utilization).sum();
            let x = used / cpus;
            let busy = (x * x * IMBALANCE * IMBALANCE / (10_000 * 1024)).min(1024);
            self.cpus[first].scans = ((1024 - busy) * cpus / 1024) as u32;
            self.cpus[first].scan_until = self.now + self.kernel.tick.max(cpus * 1000 * US);
        }
        self.cpus[first].scans
    }

    /// Whether all CPUs of the core of `cpu` idle.
    pub(super) fn is_core_idle(&self, cpu: CpuId) -> bool {
        self.topology.core(cpu).all(|other| self.is_idle(other))
    }
}
