//! Files that are not in memory, as after `drop_caches` or a mount: their inodes and dentries are made anew by the first call that comes by
//! their name, and the blocks that have their names and inodes are read by who first needs one of them.

use crate::filesystems::by_slot::BySlot;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The files, by slot, and the blocks.
#[derive(Default)]
pub struct Cold {
    files: BySlot<()>,
    /// Blocks that were read since.
    read: RefCell<BTreeSet<u64>>,
}

impl Cold {
    /// A file leaves memory.
    pub fn leaves(&self, slot: u32) {
        self.files.put(slot, ());
    }

    /// Whether a file is not in memory.
    pub fn has(&self, slot: u32) -> bool {
        self.files.get(slot).is_some()
    }

    /// A file comes into memory.
    pub fn comes(&self, slot: u32) {
        self.files.forget(slot);
    }

    /// Whether a block has to be read by who needs it now, by a number that a filesystem gives it.
    pub fn reads(&self, block: u64) -> bool {
        self.read.borrow_mut().insert(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_once() {
        let cold = Cold::default();
        assert_eq!([7, 8, 7].map(|block| cold.reads(block)), [true, true, false]);
    }

    #[test]
    fn who_comes_is_in_memory() {
        let cold = Cold::default();
        cold.leaves(3);
        assert!(cold.has(3) && !cold.has(2));
        cold.comes(3);
        assert!(!cold.has(3));
    }
}
