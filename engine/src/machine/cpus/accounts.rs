//! The time accounts of a run as a whole, the measured window, and what reports read.

use super::cpu::Phase;
use crate::hdr::Tally;
use crate::machine::caches::line::Line;
use crate::machine::state::{Counters, State};
use crate::machine::task::Resume;
use crate::waist::time::Time;
use crate::waist::{Account, ClassId, CpuId};
use std::collections::BTreeMap;

impl State {
    /// Brings all time accounts and holds up to now.
    pub(in crate::machine) fn book_everything(&mut self) {
        self.note_idle_cpus();
        self.book_holds();
        self.book_chains();
        for cpu in 0..self.cpus.len() as CpuId {
            let c = &self.cpus[cpu as usize];
            let current = c.current;
            match (c.phase, current) {
                (Phase::Running, Some(id)) if self.tasks[id as usize].resume == Resume::Segment => {
                    self.book_segment(id);
                }
                (Phase::Running, Some(id)) => self.book_spin(id),
                (phase, _) => {
                    let account = match phase {
                        Phase::Idle(_) | Phase::IdleExit(_) => Account::Idle,
                        Phase::Switching(_) => c.between_tasks(),
                        Phase::Running => Account::Spin,
                    };
                    let now = self.now;
                    self.cpus[cpu as usize].account(now, account);
                }
            }
        }
    }

    /// Starts the measured window: all statistics begin anew.
    pub(in crate::machine) fn start_window(&mut self) {
        self.book_everything();
        let now = self.now;
        self.window_start = now;
        self.counters = Counters::default();
        self.idle_joules = 0.0;
        self.cpus.iter_mut().for_each(super::cpu::Cpu::reset_accounts);
        self.classes.iter_mut().for_each(|c| c.reset(now));
        self.chains.start_window(now);
        self.wakes = Default::default();
        self.forget_waits();
        self.latencies.iter_mut().chain(&mut self.delays).chain(&mut self.requests).for_each(|(_, h)| h.reset());
        self.tasks.iter_mut().for_each(|t| t.operations = 0);
        self.locks.iter_mut().for_each(|lock| lock.held_total = 0);
        self.lock_lines.iter_mut().chain(&mut self.lines).for_each(Line::start_window);
        self.reset_untaken();
    }
}

/// What reports read.
impl State {
    /// Why something could not be set up.
    pub fn take_problem(&mut self) -> Option<String> {
        self.given_up.take()
    }

    /// Time by account over all CPUs in the measured window.
    pub fn account_totals(&self) -> [Time; super::cpu::ACCOUNTS] {
        let mut totals = [0; super::cpu::ACCOUNTS];
        for cpu in &self.cpus {
            totals.iter_mut().zip(cpu.accounts).for_each(|(total, time)| *total += time);
        }
        totals
    }

    /// Length of the measured window so far.
    pub fn window(&self) -> Time {
        self.now - self.window_start
    }

    /// Energy (J) of all idle time in the window, periods in progress included.
    pub fn idle_energy(&self) -> f64 {
        let open = self.cpus.iter().enumerate().filter_map(|(number, cpu)| match cpu.phase {
            Phase::Idle(since) => Some(self.open_idle_joules(number as CpuId, since)),
            Phase::IdleExit(since) => Some(self.idle_ladder.exit_joules(self.now - since.max(self.window_start))),
            _ => None,
        });
        self.idle_joules + open.sum::<f64>()
    }

    /// Operations of each foreground task.
    pub fn per_task_operations(&self) -> Vec<u64> {
        self.tasks.iter().filter(|t| !t.background).map(|t| t.operations).collect()
    }

    /// Latencies by operation.
    pub fn latencies(&self) -> &[(&'static str, Tally)] {
        &self.latencies
    }

    /// Delays that programs told of, by name.
    pub fn delays(&self) -> &[(&'static str, Tally)] {
        &self.delays
    }

    /// What requests of devices took, by what they asked for.
    pub fn requests(&self) -> &[(&'static str, Tally)] {
        &self.requests
    }

    /// The name of a site by its number.
    pub fn site_name(&self, number: usize) -> &'static str {
        self.sites.get(number).copied().unwrap_or("")
    }

    /// By name the transfers of lines, locks' and others', and how long tasks waited for them; of those that somebody waited for.
    pub fn lines_by_name(&self) -> BTreeMap<&str, (u64, Time)> {
        let data = self.line_names.iter().copied().zip(&self.lines);
        let name = |class: ClassId| self.classes[class as usize].name.as_str();
        let locks = self.locks.iter().map(|lock| name(lock.class)).zip(&self.lock_lines);
        let untaken = self.untaken_lines().map(|(class, line)| (name(class), line));
        let mut named = BTreeMap::<_, (u64, Time)>::new();
        for (name, line) in data.chain(locks).chain(untaken).filter(|(_, line)| line.waited > 0) {
            let (transfers, waited) = named.entry(name).or_default();
            *transfers += line.transfers;
            *waited += line.waited;
        }
        named
    }

    /// By class the transfers of its locks' lines, and the longest time that one of them was held exclusively.
    pub fn transfers_and_busiest_by_class(&self) -> Vec<(u64, Time)> {
        let mut classes = vec![(0, 0); self.classes.len()];
        for (lock, line) in self.locks.iter().zip(&self.lock_lines) {
            let (transfers, busiest) = &mut classes[lock.class as usize];
            *transfers += line.transfers;
            *busiest = lock.held_total.max(*busiest);
        }
        for (class, line) in self.untaken_lines() {
            classes[class as usize].0 += line.transfers;
        }
        classes
    }
}
