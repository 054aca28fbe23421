//! A CPU about to idle looks for a task to take (`sched_balance_newidle`, before 6.9 `newidle_balance`). That takes time, in which it
//! does not idle yet, so that no wake-up finds it idle; who is woken there waits until it has switched to idle.

use crate::kernel::sched::{Busiest, NewIdle};
use crate::machine::cpus::cpu::Errand;
use crate::machine::state::State;
use crate::waist::time::{Time, US};
use crate::waist::CpuId;
use rand_core::RngCore;

/// Cache lines of another CPU that a search for a task reads: its load, its run queue, its counts (`update_sg_lb_stats`).
const LINES_A_CPU: Time = 3;
/// How long the longest look is remembered before it counts less.
const SECOND: Time = 1_000_000 * US;

/// How often looks into a domain have found a task for a CPU about to idle (`newidle_call`, `newidle_success`, `newidle_ratio`).
#[derive(Clone, Copy, Debug)]
pub struct Success {
    calls: u64,
    found: u64,
    ratio: u64,
}

impl Default for Success {
    /// Half of them, at first (`sd_init`).
    fn default() -> Self {
        Self { calls: 512, found: 256, ratio: 512 }
    }
}

impl Success {
    /// In how many of 1,024 cases there is a look.
    fn weight(&self) -> u64 {
        1 + self.ratio
    }

    /// A look has found something, which counts for those that there were not.
    fn note_look(&mut self, found: bool) {
        let weight = self.weight();
        self.note(if found { (1024 + weight / 2) / weight } else { 0 });
    }

    /// `update_newidle_stats`.
    fn note(&mut self, found: u64) {
        self.calls += 1;
        self.found += found;
        if self.calls >= 1024 {
            self.ratio = self.found;
            self.calls /= 2;
            self.found /= 2;
        }
    }
}

/// How long looks into a domain take at most (`max_newidle_lb_cost`), and since when that is believed.
#[derive(Clone, Copy, Debug, Default)]
pub struct LookCost {
    most: Time,
    since: Time,
}

impl LookCost {
    /// A look took so long. The maximum falls by 1 % a second (`update_newidle_cost`).
    fn note(&mut self, now: Time, took: Time) {
        if took > self.most {
            *self = Self { most: took, since: now };
        } else if now > self.since + SECOND {
            *self = Self { most: self.most * 253 / 256, since: now };
        }
    }
}

impl State {
    /// `cpu` has nothing to run: it looks for a task to take, if somebody may wait and it idles longer than a look takes, or idles.
    #[inline(always)]
    pub(super) fn newly_idle(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].idle_stamp = Some(self.now);
        if self.overloaded {
            self.looks_or_idles(cpu);
        } else {
            self.go_idle(cpu);
        }
    }

    #[inline(never)]
    fn looks_or_idles(&mut self, cpu: CpuId) {
        let floor = match self.kernel.rules.newidle {
            NewIdle::AboveMigrationCost => self.kernel.migration_cost,
            NewIdle::Always | NewIdle::BySuccess => 0,
        };
        if self.cpus[cpu as usize].average_idle < floor {
            return self.go_idle(cpu);
        }
        let smallest = match self.kernel.rules.busiest {
            Busiest::Waiting => self.largest_near(cpu).map(|at| at + 1),
            _ => Some(self.topology.domains().len()),
        };
        match smallest {
            Some(smallest) => {
                self.update_blocked(cpu);
                self.look_into_next(cpu, smallest, 0);
            }
            None => self.go_idle(cpu),
        }
    }

    /// `cpu` begins to look into the smallest domain above number `last` that is worth it, or idles. Looks so far took `spent`.
    fn look_into_next(&mut self, cpu: CpuId, last: usize, spent: Time) {
        let largest = match self.kernel.rules.busiest {
            Busiest::Waiting => self.largest_near(cpu).unwrap_or(last),
            _ => 0,
        };
        for at in (largest..last).rev() {
            let c = &self.cpus[cpu as usize];
            if c.average_idle < spent + c.look_cost[at].most {
                break;
            }
            if self.is_worth_a_look(cpu, at) {
                self.cpus[cpu as usize].errand = Some(Errand::Look(at, spent));
                let time = self.look_time(cpu, at);
                return self.occupy(cpu, None, time);
            }
        }
        self.go_idle(cpu);
    }

    /// `cpu` goes over all CPUs of a domain (`update_sd_lb_stats`).
    fn look_time(&self, cpu: CpuId, at: usize) -> Time {
        let cpus = self.topology.group(cpu, self.topology.domains()[at].span).len() as Time;
        cpus * self.kernel.look_cpu + LINES_A_CPU * self.topology.transfer_from_all(cpu, at)
    }

    /// `cpu` has seen all CPUs of a domain and takes a task from the busiest, if there is one.
    #[cold]
    pub(super) fn look_done(&mut self, cpu: CpuId, at: usize, spent: Time) {
        let taken = match self.kernel.rules.busiest {
            Busiest::Waiting => self.take_most_waiting(cpu, at, true),
            _ => self.take_in(cpu, at, true),
        };
        let mut took = self.look_time(cpu, at);
        if taken.is_some() {
            took += self.kernel.take_task;
        }
        let (now, c) = (self.now, &mut self.cpus[cpu as usize]);
        c.look_cost[at].note(now, took);
        if self.kernel.rules.newidle == NewIdle::BySuccess {
            c.newidle[at].note_look(taken.is_some());
        }
        if taken.is_some() {
            c.idle_stamp = None;
            c.before_switch += self.kernel.take_task;
            let next = self.pick(cpu).expect("it has taken a task");
            self.switch_to(cpu, next);
        } else if !self.cpus[cpu as usize].queue.is_empty() {
            self.set_next(cpu, None);
            self.begin_switch(cpu, None); // who was woken waits for an interrupt, which comes when it idles
        } else {
            self.look_into_next(cpu, at, spent + took);
        }
    }

    /// The more often looks at a domain found something, the more likely there is one (`NI_RANDOM`).
    fn is_worth_a_look(&mut self, cpu: CpuId, at: usize) -> bool {
        if self.kernel.rules.newidle != NewIdle::BySuccess {
            return true;
        }
        let draw = self.random.next_u64() % 1024;
        let success = &mut self.cpus[cpu as usize].newidle[at];
        let looks = draw <= success.weight();
        if !looks {
            success.note(0);
        }
        looks
    }
}
