//! What both machines must compute alike: random numbers, and the percentiles of reports.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use rand_xoshiro::rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;
use simfs_engine::draw::{chance, uniform, zipf, Draw};
use simfs_engine::hdr::{decoded, encoded, histogram, pooled};
use simfs_engine::random::{self, lognormal};
use simfs_engine::waist::Time;

/// A named random stream of a run: the same numbers on both machines. Times are picoseconds.
#[pyclass(module = "simfs._engine")]
pub struct Stream(pub Xoshiro256PlusPlus);

#[pymethods]
impl Stream {
    #[new]
    fn new(seed: u64, replication: u64, name: &str) -> Self {
        Self(random::stream(seed, replication, name))
    }

    /// 64 random bits.
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 (included) to 1 (excluded).
    fn uniform(&mut self) -> f64 {
        uniform(&mut self.0)
    }

    /// True with probability `p`; draws nothing if `p` is not above 0.
    fn chance(&mut self, p: f64) -> bool {
        chance(&mut self.0, p)
    }

    /// A number below `count` by Zipf's law: the k-th with a probability in proportion to k to the power of `-theta`.
    fn zipf(&mut self, count: u64, theta: f64) -> PyResult<u64> {
        if count == 0 || theta.is_nan() || theta <= 0.0 {
            return Err(PyValueError::new_err("zipf needs a count of at least 1 and a theta above 0"));
        }
        Ok(zipf(&mut self.0, count, theta))
    }

    /// An exponentially distributed time.
    fn exponential(&mut self, mean: Time) -> Time {
        Draw::Exponential(mean).draw(&mut self.0)
    }

    /// A log-normal factor with mean 1 and coefficient of variation `cv`.
    fn factor(&mut self, cv: f64) -> f64 {
        lognormal(&mut self.0, cv)
    }

    /// A log-normally distributed time; `cv` is its standard deviation over its mean.
    fn lognormal(&mut self, mean: Time, cv: f64) -> Time {
        Draw::LogNormal { mean, cv }.draw(&mut self.0)
    }
}

/// The histogram of the engine's reports: nanoseconds up to an hour, to so many significant digits.
#[pyclass(module = "simfs._engine")]
pub struct Histogram(hdrhistogram::Histogram<u64>);

#[pymethods]
impl Histogram {
    #[new]
    fn new(digits: u8) -> PyResult<Self> {
        if !(1..=5).contains(&digits) {
            return Err(PyValueError::new_err(format!("digits: must be 1 to 5, not {digits}")));
        }
        Ok(Self(histogram(digits)))
    }

    /// The histogram of a text form, HdrHistogram's V2 with DEFLATE, in base64.
    #[staticmethod]
    fn decode(text: &str) -> PyResult<Self> {
        decoded(text).map(Self).map_err(PyValueError::new_err)
    }

    /// The histogram of the values of all text forms.
    #[staticmethod]
    fn pooled(texts: Vec<PyBackedStr>) -> PyResult<Self> {
        pooled(&texts).map(Self).map_err(PyValueError::new_err)
    }

    /// The text form.
    fn encode(&self) -> String {
        encoded(&self.0)
    }

    /// Adds what `other` has recorded.
    fn add(&mut self, other: &Self) -> PyResult<()> {
        self.0.add(&other.0).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// Records one value; more than an hour counts as an hour.
    fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Forgets everything.
    fn reset(&mut self) {
        self.0.reset();
    }

    /// The value below which `percent` % of the recorded ones lie; 0 if there are none.
    fn percentile(&self, percent: f64) -> f64 {
        self.0.value_at_quantile(percent / 100.0) as f64
    }

    /// How many of the recorded values are larger than `ns`, as exactly as the digits allow.
    fn above(&self, ns: u64) -> u64 {
        self.0.len() - self.0.count_between(0, ns)
    }

    /// The part of the sum of all recorded values that the largest `percent` % of them make, as exactly as the digits allow.
    fn share_of_largest(&self, percent: f64) -> f64 {
        let mut left = percent / 100.0 * self.0.len() as f64;
        let values: Vec<_> =
            self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        let (mut largest, mut all) = (0.0, 0.0);
        for &(value, count) in values.iter().rev() {
            let taken = left.min(count as f64).max(0.0);
            left -= taken;
            largest += taken * value as f64;
            all += count as f64 * value as f64;
        }
        if all > 0.0 {
            largest / all
        } else {
            0.0
        }
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.len()
    }

    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    #[getter]
    fn max(&self) -> f64 {
        self.0.max() as f64
    }
}
