//! Blocks that files were given for data, and where they lie: those given last in a group lie behind those before (the nearest free ones,
//! `XFS_ALLOCTYPE_NEAR_BNO`). They are not taken off the free space, and those given back are not given again.

use crate::filesystems::by_slot::BySlot;
use crate::filesystems::BLOCK;
use std::cell::RefCell;

/// What a file was given.
#[derive(Clone, Copy, Debug)]
struct Given {
    /// How many blocks.
    blocks: u32,
    /// The first one in the file of those that lie together at its end.
    from: u32,
    /// The byte of the device where that one is.
    at: u64,
}

/// Of all files, by slot.
pub(super) struct DataBlocks {
    files: BySlot<Given>,
    group_bytes: u64,
    /// Where the next blocks of each group lie in it.
    next: RefCell<Vec<u64>>,
}

impl DataBlocks {
    /// Nothing was given from these groups.
    pub fn new(groups: u32, group_blocks: u32) -> Self {
        let (files, next) = (BySlot::default(), RefCell::new(vec![0; groups as usize]));
        Self { files, group_bytes: u64::from(group_blocks) * u64::from(BLOCK), next }
    }

    /// For how many bytes a file has blocks.
    pub fn bytes(&self, slot: u32) -> u64 {
        self.files.get(slot).map_or(0, |given| u64::from(given.blocks) * u64::from(BLOCK))
    }

    /// The group of the last ones.
    pub fn group(&self, slot: u32) -> Option<u32> {
        self.files.get(slot).map(|given| (given.at / self.group_bytes) as u32)
    }

    /// A file gets blocks of a group until it has them for so many bytes.
    pub fn give(&self, slot: u32, group: u32, bytes: u64) {
        let blocks = bytes.div_ceil(u64::from(BLOCK)) as u32;
        let before = self.files.get(slot);
        let has = before.map_or(0, |given| given.blocks);
        let more = u64::from(blocks.saturating_sub(has)) * u64::from(BLOCK);
        let next = &mut self.next.borrow_mut()[group as usize];
        if *next + more > self.group_bytes {
            *next = 0; // the group is full: what was there is taken to be gone
        }
        let at = u64::from(group) * self.group_bytes + *next;
        *next += more;
        let end = |given: &Given| given.at + u64::from(given.blocks - given.from) * u64::from(BLOCK);
        let goes_on = before.filter(|given| end(given) == at);
        self.files.put(slot, goes_on.map_or(Given { blocks, from: has, at }, |given| Given { blocks, ..given }));
    }

    /// The byte of the device where the block of a file's byte begins, if that is of the last ones.
    pub fn place(&self, slot: u32, byte: u64) -> Option<u64> {
        let (given, block) = (self.files.get(slot)?, byte / u64::from(BLOCK));
        let behind = block.checked_sub(u64::from(given.from))?;
        (block < u64::from(given.blocks)).then(|| given.at + behind * u64::from(BLOCK))
    }

    /// A file gives back what is behind so many bytes.
    pub fn shorten(&self, slot: u32, bytes: u64) {
        if let Some(given) = self.files.get(slot) {
            let blocks = given.blocks.min(bytes.div_ceil(u64::from(BLOCK)) as u32);
            self.files.put(slot, Given { blocks, from: given.from.min(blocks), ..given });
        }
    }

    /// A file has none any more.
    pub fn forget(&self, slot: u32) {
        self.files.forget(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    #[test]
    fn files_that_are_given_blocks_one_after_the_other_lie_side_by_side() {
        let data = DataBlocks::new(2, 1024);
        data.give(0, 1, 4 * KIB);
        data.give(1, 1, 5 * KIB);
        data.give(2, 1, KIB);
        let first = 4096 * KIB;
        assert_eq!([0, 1, 2].map(|slot| data.place(slot, 0)), [first, first + 4 * KIB, first + 12 * KIB].map(Some));
        assert_eq!((data.place(1, 5 * KIB), data.place(1, 8 * KIB)), (Some(first + 8 * KIB), None));
        assert_eq!((data.bytes(1), data.group(1), data.group(7)), (8 * KIB, Some(1), None));
    }

    #[test]
    fn a_file_goes_on_where_it_ended_unless_another_came_between() {
        let data = DataBlocks::new(1, 1024);
        data.give(0, 0, 4 * KIB);
        data.give(0, 0, 16 * KIB);
        assert_eq!(data.place(0, 12 * KIB), Some(12 * KIB));
        data.give(1, 0, 4 * KIB);
        data.give(0, 0, 24 * KIB);
        assert_eq!((data.place(0, 12 * KIB), data.place(0, 16 * KIB)), (None, Some(20 * KIB)));
    }

    #[test]
    fn what_was_given_back_is_given_anew() {
        let data = DataBlocks::new(1, 16);
        data.give(0, 0, 32 * KIB);
        data.shorten(0, 9 * KIB);
        assert_eq!((data.bytes(0), data.place(0, 12 * KIB)), (12 * KIB, None));
        data.forget(0);
        assert_eq!((data.bytes(0), data.place(0, 0)), (0, None));
        data.give(1, 0, 64 * KIB); // there is no room for so much behind the first file
        assert_eq!(data.place(1, 0), Some(0));
    }
}
