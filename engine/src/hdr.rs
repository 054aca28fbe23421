//! Histograms of nanoseconds: how they are made, and their standard text form (HdrHistogram's V2 with DEFLATE, in base64),
//! in which runs are merged and other tools read them.

use base64::prelude::{Engine, BASE64_STANDARD};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::Histogram;

/// A histogram of nanoseconds up to an hour that never allocates when it records.
pub fn histogram(digits: u8) -> Histogram<u64> {
    const HOUR: u64 = 3_600_000_000_000;
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
