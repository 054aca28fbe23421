//! Which pages of a laid out file are in memory, and which of them were written and are not on the device.

use crate::block::BLOCK;
use std::cell::{Cell, RefCell};

/// The pages of one file.
#[derive(Debug)]
pub struct PageCache {
    present: RefCell<Vec<u64>>,
    /// Used since it was looked at for reclaim (`PG_referenced`).
    used: RefCell<Vec<u64>>,
    dirty: RefCell<Vec<u64>>,
    count: Cell<u64>,
    /// Where the flusher goes on (`writeback_index`).
    next: Cell<usize>,
    /// Its pass ends with the file, and the next one begins anew.
    ends: bool,
    /// Runs of pages that were reclaimed since the filesystem asked, first to end, if it asks.
    released: Option<RefCell<Vec<(u64, u64)>>>,
}

/// Dirty pages that follow each other: the first byte, and how many bytes.
pub type Run = (u64, u32);

impl PageCache {
    /// A file of `bytes`, all of them in memory or none.
    pub fn of(bytes: u64, cached: bool) -> Self {
        let words = (bytes.div_ceil(u64::from(BLOCK)) as usize).div_ceil(64);
        let present = RefCell::new(vec![if cached { u64::MAX } else { 0 }; words]);
        let none = || RefCell::new(vec![0; words]);
        Self {
            present,
            used: none(),
            dirty: none(),
            count: Cell::new(0),
            next: Cell::new(0),
            ends: false,
            released: None,
        }
    }

    /// The same, for a filesystem that does not turn back at the end of the file (`writeback_iter`).
    pub fn ending_passes(self) -> Self {
        Self { ends: true, ..self }
    }

    /// The same, for a filesystem that asks which pages were reclaimed.
    pub fn noting_releases(self) -> Self {
        Self { released: Some(RefCell::default()), ..self }
    }

    /// Whether all these bytes are in memory; if so, they are used.
    pub fn has(&self, offset: u64, bytes: u32) -> bool {
        let all = self.absent(offset, bytes) == 0;
        if all {
            let mut used = self.used.borrow_mut();
            pages(offset, bytes).for_each(|page| used[page / 64] |= bit(page));
        }
        all
    }

    /// How many pages of these bytes are not in memory.
    pub fn absent(&self, offset: u64, bytes: u32) -> u64 {
        let present = self.present.borrow();
        pages(offset, bytes).filter(|page| present[page / 64] & bit(*page) == 0).count() as u64
    }

    /// Whether a page is in memory.
    pub fn is_present(&self, page: u64) -> bool {
        self.present.borrow()[page as usize / 64] & bit(page as usize) != 0
    }

    /// These bytes are in memory from now on; returns how many pages were not.
    pub fn fill(&self, offset: u64, bytes: u32) -> u64 {
        let came = self.absent(offset, bytes);
        let mut present = self.present.borrow_mut();
        pages(offset, bytes).for_each(|page| present[page / 64] |= bit(page));
        came
    }

    /// Leaves only so many pages in memory, the first ones; how many there are.
    pub fn keep_first(&self, most: u64) -> u64 {
        let mut present = self.present.borrow_mut();
        for (word, pages) in present.iter_mut().zip((0_u64..).step_by(64)) {
            let kept = most.saturating_sub(pages).min(64) as u32;
            *word &= 1_u64.checked_shl(kept).map_or(u64::MAX, |end| end - 1);
        }
        present.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Takes a page out of memory, unless it is dirty or was used since the last time; whether it has gone.
    pub fn evict(&self, page: u64) -> bool {
        let (word, bit) = (page as usize / 64, bit(page as usize));
        let used = &mut self.used.borrow_mut()[word];
        let goes = self.is_present(page) && *used & bit == 0 && self.dirty.borrow()[word] & bit == 0;
        *used &= !bit;
        if goes {
            self.present.borrow_mut()[word] &= !bit;
            self.note_release(page);
        }
        goes
    }

    fn note_release(&self, page: u64) {
        let Some(released) = &self.released else { return };
        let mut released = released.borrow_mut();
        match released.last_mut() {
            Some((_, end)) if *end == page => *end += 1,
            _ => released.push((page, page + 1)),
        }
    }

    /// Runs of pages that were reclaimed since the last time.
    pub fn take_released(&self) -> Vec<(u64, u64)> {
        self.released.as_ref().map(RefCell::take).unwrap_or_default()
    }

    /// These bytes are on the device.
    pub fn clean(&self, offset: u64, bytes: u32) {
        let mut dirty = self.dirty.borrow_mut();
        for page in pages(offset, bytes) {
            let (word, bit) = (&mut dirty[page / 64], bit(page));
            self.count.set(self.count.get() - u64::from(*word & bit != 0));
            *word &= !bit;
        }
    }

    /// These bytes, which are in memory, have to be written back.
    pub fn write(&self, offset: u64, bytes: u32) {
        let mut dirty = self.dirty.borrow_mut();
        for page in pages(offset, bytes) {
            let (word, bit) = (&mut dirty[page / 64], 1 << (page % 64));
            self.count.set(self.count.get() + u64::from(*word & bit == 0));
            *word |= bit;
        }
    }

    /// Pages that have to be written back.
    pub fn dirty(&self) -> u64 {
        self.count.get()
    }

    /// The next dirty pages that follow each other, at most so many, which are the flusher's from now on.
    pub fn take_run(&self, most: u64) -> Option<Run> {
        let first = self.first_from(self.next.get());
        let first = if self.ends { first } else { first.or_else(|| self.first_from(0)) };
        let run = first.map(|first| self.take(first, most));
        if run.is_some() || self.ends {
            self.next.set(run.map_or(0, end_of));
        }
        run
    }

    /// The same, of the first ones, for who writes all of them.
    pub fn take_first_run(&self, most: u64) -> Option<Run> {
        let run = self.take(self.first_from(0)?, most);
        if !self.ends {
            self.next.set(end_of(run));
        }
        Some(run)
    }

    /// The first dirty page from one on.
    fn first_from(&self, page: usize) -> Option<usize> {
        let dirty = self.dirty.borrow();
        if self.count.get() == 0 {
            return None;
        }
        let rest = dirty.get(page / 64)? & (u64::MAX << (page % 64));
        let place = |word: usize, bits: u64| word * 64 + bits.trailing_zeros() as usize;
        if rest != 0 {
            return Some(place(page / 64, rest));
        }
        (page / 64 + 1..dirty.len()).find(|&word| dirty[word] != 0).map(|word| place(word, dirty[word]))
    }

    fn take(&self, first: usize, most: u64) -> Run {
        let most = most.min(u64::from(u32::MAX / BLOCK));
        let mut dirty = self.dirty.borrow_mut();
        let is_dirty =
            |dirty: &[u64], page: usize| dirty.get(page / 64).is_some_and(|word| word & (1 << (page % 64)) != 0);
        let mut end = first;
        while is_dirty(&dirty, end) && ((end - first) as u64) < most {
            dirty[end / 64] &= !(1 << (end % 64));
            end += 1;
        }
        self.count.set(self.count.get() - (end - first) as u64);
        (first as u64 * u64::from(BLOCK), (end - first) as u32 * BLOCK)
    }

    /// The first dirty pages of a range that follow each other, which are somebody's from now on.
    pub fn take_run_of(&self, offset: u64, bytes: u32) -> Option<Run> {
        let mut dirty = self.dirty.borrow_mut();
        let is_dirty = |page: &usize| dirty.get(page / 64).is_some_and(|word| word & bit(*page) != 0);
        let (first, count) = {
            let mut range = pages(offset, bytes).skip_while(|page| !is_dirty(page)).take_while(is_dirty);
            (range.next()?, 1 + range.count())
        };
        (first..first + count).for_each(|page| dirty[page / 64] &= !bit(page));
        self.count.set(self.count.get() - count as u64);
        Some((first as u64 * u64::from(BLOCK), count as u32 * BLOCK))
    }
}

/// The page behind a run.
fn end_of((offset, bytes): Run) -> usize {
    ((offset + u64::from(bytes)) / u64::from(BLOCK)) as usize
}

fn bit(page: usize) -> u64 {
    1 << (page % 64)
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
    fn what_was_written_is_dirty_once_until_it_is_taken() {
        let pages = PageCache::of(1 << 20, false);
        pages.fill(0, 12288);
        pages.write(0, 8192);
        pages.write(4096, 8192);
        assert_eq!(pages.dirty(), 3);
        assert_eq!((pages.take_run(320), pages.take_run(320)), (Some((0, 12288)), None));
        assert!(pages.has(8192, 1));
    }

    #[test]
    fn a_page_goes_that_is_clean_and_was_not_used_since_it_was_looked_at() {
        let pages = PageCache::of(1 << 20, false);
        assert_eq!((pages.fill(0, 12288), pages.fill(0, 16384)), (3, 1));
        pages.write(4096, 1);
        assert!(pages.has(8192, 4096));
        assert_eq!([0, 1, 2, 3].map(|page| pages.evict(page)), [true, false, false, true]);
        assert_eq!([0, 1, 2].map(|page| pages.evict(page)), [false, false, true]);
        assert_eq!(pages.absent(0, 16384), 3);
    }

    #[test]
    fn of_a_file_that_does_not_fit_the_first_pages_are_there() {
        let pages = PageCache::of(1 << 20, true);
        assert_eq!(pages.keep_first(70), 70);
        assert!(pages.is_present(69) && !pages.is_present(70));
        assert_eq!(pages.keep_first(1000), 70);
    }

    #[test]
    fn of_a_range_its_pages_are_taken() {
        let pages = PageCache::of(1 << 20, false);
        pages.write(0, 12288);
        pages.write(16384, 4096);
        assert_eq!(pages.take_run_of(5000, 100), Some((4096, 4096)));
        assert_eq!(pages.take_run_of(5000, 100), None);
        assert_eq!(pages.take_run_of(4096, 16384), Some((8192, 4096)));
        assert_eq!(pages.dirty(), 2);
    }

    #[test]
    fn a_pass_may_end_with_the_file() {
        let pages = PageCache::of(1 << 20, false).ending_passes();
        pages.write(40960, 4096);
        assert_eq!(pages.take_run(2), Some((40960, 4096)));
        pages.write(0, 4096);
        assert_eq!([2, 2, 2].map(|most| pages.take_run(most)), [None, Some((0, 4096)), None]);
    }

    #[test]
    fn who_writes_all_begins_with_the_first() {
        for (ends, goes_on) in [(false, 90112), (true, 81920)] {
            let pages = PageCache::of(1 << 20, false);
            let pages = if ends { pages.ending_passes() } else { pages };
            pages.write(40960, 40960);
            assert_eq!(pages.take_run(10), Some((40960, 40960)));
            pages.write(0, 4096);
            pages.write(86016, 4096);
            assert_eq!([1, 1, 1].map(|most| pages.take_first_run(most)), [Some((0, 4096)), Some((86016, 4096)), None]);
            pages.write(81920, 4096);
            pages.write(90112, 4096);
            assert_eq!(pages.take_run(1), Some((goes_on, 4096)), "where it goes on is not the same");
        }
    }

    #[test]
    fn writing_back_goes_round_in_runs() {
        let pages = PageCache::of(1 << 20, false);
        pages.write(40960, 12288);
        pages.write((1 << 20) - 4096, 4096);
        assert_eq!(pages.take_run(2), Some((40960, 8192)));
        pages.write(0, 4096);
        let rest: Vec<_> = std::iter::from_fn(|| pages.take_run(320)).collect();
        assert_eq!(rest, [(49152, 4096), ((1 << 20) - 4096, 4096), (0, 4096)]);
        assert_eq!(pages.dirty(), 0);
    }
}
