//! Insertion (`xfs_btree_insrec`): a full block shifts entries to a sibling, else it splits.

use super::{BTree, BlockSource, Entry, Path, Record, Touch, NIL};

impl<R: Record> BTree<R> {
    /// Inserts a record whose key is new (`xfs_btree_insert`).
    pub fn insert(&mut self, record: R, source: &mut impl BlockSource) -> Touch {
        let mut path = self.seek(&record.key());
        let mut touch = self.visited(&path);
        let mut entry = Entry::Record(record);
        let mut level = 0;
        while let Some((key, node)) = self.insert_entry(&mut path, level, entry, source, &mut touch) {
            level += 1;
            if level == self.levels {
                self.new_root(node, source, &mut touch);
                break;
            }
            path.at[level].1 += 1;
            entry = Entry::Child(key, node);
        }
        self.len += 1;
        touch
    }

    /// `xfs_btree_insrec`: puts an entry in, and returns the right half if that took a split.
    fn insert_entry(
        &mut self,
        path: &mut Path,
        level: usize,
        entry: Entry<R>,
        source: &mut impl BlockSource,
        touch: &mut Touch,
    ) -> Option<(R::Key, u32)> {
        let full = self.count(path.at[level].0) == self.max(level);
        let split = if full { self.make_block_unfull(path, level, source, touch) } else { None };
        let (slot, index) = path.at[level];
        let node = &mut self.nodes[slot as usize];
        match entry {
            Entry::Record(record) => node.records.insert(index, record),
            Entry::Child(key, child) => {
                node.keys.insert(index, key);
                node.children.insert(index, child);
            }
        }
        if index == 0 {
            self.update_keys(path, level);
        }
        split
    }

    /// `xfs_btree_make_block_unfull`: one entry to the right sibling, else one to the left, else split in half.
    fn make_block_unfull(
        &mut self,
        path: &mut Path,
        level: usize,
        source: &mut impl BlockSource,
        touch: &mut Touch,
    ) -> Option<(R::Key, u32)> {
        if self.inode_root.is_some() && level + 1 == self.levels {
            self.new_inode_root(path, source, touch);
            return None;
        }
        if self.shift_right(path, level, touch) || self.shift_left(path, level, touch) {
            return None;
        }
        Some(self.split(path, level, source, touch))
    }

    /// `xfs_btree_rshift`; not when the cursor is at the entry that would move.
    fn shift_right(&mut self, path: &Path, level: usize, touch: &mut Touch) -> bool {
        let (slot, index) = path.at[level];
        let right = self.nodes[slot as usize].right;
        if right == NIL || index + 1 >= self.count(slot) {
            return false;
        }
        touch.add(&self.nodes[right as usize]);
        if self.count(right) == self.max(level) {
            return false;
        }
        self.move_last_right(slot, right);
        let path = self.right_of(path, level);
        self.update_keys(&path, level);
        touch.shifts += 1;
        true
    }

    /// `xfs_btree_lshift`; not when the cursor is at the entry that would move.
    fn shift_left(&mut self, path: &mut Path, level: usize, touch: &mut Touch) -> bool {
        let (slot, index) = path.at[level];
        let left = self.nodes[slot as usize].left;
        if left == NIL || index == 0 {
            return false;
        }
        touch.add(&self.nodes[left as usize]);
        if self.count(left) == self.max(level) {
            return false;
        }
        self.move_first_left(left, slot);
        self.update_keys(path, level);
        path.at[level].1 -= 1;
        touch.shifts += 1;
        true
    }

    /// `__xfs_btree_split`: the right half goes to a new block; of an odd count the half that will grow gets less.
    fn split(
        &mut self,
        path: &mut Path,
        level: usize,
        source: &mut impl BlockSource,
        touch: &mut Touch,
    ) -> (R::Key, u32) {
        let (left, index) = path.at[level];
        let count = self.count(left);
        let odd_and_left = count % 2 == 1 && index <= count / 2;
        let keep = count - count / 2 - usize::from(odd_and_left);
        let right = self.new_node(source.alloc(self.nodes[left as usize].id));
        let far = self.nodes[left as usize].right;
        let (l, r) = self.pair(left, right);
        if level == 0 {
            r.records.extend(l.records.drain(keep..));
        } else {
            r.keys.extend(l.keys.drain(keep..));
            r.children.extend(l.children.drain(keep..));
        }
        (l.right, r.left, r.right) = (right, left, far);
        if far != NIL {
            self.nodes[far as usize].left = right;
        }
        if index > keep {
            path.at[level] = (right, index - keep);
        }
        touch.add(&self.nodes[right as usize]);
        touch.splits += 1;
        (self.nodes[right as usize].first_key(), right)
    }

    /// `xfs_btree_new_root`: a root above the old one and its new right half.
    fn new_root(&mut self, right: u32, source: &mut impl BlockSource, touch: &mut Touch) {
        let left = self.root;
        let root = self.new_node(source.alloc(self.nodes[left as usize].id));
        let keys = [left, right].map(|slot| self.nodes[slot as usize].first_key());
        let node = &mut self.nodes[root as usize];
        node.keys.extend(keys);
        node.children.extend([left, right]);
        touch.add(node);
        touch.splits += 1;
        self.root = root;
        self.levels += 1;
    }

    /// `xfs_btree_new_iroot`: what the inode held goes to a block of its own, one level down.
    fn new_inode_root(&mut self, path: &mut Path, source: &mut impl BlockSource, touch: &mut Touch) {
        let first = self.nodes[self.root as usize].children[0];
        let slot = self.new_node(source.alloc(self.nodes[first as usize].id));
        let (root, node) = self.pair(self.root, slot);
        std::mem::swap(&mut root.keys, &mut node.keys);
        std::mem::swap(&mut root.children, &mut node.children);
        root.keys.push(node.keys[0]);
        root.children.push(slot);
        touch.add(node);
        touch.splits += 1;
        path.at[self.levels] = (self.root, 0);
        path.at[self.levels - 1].0 = slot;
        self.levels += 1;
    }

    // Removal
}
