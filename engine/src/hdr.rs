//! Histograms of nanoseconds: how they are made, how times are counted while a run goes on, and their standard text form
//! (HdrHistogram's V2 with DEFLATE, in base64), in which runs are merged and other tools read them.

use crate::waist::time::{Time, NS};

use base64::prelude::{Engine, BASE64_STANDARD};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::Histogram;

const HOUR: u64 = 3_600_000_000_000;

/// Counts of times in the buckets of a [`histogram`], which it becomes for a report: a few instructions a time, and no
/// allocation after the first.
#[derive(Clone, Debug)]
pub struct Tally {
    digits: u8,
    /// Logarithm of half the number of linear steps in a bucket.
    half: u32,
    counts: Box<[u64]>,
}

impl Tally {
    /// No times yet.
    pub fn new(digits: u8) -> Self {
        // `hdrhistogram` takes the power of two from 2 * 10^digits on as the steps of its first bucket
        let half = (2 * 10u64.pow(digits.into())).next_power_of_two().ilog2() - 1;
        Self { digits, half, counts: Box::default() }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    fn place(&self, ns: u64) -> usize {
        let bucket = (ns >> self.half).max(1).ilog2();
        ((bucket as usize) << self.half) + (ns >> bucket) as usize
    }

    /// The smallest number of nanoseconds counted at a place.
    fn least(&self, place: usize) -> u64 {
        let bucket = (place >> self.half).saturating_sub(1);
        ((place - (bucket << self.half)) as u64) << bucket
    }

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, time: Time) {
        let place = self.place((time / NS).min(HOUR));
        match self.counts.get_mut(place) {
            Some(count) => *count += 1,
            None => self.begin(place),
        }
    }

    #[cold]
    fn begin(&mut self, place: usize) {
        self.counts = vec![0; self.place(HOUR) + 1].into();
        self.counts[place] = 1;
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.counts.fill(0);
    }

    /// The histogram of all times.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = histogram(self.digits);
        for (place, &count) in self.counts.iter().enumerate().filter(|(_, &count)| count > 0) {
            histogram.record_n(self.least(place), count).expect("no time is longer than an hour");
        }
        histogram
    }
}

/// A histogram of nanoseconds up to an hour that never allocates when it records.
pub fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, HOUR, digits).expect("the bounds and up to five digits are valid")
}

/// The text form.
pub fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("a vector takes all bytes");
    BASE64_STANDARD.encode(bytes)
}

/// The histogram of a text form.
pub fn decoded(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|e| format!("not base64: {e}"))?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|e| format!("not a histogram: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_as_the_histogram_does() {
        for digits in 1..=4 {
            let (mut tally, mut expected) = (Tally::new(digits), histogram(digits));
            let near_powers = (0..42).flat_map(|bit| [-1i64, 0, 1].map(|by| ((1i64 << bit) + by) as u64));
            for ns in near_powers.chain((0..5000).map(|n| n * n * n)).chain([HOUR - 1, HOUR, HOUR + 1, 2 * HOUR]) {
                tally.record(ns * NS + 999);
                expected.saturating_record(ns.min(HOUR));
            }
            let counted = tally.histogram();
            assert_eq!(encoded(&counted), encoded(&expected), "{digits} digits");
            assert_eq!((counted.max(), counted.len()), (expected.max(), expected.len()));
        }
    }
}
