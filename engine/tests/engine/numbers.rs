//! A number of a run is here what it is in Python, to the last bit: the two machines divide by it.

use super::common::spec;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

#[test]
fn a_speed_arrives_to_the_last_bit() {
    let mut drawn = Xoshiro256PlusPlus::seed_from_u64(1);
    for _ in 0..1000 {
        let speed = 0.3 + (drawn.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let read = spec(1, &json!({"machine": {"costs": {"speed": speed}}})).machine.costs.speed;
        assert_eq!(read.to_bits(), speed.to_bits(), "{speed} was read as {read}");
    }
}
