//! What of each file was written and is not yet on the device, in bytes: what got new blocks, and what was written over.

use std::cell::RefCell;

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
#[derive(Debug, Default)]
pub struct DirtyFiles {
    /// With the bytes that have blocks.
    files: RefCell<Vec<(Dirty, u32)>>,
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

    /// Whether blocks are still to be allocated for a part of it.
    pub fn has_new(&self, slot: u32) -> bool {
        self.files.borrow().get(slot as usize).is_some_and(|(dirty, _)| dirty.new > 0)
    }

    /// What is to be written back, which is somebody's from now on.
    pub fn take(&self, slot: u32) -> Dirty {
        let mut taken = Dirty::default();
        self.change(slot, |dirty, has_blocks| {
            taken = std::mem::take(dirty);
            *has_blocks = has_blocks.saturating_add(taken.new);
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
    use super::{Dirty, DirtyFiles};

    #[test]
    fn what_has_no_blocks_cannot_be_written_over() {
        let files = DirtyFiles::default();
        assert!(!files.has_new(3));
        files.append(3, 8192);
        assert!(files.has_new(3));
        files.overwrite(3, 4096); // pages that are dirty anyway
        assert_eq!(files.take(3), Dirty { new: 8192, over: 0 });
        files.overwrite(3, 6000);
        files.overwrite(3, 6000);
        assert_eq!(files.take(3), Dirty { new: 0, over: 8192 });
        files.append(3, 1);
        files.forget(3);
        files.overwrite(3, 1);
        assert_eq!(files.take(3), Dirty::default());
    }
}
