//! What follows from the size of a directory's blocks, `mkfs.xfs -n size=` (`struct xfs_da_geometry`, `xfs_da_mount`): all of its blocks have
//! it, those of the hash tree and of the free index too, and each is one buffer.

use super::storage::{BEST, HASH_ENTRY, LEAF_HEADER};
use crate::filesystems::xfs::structures::geometry::BLOCK_SIZE;

/// `XFS_DAENTER_DBS`: blocks that a new name may need, and levels of the map for each.
const ENTER: u32 = 5 + 2;
const ENTER_MAP: u32 = 4;

/// Sizes in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirGeometry {
    /// Blocks of the filesystem in one of a directory (`fsbcount`).
    pub blocks: u32,
}

impl Default for DirGeometry {
    /// As `mkfs.xfs` makes it.
    fn default() -> Self {
        Self { blocks: 1 }
    }
}

impl DirGeometry {
    /// Of blocks of so many bytes: 4 KiB times a power of two, 64 KiB at most.
    pub fn new(bytes: u64) -> Option<Self> {
        let blocks = (bytes / BLOCK_SIZE) as u32;
        let known = bytes.is_multiple_of(BLOCK_SIZE) && blocks.is_power_of_two() && blocks <= 16;
        known.then_some(Self { blocks })
    }

    /// Bytes of a block (`blksize`).
    pub fn bytes(self) -> usize {
        self.blocks as usize * BLOCK_SIZE as usize
    }

    /// Hash entries in a leaf, and children of a node (`leaf_max_ents`, `node_ents`).
    pub fn entries(self) -> usize {
        (self.bytes() - LEAF_HEADER) / HASH_ENTRY
    }

    /// Data blocks that one block of the free index stands for (`free_max_bests`).
    pub fn bests(self) -> usize {
        (self.bytes() - LEAF_HEADER) / BEST
    }

    /// A leaf with fewer bytes in use is tried to be joined (`magicpct`, 37 %).
    pub fn join_bytes(self) -> usize {
        self.bytes() * 37 / 100
    }

    /// Live entries of a leaf with which it is joined at most, and of both (`xfs_dir2_leafn_toosmall`).
    pub fn joined_entries(self) -> (usize, usize) {
        let bytes = self.bytes();
        ((bytes / 2 - LEAF_HEADER) / HASH_ENTRY, (bytes - bytes / 4) / HASH_ENTRY)
    }

    /// Blocks of the filesystem that entering a name may take (`XFS_DIRENTER_SPACE_RES`).
    pub fn enter_blocks(self) -> u32 {
        ENTER * self.blocks + ENTER * ENTER_MAP
    }

    /// Where the `nth` block of a part of the directory that begins at `part` lies in it, in blocks of the filesystem.
    pub fn offset(self, part: u32, nth: usize) -> u32 {
        part + nth as u32 * self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_powers_of_two_up_to_64_kib() {
        let made = [2048, 4096, 8192, 12_288, 65_536, 131_072].map(|bytes| DirGeometry::new(bytes).is_some());
        assert_eq!(made, [false, true, true, false, true, false]);
        assert_eq!(DirGeometry::new(4096), Some(DirGeometry::default()));
        assert_eq!(DirGeometry::default().enter_blocks(), 35);
    }
}
