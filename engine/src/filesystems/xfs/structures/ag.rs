//! An allocation group: its free space, its inodes and its unlinked lists.

use super::free_space::{Extent, FreeSpace};
use super::geometry::{Geometry, BLOCKS_PER_CHUNK, FINOBT_ROOT, INOBT_ROOT, INODES_PER_CHUNK, INOPBLOG};
use super::inode_alloc::{InodeChunk, INOBT};
use super::touch::Touches;
use crate::structures::btree::{BTree, Limits};

/// Heads of unlinked lists in an AGI (`XFS_AGI_UNLINKED_BUCKETS`); inode `agino` is in list `agino % 64`.
pub const UNLINKED_BUCKETS: usize = 64;

/// Capacities of refcountbt blocks: 12-byte records, 4-byte keys and pointers.
const REFCOUNTBT: Limits = Limits::from_sizes(4096, 56, 12, 4, 4);

/// What an unlinked list took or gave back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlinking {
    /// Group whose AGI holds the list.
    pub agno: u32,
    /// The list, 0 to 63.
    pub bucket: usize,
    /// Whether the AGI points, or pointed, to the inode.
    pub head: bool,
    /// Inodes of which the pointer to the next changes on disk, in the order in which their buffers are locked: the inode itself,
    /// if another follows it, and the one before it.
    pub rewritten: [Option<u32>; 2],
}

impl Unlinking {
    /// Whether no inode had to be changed besides the AGI.
    pub fn only_agi(&self) -> bool {
        self.rewritten == [None, None]
    }
}

/// One allocation group.
#[derive(Clone, Debug)]
pub struct AllocGroup {
    /// Number of the group.
    pub agno: u32,
    /// Blocks in the group.
    pub length: u32,
    /// Free blocks.
    pub space: FreeSpace,
    /// Filesystem block number of block 0.
    pub(super) base: u64,
    pub(super) inobt: BTree<InodeChunk>,
    pub(super) finobt: BTree<InodeChunk>,
    /// Inodes, used or not (`agi_count`).
    pub(super) count: u64,
    /// Inodes not in use (`agi_freecount`).
    pub(super) freecount: u64,
    /// First inode of the chunk allocated last (`agi_newino`).
    pub(super) newino: Option<u32>,
    /// Most levels that the inobt can get (`inobt_maxlevels`).
    pub(super) inobt_maxlevels: u32,
    /// First block of the last chunk that lies wholly in a full group (`max_agbno` of sparse allocation).
    pub(super) last_chunk: u32,
    unlinked: Vec<Vec<u32>>,
}

impl AllocGroup {
    /// The inodes in use of the next records of the inobt that have some, at most so many, and where the records behind them begin; with how
    /// many records these are (`xfs_iwalk_ag`).
    pub fn inodes_from(&self, startino: u32, records: usize) -> (u64, Vec<u32>, Option<u32>) {
        let (mut found, mut inodes) = (0, Vec::new());
        for chunk in self.inobt.iter_from(&startino).filter(|chunk| chunk.free != u64::MAX) {
            if found == records as u64 {
                return (found, inodes, Some(chunk.startino));
            }
            found += 1;
            inodes
                .extend((0..INODES_PER_CHUNK).filter(|bit| chunk.free >> bit & 1 == 0).map(|bit| chunk.startino + bit));
        }
        (found, inodes, None)
    }

    /// Group `agno` as mkfs leaves it, and as a mount reserves space in it.
    pub fn new(geometry: &Geometry, agno: u32) -> Self {
        let (length, base) = (geometry.ag_length(agno), geometry.fsblock(agno, 0));
        let mut group = Self {
            agno,
            length,
            space: FreeSpace::new(base, geometry.first_unreserved(agno), length),
            base,
            inobt: BTree::new(INOBT, INOBT_ROOT.into()),
            finobt: BTree::new(INOBT, FINOBT_ROOT.into()),
            count: 0,
            freecount: 0,
            newino: None,
            inobt_maxlevels: max_levels(INOBT, (1 << geometry.agino_log()) / u64::from(INODES_PER_CHUNK)),
            last_chunk: (geometry.agblocks / BLOCKS_PER_CHUNK - 1) * BLOCKS_PER_CHUNK,
            unlinked: vec![Vec::new(); UNLINKED_BUCKETS],
        };
        if agno == 0 {
            group.make_root_chunk(geometry);
        }
        group.space.reserve(metadata_reservation(geometry, agno));
        group
    }

    /// Inodes in the group, used or not.
    pub fn inode_count(&self) -> u64 {
        self.count
    }

    /// Inodes not in use.
    pub fn free_inodes(&self) -> u64 {
        self.freecount
    }

    /// All inode chunks.
    pub fn chunks(&self) -> impl Iterator<Item = &InodeChunk> {
        self.inobt.iter()
    }

    /// Levels, records and blocks of inobt and finobt.
    pub fn inode_tree_shapes(&self) -> [[usize; 3]; 2] {
        [&self.inobt, &self.finobt].map(|tree| [tree.levels(), tree.len(), tree.blocks()])
    }

    /// Records of the inobt and the finobt, where they are in one block: `xfs_check_agi_freecount` goes through no others.
    pub fn checked_records(&self) -> [Option<u32>; 2] {
        self.inode_tree_shapes().map(|[levels, records, _]| (levels == 1).then_some(records as u32))
    }

    /// Fewest and most records in a leaf of the inobt.
    pub fn inobt_leaf_fill(&self) -> (usize, usize) {
        let fill = self.inobt.fill(0);
        (fill.iter().copied().min().unwrap_or(0), fill.iter().copied().max().unwrap_or(0))
    }

    /// Puts an inode at the head of its unlinked list (`xfs_iunlink`).
    pub fn iunlink(&mut self, agino: u32) -> Unlinking {
        let bucket = agino as usize % UNLINKED_BUCKETS;
        let list = &mut self.unlinked[bucket];
        let rewritten = [(!list.is_empty()).then_some(agino), None];
        list.push(agino);
        Unlinking { agno: self.agno, bucket, head: true, rewritten }
    }

    /// Takes an inode off its unlinked list (`xfs_iunlink_remove`), if it is on one.
    pub fn iunlink_remove(&mut self, agino: u32) -> Option<Unlinking> {
        let bucket = agino as usize % UNLINKED_BUCKETS;
        let list = &mut self.unlinked[bucket];
        let at = list.iter().position(|&other| other == agino)?;
        let before = list.get(at + 1).copied();
        list.remove(at);
        Some(Unlinking {
            agno: self.agno,
            bucket,
            head: before.is_none(),
            rewritten: [(at > 0).then_some(agino), before],
        })
    }

    /// An inode that is on an unlinked list.
    pub fn first_unlinked(&self) -> Option<u32> {
        self.unlinked.iter().flatten().next().copied()
    }

    /// The blocks of inobt and finobt.
    pub fn inode_tree_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        self.inobt.block_numbers().chain(self.finobt.block_numbers()).map(|block| block as u32)
    }

    /// Checks all trees and counts.
    pub fn check(&self) -> Result<(), String> {
        let place = |e: String| format!("AG {}: {e}", self.agno);
        self.space.check().map_err(place)?;
        self.check_inodes().map_err(place)
    }

    /// The chunk of the root directory and the two realtime inodes.
    fn make_root_chunk(&mut self, geometry: &Geometry) {
        let (_, agino) = geometry.split_ino(geometry.root_ino());
        let chunk = Extent { start: agino >> INOPBLOG, len: BLOCKS_PER_CHUNK };
        let mut touches = Touches::default();
        self.take_root_blocks(chunk, &mut touches);
        self.add_chunk(InodeChunk::whole(agino), &mut touches);
        for _ in 0..3 {
            self.take_inode(agino, &mut touches);
        }
    }
}

/// `xfs_ag_resv_init`: space for the largest refcountbt and finobt that the group can need, without their roots.
fn metadata_reservation(geometry: &Geometry, agno: u32) -> u32 {
    let log = if agno == geometry.log_agno { geometry.logblocks } else { 0 };
    let blocks = u64::from(geometry.ag_length(agno) - log);
    let chunks = blocks * (1 << INOPBLOG) / u64::from(INODES_PER_CHUNK);
    (tree_size(REFCOUNTBT, blocks) + tree_size(INOBT, chunks)) as u32 - 2
}

/// `xfs_btree_calc_size`: blocks of a tree of `records` with all blocks as empty as allowed.
fn tree_size(limits: Limits, records: u64) -> u64 {
    let mut level = records.div_ceil(limits.leaf_min as u64);
    let mut blocks = level;
    while level > 1 {
        level = level.div_ceil(limits.node_min as u64);
        blocks += level;
    }
    blocks
}

/// `xfs_btree_compute_maxlevels`.
fn max_levels(limits: Limits, records: u64) -> u32 {
    let mut level = records.div_ceil(limits.leaf_min as u64);
    let mut levels = 1;
    while level > 1 {
        level = level.div_ceil(limits.node_min as u64);
        levels += 1;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> AllocGroup {
        AllocGroup::new(&Geometry::new(8 << 30, Some(4)).expect("a geometry"), 1)
    }

    #[test]
    fn an_inode_alone_on_its_list_is_known_to_the_agi_only() {
        let mut group = group();
        assert!(group.iunlink(70).only_agi());
        assert!(group.iunlink(71).only_agi(), "71 is on another list");
        assert!(group.iunlink_remove(70).is_some_and(|list| list.only_agi() && list.head));
        assert!(group.iunlink_remove(70).is_none());
    }

    #[test]
    fn a_list_is_entered_at_its_head_and_may_be_left_anywhere() {
        let mut group = group();
        for agino in [64, 128, 192] {
            group.iunlink(agino);
        }
        assert_eq!(group.iunlink(256).rewritten, [Some(256), None], "the new head points to the old one");
        assert_eq!(group.iunlink_remove(64).map(|list| list.rewritten), Some([None, Some(128)]), "the last");
        assert_eq!(
            group.iunlink_remove(192).map(|list| list.rewritten),
            Some([Some(192), Some(256)]),
            "one in the middle"
        );
        assert_eq!(group.iunlink_remove(256).map(|list| list.rewritten), Some([Some(256), None]), "the head");
    }
}
