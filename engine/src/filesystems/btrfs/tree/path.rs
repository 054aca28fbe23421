//! The way from the root to a leaf that a search went (`struct btrfs_path`).

use super::{BlockId, MAX_LEVEL};
use crate::waist::Side;

/// Blocks from the leaf (0) up, the slot in each, and how each is locked. A block stays in the path when its lock is
/// dropped early, as in the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// The blocks.
    pub nodes: [Option<BlockId>; MAX_LEVEL],
    /// Where the search went in each, or in the leaf: where the key is or belongs.
    pub slots: [usize; MAX_LEVEL],
    /// The locks that are still held.
    pub locks: [Option<Side>; MAX_LEVEL],
}

impl Path {
    /// The block at a level that the path is known to have.
    pub fn node(&self, level: usize) -> BlockId {
        self.nodes[level].expect("the path reaches this level")
    }

    /// The leaf.
    pub fn leaf(&self) -> BlockId {
        self.node(0)
    }
}
