//! Pace: the same kernel code takes a little longer or shorter each time it runs, as caches, page tables and the host have it.

use super::cpu::Account;
use super::task::TaskId;
use super::time::Time;
use crate::random::{lognormal, stream};
use crate::spec::RunSpec;
use rand_xoshiro::Xoshiro256PlusPlus;

/// How fast each task goes through the stretch of kernel code that it is in.
pub struct Paces {
    cv: f64,
    seed: u64,
    replication: u64,
    tasks: Vec<Pace>,
}

struct Pace {
    factor: f64,
    random: Xoshiro256PlusPlus,
}

impl Paces {
    /// For a machine with `step_cv`; 0 is code that always takes its time.
    pub fn new(spec: &RunSpec) -> Self {
        Self { cv: spec.machine.costs.step_cv, seed: spec.seed, replication: spec.replication, tasks: Vec::new() }
    }

    /// Task number `id` may be new.
    pub fn meet(&mut self, id: TaskId) {
        if self.cv > 0.0 && id as usize == self.tasks.len() {
            let random = stream(self.seed, self.replication, &format!("pace {id}"));
            self.tasks.push(Pace { factor: 1.0, random });
        }
    }

    /// Task `id` enters another stretch of code.
    pub fn change(&mut self, id: TaskId) {
        if self.cv > 0.0 {
            let pace = &mut self.tasks[id as usize];
            pace.factor = lognormal(&mut pace.random, self.cv);
        }
    }

    /// How long `time` of code takes at the pace of task `id`. User code has a distribution of its own, where it varies.
    pub fn taken(&self, id: TaskId, account: Account, time: Time) -> Time {
        if self.cv > 0.0 && account == Account::System {
            (time as f64 * self.tasks[id as usize].factor) as Time
        } else {
            time
        }
    }
}
