//! What an operation on a tree says of it: which blocks it touched.

use super::{BlockId, Node, Record, IN_INODE};

/// Blocks that one report can name; a change of a tree of four levels stays below.
const TOUCH_MAX: usize = 16;

/// What one operation did to a tree: blocks in the order they are locked, and how they changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touch {
    blocks: [BlockId; TOUCH_MAX],
    entries: [u16; TOUCH_MAX],
    len: u8,
    /// Blocks split in half, a new root included.
    pub splits: u8,
    /// Pairs of blocks joined, a dropped root included.
    pub merges: u8,
    /// Records moved to or from a sibling instead.
    pub shifts: u8,
}

impl Touch {
    /// The touched blocks, root first; siblings and new blocks follow the path.
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks[..usize::from(self.len)]
    }

    /// The same, each with how many entries it has, or had where they have changed since.
    pub fn blocks_and_entries(&self) -> impl Iterator<Item = (BlockId, u32)> + '_ {
        self.blocks().iter().zip(&self.entries).map(|(&block, &entries)| (block, u32::from(entries)))
    }

    pub(super) fn add<R: Record>(&mut self, node: &Node<R>) {
        self.add_block(node.id, node.len() as u16);
    }

    fn add_block(&mut self, block: BlockId, entries: u16) {
        if block != IN_INODE && !self.blocks().contains(&block) && usize::from(self.len) < TOUCH_MAX {
            let at = usize::from(self.len);
            (self.blocks[at], self.entries[at]) = (block, entries);
            self.len += 1;
        }
    }

    /// Adds what a second operation on the same tree did.
    pub fn merge(&mut self, other: &Self) {
        other.blocks_and_entries().for_each(|(block, entries)| self.add_block(block, entries as u16));
        self.splits += other.splits;
        self.merges += other.merges;
        self.shifts += other.shifts;
    }
}
