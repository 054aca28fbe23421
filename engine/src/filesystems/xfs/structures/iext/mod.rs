//! The extent map of a file in memory (`xfs_iext_tree.c`): a B+tree of blocks of 256 bytes, with 15 records in a leaf and 16 keys
//! and children in a node; keys are the first offset below a child.
//!
//! A full block is split in the middle, but appending just begins a new one, so a file that is written in order has full leaves. A block that
//! falls below half joins the neighbour before it or behind it if both fit into one, nodes only within their parent; else it stays until it is empty.

mod check;
mod insert;
mod remove;

use arrayvec::ArrayVec;

const RECORDS: usize = 15;
const CHILDREN: usize = 16;

/// The number of a block.
pub type BlockNo = u32;

/// No block.
const NONE: BlockNo = BlockNo::MAX;

/// Consecutive blocks of a file.
pub trait Extent: Copy {
    /// The first of them.
    fn offset(&self) -> u64;
    /// The one behind the last.
    fn end(&self) -> u64;
}

#[derive(Clone, Debug)]
struct Leaf<E> {
    records: ArrayVec<E, RECORDS>,
    prev: BlockNo,
    next: BlockNo,
}

#[derive(Clone, Debug, Default)]
struct Node {
    keys: ArrayVec<u64, CHILDREN>,
    children: ArrayVec<BlockNo, CHILDREN>,
}

#[derive(Clone, Debug)]
enum Block<E> {
    Leaf(Leaf<E>),
    Node(Node),
    Free,
}

/// Where an extent is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    leaf: BlockNo,
    pos: usize,
}

/// An extent map.
#[derive(Clone, Debug)]
pub struct ExtentMap<E> {
    blocks: Vec<Block<E>>,
    unused: Vec<BlockNo>,
    root: BlockNo,
    height: usize,
    count: usize,
}

impl<E> Default for ExtentMap<E> {
    fn default() -> Self {
        Self { blocks: Vec::new(), unused: Vec::new(), root: NONE, height: 0, count: 0 }
    }
}

impl Node {
    /// The child that an offset belongs to.
    fn child_of(&self, offset: u64) -> usize {
        self.keys.iter().skip(1).take_while(|&&key| key <= offset).count()
    }
}

impl<E: Extent> ExtentMap<E> {
    /// Number of extents.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Levels, 0 of an empty map.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Blocks, numbered below this; some may be free.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    fn leaf(&self, no: BlockNo) -> &Leaf<E> {
        match &self.blocks[no as usize] {
            Block::Leaf(leaf) => leaf,
            _ => unreachable!("level 1 has leaves"),
        }
    }

    fn leaf_mut(&mut self, no: BlockNo) -> &mut Leaf<E> {
        match &mut self.blocks[no as usize] {
            Block::Leaf(leaf) => leaf,
            _ => unreachable!("level 1 has leaves"),
        }
    }

    fn node(&self, no: BlockNo) -> &Node {
        match &self.blocks[no as usize] {
            Block::Node(node) => node,
            _ => unreachable!("nodes are above level 1"),
        }
    }

    fn node_mut(&mut self, no: BlockNo) -> &mut Node {
        match &mut self.blocks[no as usize] {
            Block::Node(node) => node,
            _ => unreachable!("nodes are above level 1"),
        }
    }

    fn alloc(&mut self, block: Block<E>) -> BlockNo {
        if let Some(no) = self.unused.pop() {
            self.blocks[no as usize] = block;
            return no;
        }
        self.blocks.push(block);
        (self.blocks.len() - 1) as BlockNo
    }

    fn free(&mut self, no: BlockNo) {
        self.blocks[no as usize] = Block::Free;
        self.unused.push(no);
    }

    /// `xfs_iext_find_level`: the block of a level on the way to an offset; tells all above it, and it, to `visit`.
    fn find_level(&self, offset: u64, level: usize, mut visit: impl FnMut(BlockNo)) -> BlockNo {
        let mut no = self.root;
        visit(no);
        for _ in level..self.height {
            let node = self.node(no);
            no = node.children[node.child_of(offset)];
            visit(no);
        }
        no
    }

    /// `xfs_iext_lookup_extent`: the extent that has an offset, else the first behind it, else the end. The blocks on the way are told
    /// to `visit`.
    pub fn lookup_visiting(&self, offset: u64, mut visit: impl FnMut(BlockNo)) -> Cursor {
        if self.height == 0 {
            return Cursor { leaf: NONE, pos: 0 };
        }
        let no = self.find_level(offset, 1, &mut visit);
        let leaf = self.leaf(no);
        let pos = leaf.records.iter().take_while(|record| record.end() <= offset).count();
        if pos == leaf.records.len() && leaf.next != NONE {
            visit(leaf.next);
            return Cursor { leaf: leaf.next, pos: 0 };
        }
        Cursor { leaf: no, pos }
    }

    /// The same.
    pub fn lookup(&self, offset: u64) -> Cursor {
        self.lookup_visiting(offset, |_| ())
    }

    /// The extent there.
    pub fn get(&self, cursor: Cursor) -> Option<&E> {
        if cursor.leaf == NONE {
            None
        } else {
            self.leaf(cursor.leaf).records.get(cursor.pos)
        }
    }

    /// The place before (`xfs_iext_prev`).
    pub fn before(&self, cursor: Cursor) -> Option<Cursor> {
        if cursor.leaf == NONE {
            return None;
        }
        match cursor.pos.checked_sub(1) {
            Some(pos) => Some(Cursor { pos, ..cursor }),
            None => {
                let leaf = self.leaf(cursor.leaf).prev;
                (leaf != NONE).then(|| Cursor { leaf, pos: self.leaf(leaf).records.len() - 1 })
            }
        }
    }

    /// All extents in order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        let first = if self.height == 0 { NONE } else { self.find_level(0, 1, |_| ()) };
        let next = |&no: &BlockNo| Some(self.leaf(no).next).filter(|&next| next != NONE);
        std::iter::successors((first != NONE).then_some(first), next).flat_map(|no| &self.leaf(no).records)
    }

    /// `xfs_iext_update_node`: what is first below some child has another offset now.
    fn update_keys(&mut self, old: u64, new: u64, level: usize) {
        let mut no = self.root;
        for _ in level..self.height {
            let node = self.node_mut(no);
            let child = node.child_of(old);
            node.keys[..=child].iter_mut().filter(|key| **key == old).for_each(|key| *key = new);
            no = node.children[child];
        }
    }

    /// Another extent in place of the one there (`xfs_iext_update_extent`), that keeps its place in the order.
    pub fn update(&mut self, cursor: Cursor, extent: E) {
        let old = std::mem::replace(&mut self.leaf_mut(cursor.leaf).records[cursor.pos], extent);
        if cursor.pos == 0 && old.offset() != extent.offset() {
            self.update_keys(old.offset(), extent.offset(), 1);
        }
    }
}

#[cfg(test)]
mod tests;
