//! Random numbers for tests of structures: Marsaglia's xorshift.

/// The state, which must not be 0.
pub struct Draw(pub u64);

impl Draw {
    /// The next number, from 0 to `n - 1`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}
