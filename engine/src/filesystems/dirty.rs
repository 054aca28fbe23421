//! What of each file was written and is not yet on the device, in bytes: what got new blocks, and what was written over.

use super::by_slot::BySlot;
use super::page_cache::PageCache;
use std::cell::RefCell;
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
}

impl Piece {
    /// Pages that it is in.
    pub fn pages(&self) -> u64 {
        u64::from(self.bytes.div_ceil(super::BLOCK))
    }
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
        u64::from(self.new.div_ceil(super::BLOCK) + self.over.div_ceil(super::BLOCK))
    }
}

/// Of all files, by slot.
#[derive(Default)]
pub struct DirtyFiles {
    /// With the bytes that have blocks.
    files: RefCell<Vec<(Dirty, u32)>>,
    /// The pages of those that were laid out.
    laid_out: BySlot<Rc<PageCache>>,
}

impl DirtyFiles {
    /// So many bytes at the end of a file.
    pub fn append(&self, slot: u32, bytes: u32) {
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

    /// The next piece of a file that is to be written back, at most so many pages, which is somebody's from now on: first what of a
    /// laid out file is dirty.
    pub fn take_piece(&self, slot: u32, most: u64) -> Option<Piece> {
        if let Some((offset, bytes)) = self.laid_out.get(slot).and_then(|pages| pages.take_run(most)) {
            return Some(Piece { bytes, at: Some(offset), is_new: false });
        }
        if self.has_over(slot) {
            let over = self.take_of(slot, most, |dirty| &mut dirty.over);
            return Some(Piece { bytes: over, at: None, is_new: false });
        }
        self.has_new(slot).then(|| {
            let new = self.take_of(slot, most, |dirty| &mut dirty.new);
            self.change(slot, |_, has_blocks| *has_blocks = has_blocks.saturating_add(new));
            Piece { bytes: new, at: None, is_new: true }
        })
    }

    fn has_over(&self, slot: u32) -> bool {
        self.files.borrow().get(slot as usize).is_some_and(|(dirty, _)| dirty.over > 0)
    }

    fn take_of(&self, slot: u32, most: u64, part: impl Fn(&mut Dirty) -> &mut u32) -> u32 {
        let most = u32::try_from(most.saturating_mul(u64::from(super::BLOCK))).unwrap_or(u32::MAX);
        let mut taken = 0;
        self.change(slot, |dirty, _| {
            taken = (*part(dirty)).min(most);
            *part(dirty) -= taken;
        });
        taken
    }

    /// The file is gone.
    pub fn forget(&self, slot: u32) {
        self.change(slot, |dirty, has_blocks| (*dirty, *has_blocks) = Default::default());
    }

    fn change(&self, slot: u32, change: impl FnOnce(&mut Dirty, &mut u32)) {
        let (mut files, slot) = (self.files.borrow_mut(), slot as usize);
        if files.len() <= slot {
            files.resize(slot + 1, Default::default());
        }
        let (dirty, has_blocks) = &mut files[slot];
        change(dirty, has_blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: u32, at: Option<u64>, is_new: bool) -> Option<Piece> {
        Some(Piece { bytes, at, is_new })
    }

    #[test]
    fn what_has_no_blocks_cannot_be_written_over() {
        let files = DirtyFiles::default();
        assert!(!files.has_new(3));
        files.append(3, 8192);
        assert!(files.has_new(3));
        files.overwrite(3, 4096); // pages that are dirty anyway
        assert_eq!(files.take_piece(3, u64::MAX), piece(8192, None, true));
        files.overwrite(3, 6000);
        files.overwrite(3, 6000);
        assert_eq!(files.take_piece(3, u64::MAX), piece(8192, None, false));
        files.append(3, 1);
        files.forget(3);
        files.overwrite(3, 1);
        assert_eq!((files.pages(3), files.take_piece(3, u64::MAX)), (0, None));
    }

    #[test]
    fn pieces_are_no_larger_than_asked_for_and_what_has_blocks_goes_first() {
        let (files, pages) = (DirtyFiles::default(), Rc::new(PageCache::of(1 << 20, true)));
        files.append(3, 3 * 4096 + 1);
        assert_eq!((files.pages(3), files.take_piece(3, 2)), (4, piece(8192, None, true)));
        files.overwrite(3, 4096);
        files.lay_out(3, pages.clone());
        pages.write(40960, 4096);
        assert_eq!(files.take_piece(3, 2), piece(4096, Some(40960), false));
        assert_eq!(files.take_piece(3, 2), piece(4096, None, false));
        assert_eq!(files.take_piece(3, 2), piece(4097, None, true));
    }
}
