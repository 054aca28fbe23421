//! Idle CPUs take waiting tasks at a tick of a busy CPU, once in as many ms as there are CPUs (`nohz_balancer_kick`). Those about to
//! idle: `newidle.rs`. From other caches and sockets: `afar.rs`.

use super::policy::{Entering, Leaving};
use super::run_queue::Level;
use crate::kernel::sched::Busiest;
use crate::machine::cpus::cpu::Phase;
use crate::machine::state::State;
use crate::machine::trace::Object;
use crate::waist::time::{Time, US};
use crate::waist::{CpuId, TaskId};

/// The averages of idle CPUs are brought up to date once in a half-life of them (`nohz.next_blocked`).
const BLOCKED_EVERY: Time = 32 * 1000 * US;
impl State {
    /// `sched_balance_update_blocked_averages`.
    pub(super) fn update_blocked(&mut self, cpu: CpuId) {
        self.update_queue_load(cpu, Level::Group);
        self.update_queue_load(cpu, Level::Root);
    }

    /// Moves a task to the idle `cpu` from a CPU under the same last-level cache, of the smallest domain that has one to give.
    fn pull_to(&mut self, cpu: CpuId) -> Option<TaskId> {
        let largest = self.largest_near(cpu)?;
        if self.kernel.rules.busiest == Busiest::Waiting {
            return self.take_most_waiting(cpu, largest, false);
        }
        (largest..self.topology.domains().len()).rev().find_map(|at| self.take_in(cpu, at, false))
    }

    /// The largest domain under the last-level cache of `cpu`.
    pub(super) fn largest_near(&self, cpu: CpuId) -> Option<usize> {
        let near = self.topology.llc(cpu).len() as u32;
        self.topology.domains().iter().position(|domain| domain.span <= near)
    }

    /// Moves a task to `cpu` from the busiest of a domain, if there is one.
    pub(super) fn take_in(&mut self, cpu: CpuId, at: usize, about_to_idle: bool) -> Option<TaskId> {
        let overloaded = self.is_overloaded();
        if at == 0 {
            self.overloaded = overloaded; // the domain of all CPUs
        }
        if !overloaded {
            return None;
        }
        let source = self.busiest_in(cpu, self.topology.domains()[at]);
        self.take_from(source, cpu, at, about_to_idle)
    }

    /// The same from the CPU under its cache with most waiting tasks (before 5.5).
    pub(super) fn take_most_waiting(&mut self, cpu: CpuId, at: usize, about_to_idle: bool) -> Option<TaskId> {
        self.overloaded = self.is_overloaded();
        self.take_from(self.most_waiting(cpu), cpu, at, about_to_idle)
    }

    /// Moves a task from `source` and counts the looks of idle CPUs that found a source and nobody to move (`nr_balance_failed` in
    /// `sched_balance_rq`, before 6.9 `load_balance`). After some of these, tasks may move that ran a moment ago.
    fn take_from(&mut self, source: Option<CpuId>, cpu: CpuId, at: usize, about_to_idle: bool) -> Option<TaskId> {
        let failed = self.cpus[cpu as usize].failed_looks[at];
        let even_hot = failed > self.topology.nice_tries(self.topology.domains()[at]);
        let taken = source.and_then(|source| Some((source, self.movable(source, even_hot)?)));
        if let Some((source, id)) = taken {
            self.migrate(id, source, cpu);
        }
        self.cpus[cpu as usize].failed_looks[at] = match (source, taken) {
            (Some(_), None) => failed + u32::from(!about_to_idle),
            _ => 0,
        };
        taken.map(|(_, id)| id)
    }

    /// Who waits longest and, unless `even_hot`, has not run a moment ago (`task_hot`).
    fn movable(&self, cpu: CpuId, even_hot: bool) -> Option<TaskId> {
        let hot_since = self.now.saturating_sub(self.kernel.migration_cost);
        let moves = |id: &&TaskId| {
            let task = &self.tasks[**id as usize];
            task.pinned.is_none() && (even_hot || task.last_ran <= hot_since)
        };
        self.cpus[cpu as usize].queue.iter().find(moves).copied()
    }

    fn migrate(&mut self, id: TaskId, from: CpuId, to: CpuId) {
        self.counters.migrations += 1;
        self.counters.pulls += 1;
        self.note_move(id, to);
        self.dequeue_task(from, id, Leaving::Moved);
        self.detach_load(id, from);
        self.attach_load(id, to);
        self.enqueue_task(to, id, Entering::Moved);
        self.tasks[id as usize].arrived = None;
        self.note("migrate", id, Object::Nothing);
        self.heed_resched(from);
    }

    /// The tick of a CPU with waiting tasks has idle CPUs look for some, each only if it has not done so lately; the first of all idle
    /// CPUs does it for the others, and then for itself (`kick_ilb`, `_nohz_idle_balance`).
    pub(super) fn kick_idle_cpus(&mut self, kicker: CpuId) {
        let near = self.topology.llc(kicker);
        self.note_idle_cpus();
        self.update_idle_cpus();
        let Some(first) = (0..self.topology.cpus).find(|&cpu| self.is_idle(cpu)) else { return };
        let looks = if self.looks_afar() { 0..self.topology.cpus } else { near.clone() };
        let others = looks.clone().filter(|&cpu| cpu != first);
        for cpu in others.chain(Some(first).filter(|first| looks.contains(first))) {
            let Phase::Idle(since) = self.cpus[cpu as usize].phase else { continue };
            let mut moved = false;
            if near.contains(&cpu) && self.now >= self.cpus[cpu as usize].next_balance {
                moved = self.pull_to(cpu).is_some();
                self.cpus[cpu as usize].next_balance = self.next_balance(near.len() as Time, moved);
            }
            if moved || self.balances_afar(cpu) {
                self.leave_idle(cpu, since, Some(kicker), 0);
            }
        }
    }

    fn update_idle_cpus(&mut self) {
        if self.now >= self.next_blocked {
            self.next_blocked = self.now + BLOCKED_EVERY;
            for cpu in 0..self.topology.cpus {
                if self.is_idle(cpu) {
                    self.update_blocked(cpu);
                }
            }
        }
    }

    /// The interval is as many ms as there are CPUs, and twice that where there was nothing to move (`balance_interval`).
    pub(in crate::machine) fn next_balance(&self, cpus: Time, moved: bool) -> Time {
        let interval = if moved { cpus } else { 2 * cpus } * 1000 * US;
        let ticks = interval.div_ceil(self.kernel.tick).max(1);
        self.now + ticks * self.kernel.tick
    }

    /// Somebody wakes on `cpu`, which has idled: how long it does so on average (`rq->avg_idle`).
    pub(super) fn note_idle_time(&mut self, cpu: CpuId) {
        let (now, most) = (self.now, 2 * self.kernel.migration_cost);
        let c = &mut self.cpus[cpu as usize];
        let Some(since) = c.idle_stamp.take() else { return };
        let (average, idle) = (c.average_idle as i64, (now - since) as i64);
        c.average_idle = ((average + (idle - average) / 8) as Time).min(most);
    }
}
