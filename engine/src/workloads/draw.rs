//! Random times for programs.

use crate::machine::time::{from_ns, scaled};
use crate::machine::Time;
use crate::random::lognormal;
use crate::spec::WorkloadSpec;
use rand_core::RngCore;
use rand_distr::{Distribution, Exp1, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A distribution of times.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    /// Always the same.
    Constant(Time),
    /// Exponential with this mean.
    Exponential(Time),
    /// Log-normal with this mean and coefficient of variation.
    LogNormal {
        /// Mean.
        mean: Time,
        /// Standard deviation over mean.
        cv: f64,
    },
    /// Gamma-distributed with this mean and coefficient of variation.
    Gamma {
        /// Mean.
        mean: Time,
        /// Standard deviation over mean.
        cv: f64,
    },
}

impl Draw {
    /// From its name and mean in nanoseconds.
    pub fn parse(name: &str, mean_ns: f64, cv: f64) -> Result<Self, String> {
        let mean = from_ns(mean_ns);
        match name {
            "constant" => Ok(Self::Constant(mean)),
            "exponential" => Ok(Self::Exponential(mean)),
            "lognormal" => Ok(Self::LogNormal { mean, cv }),
            "gamma" if cv > 0.0 => Ok(Self::Gamma { mean, cv }),
            "gamma" => Err("gamma needs a cv above 0".into()),
            other => Err(format!("unknown distribution '{other}'; known: constant, exponential, lognormal, gamma")),
        }
    }

    /// From a workload's parameters `WHAT_ns`, `WHAT_distribution` and `WHAT_cv`.
    pub fn of(w: &WorkloadSpec, what: &str) -> Result<Self, String> {
        let name = format!("{what}_distribution");
        Self::parse(w.word(&name), w.number(&format!("{what}_ns")), w.number(&format!("{what}_cv")))
            .map_err(|e| format!("workload.params.{name}: {e}"))
    }

    /// One value.
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Time {
        match *self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => {
                let unit: f64 = Exp1.sample(random);
                scaled(mean, unit)
            }
            Self::Gamma { mean, cv } => {
                let shape = 1.0 / (cv * cv);
                let unit = Gamma::new(shape, 1.0 / shape).map_or(1.0, |gamma| gamma.sample(random));
                scaled(mean, unit)
            }
            Self::LogNormal { mean, cv } => (lognormal(random, cv) * mean as f64) as Time,
        }
    }
}

/// A number from 0 (included) to 1 (excluded).
pub fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// True with probability `p`; draws nothing when that is certain.
pub fn chance(random: &mut Xoshiro256PlusPlus, p: f64) -> bool {
    p > 0.0 && uniform(random) < p
}
