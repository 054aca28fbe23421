//! A hash for maps whose keys are small numbers of our own, at which nobody aims: FxHash, of Firefox and rustc. The usual one takes ten
//! times as long, to be safe from keys that are chosen to collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map. Never go through all of one: the order says nothing.
pub type FxMap<K, V> = HashMap<K, V, BuildHasherDefault<Fx>>;

/// The hash of what was written so far.
#[derive(Default)]
pub struct Fx(u64);

impl Fx {
    #[inline(always)]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Fx {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.add(byte.into()));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.add(number as u64); // which of the kinds of an enum
    }

    /// The table looks at the highest bits, and at the lowest.
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    #[derive(Hash)]
    enum Block {
        Leaf(u32, u32),
        Table(u32),
    }

    #[test]
    fn numbers_that_follow_each_other_fall_into_different_places() {
        let hash = |block: &dyn Fn(u32) -> Block, number| BuildHasherDefault::<Fx>::default().hash_one(block(number));
        for of in
            [&Block::Table as &dyn Fn(u32) -> Block, &|n| Block::Leaf(n / 64, n % 64), &|n| Block::Leaf(7, n * 4096)]
        {
            let places: HashSet<u64> = (0..4096).map(|number| hash(of, number) & 0xffff).collect();
            assert!(places.len() > 3700, "{}", places.len());
        }
    }
}
