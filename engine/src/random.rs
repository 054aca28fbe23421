//! Named random streams: every draw of a run comes from a stream that is found by its name, so that adding one stream
//! changes no other, on any machine.

use rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hash::{Hash, Hasher};

/// The stream called `name` of one replication, at its beginning. It depends on nothing else.
pub fn stream(seed: u64, replication: u64, name: &str) -> Xoshiro256PlusPlus {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    (seed, replication, name).hash(&mut hash);
    Xoshiro256PlusPlus::seed_from_u64(hash.finish())
}

/// A log-normal factor with mean 1 and coefficient of variation `cv`.
pub fn lognormal(random: &mut Xoshiro256PlusPlus, cv: f64) -> f64 {
    LogNormal::new(cv).draw(random)
}

/// Log-normal factors with mean 1.
#[derive(Clone, Copy, Debug)]
pub struct LogNormal {
    sigma: f64,
    half_variance: f64,
}

impl LogNormal {
    /// Of a coefficient of variation.
    pub fn new(cv: f64) -> Self {
        let sigma2 = (1.0 + cv * cv).ln();
        Self { sigma: sigma2.sqrt(), half_variance: sigma2 / 2.0 }
    }

    /// One factor.
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus) -> f64 {
        let z: f64 = StandardNormal.sample(random);
        (self.sigma * z - self.half_variance).exp()
    }
}

/// FNV-1a: the same on every platform and in every release, which the standard library's hasher does not promise.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
