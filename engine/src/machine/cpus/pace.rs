//! Pace: the same kernel code takes a little longer or shorter each time it runs, as caches, page tables and the host have it.

use crate::random::{stream, LogNormal};
use crate::spec::RunSpec;
use crate::waist::time::{scaled, Time};
use crate::waist::{Account, TaskId};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How fast each task goes through the stretch of kernel code that it is in.
pub struct Paces {
    varies: bool,
    factors: LogNormal,
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
        let cv = spec.machine.costs.step_cv;
        let factors = LogNormal::new(cv);
        Self { varies: cv > 0.0, factors, seed: spec.seed, replication: spec.replication, tasks: Vec::new() }
    }

    /// Task number `id` may be new.
    pub fn meet(&mut self, id: TaskId) {
        if self.varies && id as usize == self.tasks.len() {
            let random = stream(self.seed, self.replication, &format!("pace {id}"));
            self.tasks.push(Pace { factor: 1.0, random });
        }
    }

    /// Task `id` enters another stretch of code.
    pub fn change(&mut self, id: TaskId) {
        if self.varies {
            let pace = &mut self.tasks[id as usize];
            pace.factor = self.factors.draw(&mut pace.random);
        }
    }

    /// The factor of a stretch of code that is no task's, by a stream of its own.
    pub fn of_nobody(&self, random: &mut Xoshiro256PlusPlus) -> f64 {
        if self.varies {
            self.factors.draw(random)
        } else {
            1.0
        }
    }

    /// How long `time` of code takes at the pace of task `id`. User code has a distribution of its own, where it varies.
    #[inline]
    pub fn taken(&self, id: TaskId, account: Account, time: Time) -> Time {
        if self.varies && account == Account::System {
            scaled(time, self.tasks[id as usize].factor)
        } else {
            time
        }
    }
}
