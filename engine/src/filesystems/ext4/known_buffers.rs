//! Buffers of the device that each CPU knows (`bh_lrus`). Who looks for a block goes through those of his CPU first
//! (`lookup_bh_lru`), which puts the buffer in front; one that is not there is looked for in the device's page cache
//! (`__find_get_block_slow`), comes in front too, and the last one goes (`bh_lru_install`).

use crate::filesystems::DirId;
use crate::waist::CpuId;
use std::cell::RefCell;
use std::collections::VecDeque;

/// `BH_LRU_SIZE` (8 before 3.18).
const KNOWN: usize = 16;

/// A block, by what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffer {
    /// The root of a directory's tree.
    Root(DirId),
    /// A leaf of a directory, or its only block.
    Leaf(DirId, u32),
    /// The inodes of some of a directory's files, in the order in which these were made.
    Inodes(DirId, u32),
    /// A block of the inode table.
    Table(u32),
}

/// Those of each CPU, the last one that was used first.
pub(super) struct KnownBuffers(Vec<RefCell<VecDeque<Buffer>>>);

impl KnownBuffers {
    /// Nobody knows any.
    pub fn new(cpus: u32) -> Self {
        Self((0..cpus).map(|_| RefCell::default()).collect())
    }

    /// Whether a CPU knew it; now it does.
    pub fn knew(&self, cpu: CpuId, buffer: Buffer) -> bool {
        let mut known = self.0[cpu as usize].borrow_mut();
        let place = known.iter().position(|&other| other == buffer);
        if let Some(place) = place {
            known.remove(place);
        }
        known.push_front(buffer);
        known.truncate(KNOWN);
        place.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_knows_the_last_sixteen_and_no_other_cpu_does() {
        let known = KnownBuffers::new(2);
        (0..16).for_each(|leaf| assert!(!known.knew(0, Buffer::Leaf(1, leaf))));
        assert!(known.knew(0, Buffer::Leaf(1, 0)), "in front now");
        assert!(!known.knew(0, Buffer::Root(1)), "and leaf 1 goes");
        assert!(!known.knew(0, Buffer::Leaf(1, 1)));
        assert!(known.knew(0, Buffer::Leaf(1, 0)));
        assert!(!known.knew(1, Buffer::Leaf(1, 0)));
    }
}
