//! Histograms of nanoseconds: how they are made, how times are counted while a run goes on, and their standard text form
//! (HdrHistogram's V2 with DEFLATE, in base64), in which runs are merged and other tools read them.

use crate::waist::time::{Time, NS};

use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::{Compress, Compression, FlushCompress, Status};
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::sync::OnceLock;

mod pool;

const HOUR: u64 = 3_600_000_000_000;

/// Counts of times in the buckets of a [`histogram`], which it becomes for a report: a few instructions a time. There is room
/// up to the bucket of the longest time.
#[derive(Clone, Debug)]
pub struct Tally {
    digits: u8,
    /// Logarithm of half the number of linear steps in a bucket.
    half: u32,
    counts: Vec<u64>,
}

impl Tally {
    /// No times yet.
    pub fn new(digits: u8) -> Self {
        // `hdrhistogram` takes the power of two from 2 * 10^digits on as the steps of its first bucket
        let half = (2 * 10u64.pow(digits.into())).next_power_of_two().ilog2() - 1;
        Self { digits, half, counts: Vec::new() }
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

    /// Counts the first time of a bucket.
    #[cold]
    fn begin(&mut self, place: usize) {
        self.make_room(place);
        self.counts[place] = 1;
    }

    fn make_room(&mut self, place: usize) {
        let buckets = (place >> self.half) + 1;
        self.counts.resize(buckets << self.half, 0);
    }

    /// Counts so many times of a place, if an hour is not before it.
    fn add(&mut self, place: usize, count: u64) -> Option<()> {
        if place > self.place(HOUR) {
            return None;
        }
        if place >= self.counts.len() {
            self.make_room(place);
        }
        self.counts[place] = self.counts[place].checked_add(count)?;
        Some(())
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
    if histogram.is_empty() && (histogram.low(), histogram.high()) == (1, HOUR) {
        return nothing(histogram.sigfig()).to_owned();
    }
    compressed(histogram)
}

/// The text form of a [`histogram`] in which nothing was counted, as in most of a report.
fn nothing(digits: u8) -> &'static str {
    static TEXTS: [OnceLock<String>; 6] = [const { OnceLock::new() }; 6];
    TEXTS[usize::from(digits)].get_or_init(|| compressed(&histogram(digits)))
}

thread_local! {
    /// To make one takes longer than a short run.
    static COMPRESSOR: RefCell<Compress> = RefCell::new(Compress::new(Compression::default(), true));
}

/// What `V2DeflateSerializer` writes, which makes a compressor each time.
fn compressed(histogram: &Histogram<u64>) -> String {
    let mut plain = Vec::new();
    V2Serializer::new().serialize(histogram, &mut plain).expect("a vector takes all bytes");
    let mut bytes = Vec::with_capacity(plain.len() + 128);
    bytes.extend(COOKIE);
    bytes.extend([0; 4]);
    COMPRESSOR.with_borrow_mut(|compressor| deflate(compressor, &plain, &mut bytes));
    let length = u32::try_from(bytes.len() - 8).expect("a histogram has less than 4 GiB");
    bytes[4..8].copy_from_slice(&length.to_be_bytes());
    BASE64_STANDARD.encode(bytes)
}

/// What compressed histograms begin with (`V2_COMPRESSED_COOKIE` in `hdrhistogram`).
const COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

fn deflate(compressor: &mut Compress, plain: &[u8], bytes: &mut Vec<u8>) {
    compressor.reset();
    loop {
        let rest = &plain[compressor.total_in() as usize..];
        match compressor.compress_vec(rest, bytes, FlushCompress::Finish).expect("nothing is wrong with any bytes") {
            Status::StreamEnd => return,
            Status::Ok | Status::BufError => bytes.reserve(plain.len() + 128),
        }
    }
}

/// The histogram of a text form.
pub fn decoded(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|e| format!("not base64: {e}"))?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|e| format!("not a histogram: {e}"))
}

/// The histogram of the times of all text forms.
pub fn pooled(texts: &[impl AsRef<str>]) -> Result<Histogram<u64>, String> {
    let texts: Vec<_> = texts.iter().map(AsRef::as_ref).collect();
    if let Some(tally) = pool::tally(&texts) {
        return Ok(tally.histogram());
    }
    let (first, others) = texts.split_first().ok_or("no histograms")?;
    let mut all = decoded(first)?;
    for other in others {
        all.add(decoded(other)?).map_err(|e| e.to_string())?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::V2DeflateSerializer;
    use rand_core::RngCore;

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

    #[test]
    fn the_text_form_is_that_of_hdrhistogram() {
        let mut draws = crate::random::stream(1, 0, "times");
        for digits in 1..=5 {
            for times in [0, 1, 2, 100, 20_000] {
                let mut one = histogram(digits);
                (0..times).for_each(|n| one.saturating_record(draws.next_u64() >> (n % 64)));
                let mut bytes = Vec::new();
                V2DeflateSerializer::new().serialize(&one, &mut bytes).unwrap();
                let text = encoded(&one);
                assert_eq!(text, BASE64_STANDARD.encode(bytes), "{times} times, {digits} digits");
                assert_eq!(decoded(&text).unwrap(), one);
            }
        }
    }

    #[test]
    fn a_pool_has_what_all_have() {
        let mut draws = crate::random::stream(1, 0, "times");
        for digits in 1..=5 {
            let one = |times: u64, draws: &mut rand_xoshiro::Xoshiro256PlusPlus| {
                let mut one = histogram(digits);
                (0..times).for_each(|n| one.saturating_record((draws.next_u64() >> (n % 64)).min(HOUR)));
                one
            };
            let parts: Vec<_> = [0, 20_000, 1, 0, 100].iter().map(|&times| one(times, &mut draws)).collect();
            let mut all = histogram(digits);
            parts.iter().for_each(|part| all.add(part).unwrap());
            let texts: Vec<_> = parts.iter().map(encoded).collect();
            let pool = pooled(&texts).unwrap();
            assert!(pool::tally(&texts.iter().map(String::as_str).collect::<Vec<_>>()).is_some());
            assert_eq!((&pool, encoded(&pool), pool.max()), (&all, encoded(&all), all.max()), "{digits} digits");
        }
    }

    #[test]
    fn a_pool_refuses_what_is_no_histogram_and_takes_other_bounds() {
        let mut other = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
        other.record(5).unwrap();
        let other = encoded(&other);
        assert_eq!(pooled(&[&other, &other]).unwrap().count_at(5), 2);
        assert_eq!(pooled(&[&encoded(&histogram(3)), &other]).unwrap().high(), HOUR);
        let mut long = histogram(3);
        long.saturating_record(2 * HOUR); // counts in the last place there is, which no tally has
        assert_eq!(pooled(&[&encoded(&long), &encoded(&histogram(3))]).unwrap(), long);
        for wrong in ["", "HIST", "HISTFAAAAAR4nAAA", "?"] {
            assert!(pooled(&[wrong]).is_err(), "{wrong}");
            assert!(pooled(&[encoded(&histogram(3)).as_str(), wrong]).is_err(), "{wrong}");
        }
        assert!(pooled(&[""; 0]).is_err());
    }

    #[test]
    fn an_empty_histogram_with_other_bounds_keeps_them() {
        let other = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
        assert_eq!(decoded(&encoded(&other)).unwrap().high(), 1 << 40);
    }
}
