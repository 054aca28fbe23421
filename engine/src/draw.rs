//! Random times for programs.

use crate::random::lognormal;
use crate::spec::WorkloadSpec;
use crate::waist::time::{from_ns, scaled};
use crate::waist::Time;
use rand_core::RngCore;
use rand_distr::{Distribution, Exp1, Gamma, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
use std::sync::Arc;

/// A distribution of times.
#[derive(Clone, Debug)]
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
    /// One of these.
    Empirical(Arc<[Step]>),
}

/// A time that may be drawn, and the probability that one up to it in the list is.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    upto: f64,
    time: Time,
}

impl Draw {
    /// One of these times (ns), each as often as its weight says, or all equally often.
    pub fn empirical(times: &[f64], weights: Option<&[f64]>) -> Result<Self, String> {
        let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
        if times.is_empty() || weights.is_some_and(|weights| weights.len() != times.len()) {
            return Err("empirical needs values, and a weight for each or none".into());
        }
        let all: f64 = (0..times.len()).map(weight).sum();
        if !(all > 0.0 && all.is_finite()) {
            return Err("empirical needs a weight above 0".into());
        }
        let mut upto = 0.0;
        let step = |(at, &time)| {
            upto += weight(at) / all;
            Step { upto, time: from_ns(time) }
        };
        Ok(Self::Empirical(times.iter().enumerate().map(step).collect()))
    }

    /// From its name and mean in nanoseconds.
    pub fn parse(name: &str, mean_ns: f64, cv: f64) -> Result<Self, String> {
        let mean = from_ns(mean_ns);
        match name {
            "constant" => Ok(Self::Constant(mean)),
            "exponential" => Ok(Self::Exponential(mean)),
            "lognormal" => Ok(Self::LogNormal { mean, cv }),
            "gamma" if cv > 0.0 => Ok(Self::Gamma { mean, cv }),
            "gamma" => Err("gamma needs a cv above 0".into()),
            other => Err(format!(
                "unknown distribution '{other}'; known: constant, exponential, lognormal, gamma, empirical"
            )),
        }
    }

    /// From a workload's parameters `WHAT_ns`, `WHAT_distribution`, `WHAT_cv`, `WHAT_values` and `WHAT_weights`.
    pub fn of(w: &WorkloadSpec, what: &str) -> Result<Self, String> {
        let name = format!("{what}_distribution");
        let drawn = match w.word(&name) {
            "empirical" => {
                let values = w.times(&format!("{what}_values")).unwrap_or_default();
                Self::empirical(&values, w.times(&format!("{what}_weights")).as_deref())
            }
            word => Self::parse(word, w.given(&format!("{what}_ns")).unwrap_or(0.0), w.number(&format!("{what}_cv"))),
        };
        drawn.map_err(|e| format!("workload.params.{name}: {e}"))
    }

    /// The same from an entry of a list.
    pub fn of_entry(entry: &Value, what: &str) -> Result<Self, String> {
        let numbers = |key: &str| {
            let list = entry[format!("{what}_{key}")].as_array()?;
            Some(list.iter().filter_map(Value::as_f64).collect::<Vec<_>>())
        };
        let number = |key: &str, default| entry[format!("{what}_{key}")].as_f64().unwrap_or(default);
        match entry[format!("{what}_distribution")].as_str().unwrap_or("constant") {
            "empirical" => Self::empirical(&numbers("values").unwrap_or_default(), numbers("weights").as_deref()),
            word => Self::parse(word, number("ns", 0.0), number("cv", 1.0)),
        }
    }

    /// One value.
    #[inline]
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Time {
        match *self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => {
                let unit: f64 = Exp1.sample(random);
                scaled(mean, unit)
            }
            _ => self.draw_rarer(random),
        }
    }

    #[inline(never)]
    fn draw_rarer(&self, random: &mut Xoshiro256PlusPlus) -> Time {
        match *self {
            Self::Empirical(ref steps) => {
                let drawn = uniform(random);
                let at = steps.partition_point(|step| step.upto <= drawn);
                steps[at.min(steps.len() - 1)].time
            }
            Self::Constant(_) | Self::Exponential(_) => self.draw(random),
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

/// How one of many is chosen (fio's `random_distribution`).
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// Each equally often.
    Random,
    /// The first the most often: the k-th with a probability in proportion to k to the power of minus this.
    Zipf(f64),
}

impl Choice {
    /// `random` or `zipf`, the latter with its exponent.
    pub fn of(w: &WorkloadSpec) -> Result<Self, String> {
        let theta = w.number("zipf_theta");
        match w.word("random_distribution") {
            "zipf" if theta > 0.0 => Ok(Self::Zipf(theta)),
            "zipf" => Err("workload.params.zipf_theta: must be above 0".into()),
            _ => Ok(Self::Random),
        }
    }

    /// The number of one of `count`, at least one.
    pub fn pick(self, random: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
        match self {
            Self::Random => (uniform(random) * count as f64) as u64,
            Self::Zipf(theta) => zipf(random, count, theta),
        }
    }
}

/// Which blocks of its file a task takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Any, drawn anew each time.
    Random,
    /// One of its own, always.
    OwnBlock,
    /// One after the other, and then again from the first.
    Sequential,
}

impl Places {
    /// By the word of a scenario; the error says which there are.
    pub fn named(word: &str) -> Result<Self, String> {
        match word {
            "random" => Ok(Self::Random),
            "own-block" => Ok(Self::OwnBlock),
            "sequential" => Ok(Self::Sequential),
            other => Err(format!("unknown places '{other}'; known: random, own-block, sequential")),
        }
    }
}

/// A number below `count` by Zipf's law with this exponent, 0 the most often.
pub fn zipf(random: &mut Xoshiro256PlusPlus, count: u64, theta: f64) -> u64 {
    let rank: f64 = Zipf::new(count, theta).map_or(1.0, |zipf| zipf.sample(random));
    (rank as u64).clamp(1, count) - 1
}
