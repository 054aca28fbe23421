//! Which pages of a file are in memory, and how much of it was written and not synced. Nothing is evicted.

use super::BLOCK;
use std::cell::{Cell, RefCell};

/// The pages of one file.
pub struct PageCache {
    present: RefCell<Vec<u64>>,
    dirty: Cell<u32>,
}

impl PageCache {
    /// A file of `bytes`, all of them in memory or none.
    pub fn of(bytes: u64, cached: bool) -> Self {
        let (pages, word) = (bytes.div_ceil(u64::from(BLOCK)) as usize, if cached { u64::MAX } else { 0 });
        Self { present: RefCell::new(vec![word; pages.div_ceil(64)]), dirty: Cell::new(0) }
    }

    /// Whether all these bytes are in memory.
    pub fn has(&self, offset: u64, bytes: u32) -> bool {
        let present = self.present.borrow();
        pages(offset, bytes).all(|page| present[page / 64] & (1 << (page % 64)) != 0)
    }

    /// These bytes are in memory from now on.
    pub fn fill(&self, offset: u64, bytes: u32) {
        let mut present = self.present.borrow_mut();
        pages(offset, bytes).for_each(|page| present[page / 64] |= 1 << (page % 64));
    }

    /// The same, and they have to be written back.
    pub fn write(&self, offset: u64, bytes: u32) {
        self.fill(offset, bytes);
        self.dirty.set(self.dirty.get().saturating_add(bytes));
    }

    /// Bytes to be written back, which are somebody's from now on.
    pub fn take_dirty(&self) -> u32 {
        self.dirty.take()
    }
}

fn pages(offset: u64, bytes: u32) -> impl Iterator<Item = usize> {
    let (first, end) = (offset / u64::from(BLOCK), (offset + u64::from(bytes)).div_ceil(u64::from(BLOCK)));
    (first as usize)..(end as usize)
}

#[cfg(test)]
mod tests {
    use super::PageCache;

    #[test]
    fn bytes_are_in_memory_when_all_their_pages_are() {
        let pages = PageCache::of(1 << 20, false);
        pages.fill(8192, 4096);
        assert!(pages.has(8192, 4096) && pages.has(9000, 10));
        assert!(!pages.has(8192, 4097) && !pages.has(4096, 8192));
    }

    #[test]
    fn what_was_written_is_dirty_until_it_is_taken() {
        let pages = PageCache::of(1 << 20, false);
        pages.write(0, 8192);
        pages.write((1 << 20) - 4096, 4096);
        assert_eq!((pages.take_dirty(), pages.take_dirty()), (12288, 0));
        assert!(pages.has((1 << 20) - 1, 1));
    }
}
