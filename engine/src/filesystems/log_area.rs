//! Where a log lies on its device: one write lies behind the other, round and round.

use std::cell::Cell;

/// The blocks of a log, in bytes from the beginning of the device.
#[derive(Clone, Debug)]
pub struct LogArea {
    /// Where it begins (`sb_logstart` of XFS).
    pub start: u64,
    /// How large it is.
    pub bytes: u64,
    next: Cell<u64>,
}

impl LogArea {
    /// The first write goes to its beginning.
    pub fn new(start: u64, bytes: u64) -> Self {
        Self { start, bytes, next: Cell::new(0) }
    }

    /// The place of the next write.
    pub fn place(&self, bytes: u64) -> u64 {
        let next = if self.next.get() + bytes > self.bytes { 0 } else { self.next.get() };
        self.next.set(next + bytes);
        self.start + next
    }
}
