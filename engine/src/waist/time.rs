//! Simulated time: whole picoseconds in a `u64` (213 days), so that a sub-nanosecond cache hit is not rounded away.

/// Simulated time or a span of it, in picoseconds.
pub type Time = u64;

/// One nanosecond.
pub const NS: Time = 1_000;
/// One microsecond.
pub const US: Time = 1_000 * NS;

/// A number of nanoseconds from a cost profile as [`Time`]; negative and not-a-number become zero.
pub fn from_ns(ns: f64) -> Time {
    (ns * NS as f64).round().max(0.0) as Time
}

/// `factor` times `time`, which is below 2^63 ps: the conversion of a signed number is one instruction.
#[inline]
pub fn scaled(time: Time, factor: f64) -> Time {
    (time as i64 as f64 * factor) as i64 as Time
}

/// `time`, below 2^63 ps as well, over `divisor`.
#[inline]
pub fn divided(time: Time, divisor: f64) -> Time {
    (time as i64 as f64 / divisor) as i64 as Time
}

/// [`Time`] as nanoseconds, for reports.
pub fn to_ns(t: Time) -> f64 {
    t as f64 / NS as f64
}
