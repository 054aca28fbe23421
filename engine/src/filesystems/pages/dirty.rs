//! What of each file was written and is not yet on the device, in bytes: what got new blocks, and what was written over.

use crate::devices::Request;
use crate::filesystems::by_slot::BySlot;
use crate::filesystems::page_cache::{PageCache, Run};
use crate::filesystems::BLOCK;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Part of a file that is written in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How much it is.
    pub bytes: u32,
    /// Its first byte, if that is known.
    pub at: Option<u64>,
    /// Blocks are still to be allocated for it.
    pub is_new: bool,
    /// How many bytes of it come to places where nothing was written before.
    pub first: u32,
    /// The byte of the device where it lies, if that is known.
    pub place: Option<u64>,
}

impl Piece {
    /// Pages that it is in.
    pub fn pages(&self) -> u64 {
        u64::from(self.bytes.div_ceil(BLOCK))
    }

    /// The write of its blocks. Files that were laid out lie over each other.
    pub fn request(&self) -> Request {
        let bytes = self.bytes.next_multiple_of(BLOCK);
        Request::Write { bytes, at: self.place.or(self.at), first: self.first }
    }
}

/// What of a file is to be written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Some of it, for the flusher: at most so many pages, from where it was last.
    Any(u64),
    /// All of it, from the beginning.
    All,
    /// The pages of a range: its first byte, and how many.
    Range(u64, u32),
}

impl Wanted {
    /// Whether nothing is left of what is wanted after this piece. A file that was not laid out has one for a range.
    pub fn is_all_of(self, piece: &Piece) -> bool {
        matches!(self, Self::Range(..)) && piece.at.is_none()
    }
}

/// Pages of a file that were written back though some before them are still to get blocks.
struct Ahead {
    /// Where the bytes begin that had no blocks.
    from: u64,
    pages: BTreeSet<u64>,
}

/// Of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Behind what is on the device: blocks are still to be allocated.
    pub new: u32,
    /// Over blocks that are there.
    pub over: u32,
}

impl Dirty {
    /// Pages of both.
    pub fn pages(&self) -> u64 {
        u64::from(self.new.div_ceil(BLOCK) + self.over.div_ceil(BLOCK))
    }
}

/// Of all files, by slot.
#[derive(Default)]
pub struct DirtyFiles {
    /// With the bytes that have blocks.
    files: RefCell<Vec<(Dirty, u32)>>,
    /// By slot, of files whose pages were written back out of order.
    ahead: RefCell<BTreeMap<u32, Ahead>>,
    /// The pages of those that were laid out.
    laid_out: BySlot<Rc<PageCache>>,
    /// Bytes of all files that have blocks, and the most so far: blocks that were given back are used again before others.
    placed: Cell<u64>,
    most_placed: Cell<u64>,
    /// Blocks of all files: all that they need, and those that are still to be allocated.
    needed: Cell<Needed>,
}

/// Blocks that files need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// All of them.
    pub all: u64,
    /// Still to be allocated.
    pub delayed: u64,
}

impl Needed {
    fn of(dirty: &Dirty, has_blocks: u32) -> Self {
        let page = u64::from(BLOCK);
        let all = (u64::from(dirty.new) + u64::from(has_blocks)).div_ceil(page);
        Self { all, delayed: all - u64::from(has_blocks).div_ceil(page) }
    }
}

impl DirtyFiles {
    /// Blocks that all files need (of those that were laid out, none).
    pub fn needed(&self) -> Needed {
        self.needed.get()
    }

    /// So many bytes at the end of a file have got blocks, and are still to be written.
    pub fn allocated(&self, slot: u32, bytes: u32) {
        self.change(slot, |dirty, has_blocks| {
            let bytes = bytes.min(dirty.new);
            (dirty.new, dirty.over, *has_blocks) = (dirty.new - bytes, dirty.over + bytes, *has_blocks + bytes);
        });
    }

    /// So many bytes at the end of a file.
    pub fn append(&self, slot: u32, bytes: u32) {
        let last = self.size(slot) / u64::from(BLOCK);
        if let Some(ahead) = self.ahead.borrow_mut().get_mut(&slot) {
            ahead.pages.remove(&last);
        }
        self.change(slot, |dirty, _| dirty.new = dirty.new.saturating_add(bytes));
    }

    /// So many bytes over what is there.
    pub fn overwrite(&self, slot: u32, bytes: u32) {
        self.change(slot, |dirty, has_blocks| dirty.over = dirty.over.saturating_add(bytes).min(*has_blocks));
    }

    /// Bytes of a file, of which those on the device end with a page.
    pub fn size(&self, slot: u32) -> u64 {
        let files = self.files.borrow();
        files.get(slot as usize).map_or(0, |(dirty, has_blocks)| u64::from(dirty.new) + u64::from(*has_blocks))
    }

    /// Bytes of a file that have blocks.
    pub fn with_blocks(&self, slot: u32) -> u64 {
        self.files.borrow().get(slot as usize).map_or(0, |(_, has_blocks)| u64::from(*has_blocks))
    }

    /// A file ends so many bytes before its end: what has no blocks goes first.
    pub fn shorten(&self, slot: u32, bytes: u32) {
        self.ahead.borrow_mut().remove(&slot);
        self.change(slot, |dirty, has_blocks| {
            let rest = bytes.saturating_sub(dirty.new);
            dirty.new = dirty.new.saturating_sub(bytes);
            *has_blocks = has_blocks.saturating_sub(rest);
            dirty.over = dirty.over.min(*has_blocks);
        });
    }

    /// Whether blocks are still to be allocated for a part of it.
    pub fn has_new(&self, slot: u32) -> bool {
        self.files.borrow().get(slot as usize).is_some_and(|(dirty, _)| dirty.new > 0)
    }

    /// A file was laid out, and these are its pages.
    pub fn lay_out(&self, slot: u32, pages: Rc<PageCache>) {
        self.laid_out.put(slot, pages);
    }

    /// Pages of a file that are to be written back.
    pub fn pages(&self, slot: u32) -> u64 {
        let laid_out = self.laid_out.get(slot).map_or(0, |pages| pages.dirty());
        laid_out + self.files.borrow().get(slot as usize).map_or(0, |(dirty, _)| dirty.pages())
    }

    /// Files that have some.
    pub fn slots(&self) -> Vec<u32> {
        (0..self.files.borrow().len() as u32).filter(|&slot| self.pages(slot) > 0).collect()
    }

    /// The next piece of a file that is to be written back, which is somebody's from now on.
    pub fn take_piece(&self, slot: u32, wanted: Wanted) -> Option<Piece> {
        match wanted {
            Wanted::Any(most) => self.take_any(slot, most, |pages| pages.take_run(most)),
            Wanted::All => self.take_any(slot, u64::MAX, |pages| pages.take_first_run(u64::MAX)),
            Wanted::Range(offset, bytes) => self.take_of_range(slot, offset, bytes),
        }
    }

    /// Pages of a range that have no blocks, else those that were written over. Who writes over pages without blocks is counted twice.
    fn take_of_range(&self, slot: u32, offset: u64, bytes: u32) -> Option<Piece> {
        if let Some((offset, bytes)) = self.laid_out.get(slot).and_then(|pages| pages.take_run_of(offset, bytes)) {
            return Some(Piece { bytes, at: Some(offset), is_new: false, first: 0, place: None });
        }
        let new = self.take_new(slot, offset, bytes);
        let mut over = 0;
        self.change(slot, |dirty, _| {
            over = dirty.over.min(bytes);
            dirty.over -= over;
        });
        let taken = if new > 0 { new } else { over };
        (taken > 0).then_some(Piece {
            bytes: taken,
            at: None,
            is_new: new > 0,
            first: self.take_unwritten(new),
            place: None,
        })
    }

    /// Gives blocks to the pages of a range that have none; how many bytes these are.
    fn take_new(&self, slot: u32, offset: u64, bytes: u32) -> u32 {
        let (end, page) = (self.size(slot), u64::from(BLOCK));
        let mut ahead = self.ahead.borrow_mut();
        let from = ahead.get(&slot).map_or(self.with_blocks(slot), |ahead| ahead.from);
        let first = offset.max(from) / page; // of a whole file only the pages behind `from` are gone through
        let behind = (offset + u64::from(bytes)).min(end).div_ceil(page).max(first);
        let mut written = ahead.get(&slot).into_iter().flat_map(|ahead| ahead.pages.range(first..behind)).peekable();
        let pages: Vec<u64> = (first..behind).filter(|number| written.next_if_eq(&number).is_none()).collect();
        let new: u64 = pages.iter().map(|number| ((number + 1) * page).min(end) - (number * page).max(from)).sum();
        let mut taken = 0;
        self.change(slot, |dirty, has_blocks| {
            taken = dirty.new.min(new as u32);
            dirty.new -= taken;
            *has_blocks += taken;
        });
        if !self.has_new(slot) {
            ahead.remove(&slot);
        } else if ahead.contains_key(&slot) || pages.first().is_some_and(|first| first * page > from) {
            ahead.entry(slot).or_insert(Ahead { from, pages: BTreeSet::new() }).pages.extend(pages);
        }
        taken
    }

    /// At most so many pages: first what of a laid out file is dirty.
    fn take_any(&self, slot: u32, most: u64, take_run: impl Fn(&PageCache) -> Option<Run>) -> Option<Piece> {
        if let Some((offset, bytes)) = self.laid_out.get(slot).and_then(|pages| take_run(&pages)) {
            return Some(Piece { bytes, at: Some(offset), is_new: false, first: 0, place: None });
        }
        if self.has_over(slot) {
            let over = self.take_of(slot, most, |dirty| &mut dirty.over);
            return Some(Piece { bytes: over, at: None, is_new: false, first: 0, place: None });
        }
        self.has_new(slot).then(|| {
            let new = self.take_of(slot, most, |dirty| &mut dirty.new);
            if !self.has_new(slot) {
                self.ahead.borrow_mut().remove(&slot);
            }
            self.change(slot, |_, has_blocks| *has_blocks = has_blocks.saturating_add(new));
            Piece { bytes: new, at: None, is_new: true, first: self.take_unwritten(new), place: None }
        })
    }

    fn has_over(&self, slot: u32) -> bool {
        self.files.borrow().get(slot as usize).is_some_and(|(dirty, _)| dirty.over > 0)
    }

    fn take_of(&self, slot: u32, most: u64, part: impl Fn(&mut Dirty) -> &mut u32) -> u32 {
        let most = u32::try_from(most.saturating_mul(u64::from(BLOCK))).unwrap_or(u32::MAX);
        let mut taken = 0;
        self.change(slot, |dirty, _| {
            taken = (*part(dirty)).min(most);
            *part(dirty) -= taken;
        });
        taken
    }

    /// The file is gone.
    pub fn forget(&self, slot: u32) {
        self.ahead.borrow_mut().remove(&slot);
        self.change(slot, |dirty, has_blocks| (*dirty, *has_blocks) = Default::default());
    }

    /// So many bytes got blocks: of how many nothing was written there before.
    fn take_unwritten(&self, bytes: u32) -> u32 {
        let (placed, most) = (self.placed.get(), self.most_placed.get());
        self.most_placed.set(most.max(placed));
        placed.saturating_sub(most).min(u64::from(bytes)) as u32
    }

    fn change(&self, slot: u32, change: impl FnOnce(&mut Dirty, &mut u32)) {
        let (mut files, slot) = (self.files.borrow_mut(), slot as usize);
        if files.len() <= slot {
            files.resize(slot + 1, Default::default());
        }
        let (dirty, has_blocks) = &mut files[slot];
        let (before, needed) = (u64::from(*has_blocks), Needed::of(dirty, *has_blocks));
        change(dirty, has_blocks);
        let (now, all) = (Needed::of(dirty, *has_blocks), self.needed.get());
        self.needed
            .set(Needed { all: all.all + now.all - needed.all, delayed: all.delayed + now.delayed - needed.delayed });
        self.placed.set(self.placed.get() - before + u64::from(*has_blocks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: u32, at: Option<u64>, is_new: bool) -> Option<Piece> {
        Some(Piece { bytes, at, is_new, first: if is_new { bytes } else { 0 }, place: None })
    }

    #[test]
    fn what_has_no_blocks_cannot_be_written_over() {
        let files = DirtyFiles::default();
        assert!(!files.has_new(3));
        files.append(3, 8192);
        assert!(files.has_new(3));
        files.overwrite(3, 4096); // pages that are dirty anyway
        assert_eq!(files.take_piece(3, Wanted::All), piece(8192, None, true));
        files.overwrite(3, 6000);
        files.overwrite(3, 6000);
        assert_eq!(files.take_piece(3, Wanted::All), piece(8192, None, false));
        files.append(3, 1);
        files.forget(3);
        files.overwrite(3, 1);
        assert_eq!((files.pages(3), files.take_piece(3, Wanted::All)), (0, None));
    }

    #[test]
    fn pieces_are_no_larger_than_asked_for_and_what_has_blocks_goes_first() {
        let (files, pages) = (DirtyFiles::default(), Rc::new(PageCache::of(1 << 20, true)));
        files.append(3, 3 * 4096 + 1);
        assert_eq!((files.pages(3), files.take_piece(3, Wanted::Any(2))), (4, piece(8192, None, true)));
        files.overwrite(3, 4096);
        files.lay_out(3, pages.clone());
        pages.write(40960, 4096);
        assert_eq!(files.take_piece(3, Wanted::Any(2)), piece(4096, Some(40960), false));
        assert_eq!(files.take_piece(3, Wanted::Any(2)), piece(4096, None, false));
        assert_eq!(files.take_piece(3, Wanted::Any(2)), piece(4097, None, true));
    }

    #[test]
    fn of_a_range_each_page_is_new_once() {
        let files = DirtyFiles::default();
        let range = |at: u64| files.take_piece(3, Wanted::Range(at, 1024));
        (0..16).for_each(|_| files.append(3, 1024));
        files.overwrite(3, 1024);
        assert_eq!(range(9000), piece(4096, None, true));
        assert_eq!(range(8192), None);
        files.overwrite(3, 1024);
        assert_eq!(range(9000), piece(1024, None, false));
        assert_eq!((range(0), range(0), files.size(3)), (piece(4096, None, true), None, 16384));
        assert_eq!(files.take_piece(3, Wanted::All), piece(8192, None, true));
        assert_eq!((range(4096), files.pages(3)), (None, 0));
    }

    #[test]
    fn blocks_that_were_given_back_are_written_again_before_others() {
        let files = DirtyFiles::default();
        let first = |slot: u32, bytes: u32| {
            files.append(slot, bytes);
            files.take_piece(slot, Wanted::All).map(|piece| piece.first)
        };
        assert_eq!((first(3, 8192), first(4, 4096)), (Some(8192), Some(4096)));
        files.forget(3);
        assert_eq!((first(5, 4096), first(6, 12288)), (Some(0), Some(8192)));
    }

    #[test]
    fn blocks_are_counted_by_file_and_delayed_until_they_are_allocated() {
        let files = DirtyFiles::default();
        files.append(3, 1);
        files.append(4, 4097);
        assert_eq!(files.needed(), Needed { all: 3, delayed: 3 });
        files.allocated(4, 4097);
        assert_eq!((files.needed(), files.has_new(4)), (Needed { all: 3, delayed: 1 }, false));
        assert_eq!(files.take_piece(4, Wanted::All), piece(4097, None, false));
        files.take_piece(3, Wanted::All);
        files.forget(4);
        assert_eq!(files.needed(), Needed { all: 1, delayed: 0 });
    }

    #[test]
    fn an_append_of_a_range_is_what_was_appended() {
        let files = DirtyFiles::default();
        for at in (0..8).map(|nth| nth * 1024) {
            files.append(3, 1024);
            assert_eq!(files.take_piece(3, Wanted::Range(at, 1024)), piece(1024, None, true));
        }
    }
}
