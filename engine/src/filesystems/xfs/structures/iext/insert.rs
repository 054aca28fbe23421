//! An extent enters the map: full blocks are split, and the tree grows.

use super::{Block, BlockNo, Cursor, Extent, ExtentMap, Leaf, Node, CHILDREN, NONE, RECORDS};
use arrayvec::ArrayVec;

impl<E: Extent> ExtentMap<E> {
    /// `xfs_iext_insert`: enters an extent that overlaps none.
    pub fn insert(&mut self, extent: E) {
        if self.height == 0 {
            self.root = self.alloc(Block::Leaf(Leaf { records: ArrayVec::new(), prev: NONE, next: NONE }));
            self.height = 1;
        }
        let offset = extent.offset();
        let Cursor { leaf: mut no, mut pos } = self.lookup(offset);
        let new = if self.leaf(no).records.is_full() { Some(self.split_leaf(&mut no, &mut pos)) } else { None };
        let first = self.leaf(no).records.first().map(Extent::offset);
        if let (0, Some(first), true) = (pos, first, new != Some(no)) {
            self.update_keys(first, offset, 1);
        }
        self.leaf_mut(no).records.insert(pos, extent);
        self.count += 1;
        if let Some(new) = new {
            let first = self.leaf(new).records[0].offset();
            self.insert_node(first, new, 2);
        }
    }

    /// `xfs_iext_split_leaf`: the new leaf; `no` and `pos` say where the record is to go.
    fn split_leaf(&mut self, no: &mut BlockNo, pos: &mut usize) -> BlockNo {
        let keep = if *pos == RECORDS { RECORDS } else { RECORDS - RECORDS / 2 };
        let old = *no;
        let leaf = self.leaf_mut(old);
        let (records, next) = (leaf.records.drain(keep..).collect(), leaf.next);
        let new = self.alloc(Block::Leaf(Leaf { records, prev: old, next }));
        self.leaf_mut(old).next = new;
        if next != NONE {
            self.leaf_mut(next).prev = new;
        }
        if *pos >= keep {
            (*no, *pos) = (new, *pos - keep);
        }
        new
    }

    /// `xfs_iext_insert_node`: enters a child at a level, and its parent's new sibling above, and so on.
    fn insert_node(&mut self, mut offset: u64, mut child: BlockNo, mut level: usize) {
        loop {
            if self.height < level {
                self.grow();
            }
            let mut no = self.find_level(offset, level, |_| ());
            let mut pos = self.node(no).keys.iter().take_while(|&&key| key <= offset).count();
            let new = if self.node(no).keys.is_full() { Some(self.split_node(&mut no, &mut pos)) } else { None };
            let first = self.node(no).keys.first().copied();
            if let (0, Some(first), true) = (pos, first, new != Some(no)) {
                self.update_keys(first, offset, level);
            }
            let node = self.node_mut(no);
            node.keys.insert(pos, offset);
            node.children.insert(pos, child);
            let Some(new) = new else { return };
            (offset, child, level) = (self.node(new).keys[0], new, level + 1);
        }
    }

    /// `xfs_iext_grow`: a new root above the old one.
    fn grow(&mut self) {
        let first = match &self.blocks[self.root as usize] {
            Block::Leaf(leaf) => leaf.records[0].offset(),
            Block::Node(node) => node.keys[0],
            Block::Free => unreachable!("the root is in use"),
        };
        let (keys, children) = ([first].into_iter().collect(), [self.root].into_iter().collect());
        self.root = self.alloc(Block::Node(Node { keys, children }));
        self.height += 1;
    }

    /// `xfs_iext_split_node`.
    fn split_node(&mut self, no: &mut BlockNo, pos: &mut usize) -> BlockNo {
        let keep = if *pos == CHILDREN { CHILDREN } else { CHILDREN / 2 };
        let node = self.node_mut(*no);
        let (keys, children) = (node.keys.drain(keep..).collect(), node.children.drain(keep..).collect());
        let new = self.alloc(Block::Node(Node { keys, children }));
        if *pos >= keep {
            (*no, *pos) = (new, *pos - keep);
        }
        new
    }
}
