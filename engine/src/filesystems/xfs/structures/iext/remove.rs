//! An extent leaves the map: blocks below half join a neighbour, and the tree shrinks.

use super::{BlockNo, Cursor, Extent, ExtentMap, Leaf, Node, CHILDREN, NONE, RECORDS};

impl<E: Extent> ExtentMap<E> {
    /// `xfs_iext_remove`: takes the extent there out.
    pub fn remove(&mut self, cursor: Cursor) -> E {
        let Cursor { leaf: no, pos } = cursor;
        let leaf = self.leaf_mut(no);
        let mut offset = leaf.records[0].offset();
        let removed = leaf.records.remove(pos);
        let left = leaf.records.len();
        self.count -= 1;
        if pos == 0 && left > 0 {
            let first = self.leaf(no).records[0].offset();
            self.update_keys(offset, first, 1);
            offset = first;
        }
        if left < RECORDS / 2 && self.height > 1 {
            self.rebalance_leaf(no, offset);
        } else if left == 0 {
            self.free(no);
            (self.root, self.height) = (NONE, 0);
        }
        removed
    }

    /// `xfs_iext_rebalance_leaf`: joins a leaf with the one before it or the one behind it, if both fit into one.
    fn rebalance_leaf(&mut self, no: BlockNo, offset: u64) {
        let Leaf { prev, next, .. } = *self.leaf(no);
        let len = |no: BlockNo| self.leaf(no).records.len();
        let (left, joins) = (len(no), |other: BlockNo| other != NONE && len(other) + len(no) <= RECORDS);
        let (victim, offset, heir) = match () {
            () if left == 0 => (no, offset, None),
            () if joins(prev) => (no, offset, Some(prev)),
            () if joins(next) => (next, self.leaf(next).records[0].offset(), Some(no)),
            () => return,
        };
        if let Some(heir) = heir {
            let records = std::mem::take(&mut self.leaf_mut(victim).records);
            self.leaf_mut(heir).records.extend(records);
        }
        let Leaf { prev, next, .. } = *self.leaf(victim);
        if prev != NONE {
            self.leaf_mut(prev).next = next;
        }
        if next != NONE {
            self.leaf_mut(next).prev = prev;
        }
        self.remove_node(offset, victim);
    }

    /// `xfs_iext_remove_node`: takes a leaf out of its parent, and what joins or becomes empty above.
    fn remove_node(&mut self, mut offset: u64, mut victim: BlockNo) {
        let mut level = 2;
        let mut no = self.find_level(offset, level, |_| ());
        let mut pos = self.node(no).child_of(offset);
        loop {
            debug_assert_eq!(self.node(no).children[pos], victim);
            self.free(victim);
            let node = self.node_mut(no);
            let first = node.keys[0];
            node.keys.remove(pos);
            node.children.remove(pos);
            let left = node.keys.len();
            offset = first;
            if pos == 0 && left > 0 {
                offset = self.node(no).keys[0];
                self.update_keys(first, offset, level);
            }
            if left >= CHILDREN / 2 {
                return;
            }
            if level == self.height {
                if left == 1 {
                    self.root = self.node(no).children[0];
                    self.height -= 1;
                    self.free(no);
                }
                return;
            }
            level += 1;
            let parent = self.find_level(offset, level, |_| ());
            pos = self.node(parent).child_of(offset);
            match self.rebalance_node(parent, &mut pos, no) {
                Some(emptied) => (victim, no) = (emptied, parent),
                None => return,
            }
        }
    }

    /// `xfs_iext_rebalance_node`: joins a node with a neighbour below the same parent; the one to take out, and its place there.
    fn rebalance_node(&mut self, parent: BlockNo, pos: &mut usize, no: BlockNo) -> Option<BlockNo> {
        let len = |no: BlockNo| self.node(no).keys.len();
        if len(no) == 0 {
            return Some(no);
        }
        let sibling = |at: Option<usize>| at.and_then(|at| self.node(parent).children.get(at)).copied();
        let fits = |other: &BlockNo| len(*other) + len(no) <= CHILDREN;
        let (heir, victim) = match sibling(pos.checked_sub(1)).filter(fits) {
            Some(prev) => (prev, no),
            None => {
                let next = sibling(Some(*pos + 1)).filter(fits)?;
                *pos += 1;
                (no, next)
            }
        };
        let Node { keys, children } = std::mem::take(self.node_mut(victim));
        let heir = self.node_mut(heir);
        heir.keys.extend(keys);
        heir.children.extend(children);
        Some(victim)
    }
}
