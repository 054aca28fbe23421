//! Deletion (`xfs_btree_delrec`): a block that is less than half full takes entries from a sibling, or joins one.

use super::{BTree, BlockSource, Path, Record, Touch, NIL};

impl<R: Record> BTree<R> {
    /// Removes the record with key `key`, which must be there (`xfs_btree_delete`).
    pub fn delete(&mut self, key: &R::Key, source: &mut impl BlockSource) -> Touch {
        let mut path = self.seek(key);
        let mut touch = self.visited(&path);
        debug_assert!(self.get(key).is_some(), "no record with key {key:?}");
        let mut level = 0;
        while self.delete_entry(&mut path, level, source, &mut touch) {
            level += 1;
        }
        self.len -= 1;
        touch
    }

    /// `xfs_btree_delrec`: takes an entry out; true when the entry under the cursor one level up must go too.
    fn delete_entry(
        &mut self,
        path: &mut Path,
        level: usize,
        source: &mut impl BlockSource,
        touch: &mut Touch,
    ) -> bool {
        let (slot, index) = path.at[level];
        let node = &mut self.nodes[slot as usize];
        if level == 0 {
            node.records.remove(index);
        } else {
            node.keys.remove(index);
            node.children.remove(index);
        }
        let count = node.len();
        if level + 1 == self.levels {
            self.shrink_root(source, touch);
            return false;
        }
        if index == 0 && count > 0 {
            self.update_keys(path, level);
        }
        if count >= self.limits.min(level) {
            return false;
        }
        self.refill(path, level, source, touch)
    }

    /// The second half of `xfs_btree_delrec`: borrow from the right, from the left, or join with the left, the right.
    fn refill(&mut self, path: &mut Path, level: usize, source: &mut impl BlockSource, touch: &mut Touch) -> bool {
        let slot = path.at[level].0;
        let (left, right) = (self.nodes[slot as usize].left, self.nodes[slot as usize].right);
        if left == NIL && right == NIL {
            self.shrink_root(source, touch);
            return false;
        }
        let min = self.limits.min(level);
        if right != NIL {
            touch.add(&self.nodes[right as usize]);
            if self.count(right) > min {
                self.move_first_left(slot, right);
                let path = self.right_of(path, level);
                self.update_keys(&path, level);
                touch.shifts += 1;
                return false;
            }
        }
        if left != NIL {
            touch.add(&self.nodes[left as usize]);
            if self.count(left) > min {
                self.move_last_right(left, slot);
                self.update_keys(path, level);
                touch.shifts += 1;
                return false;
            }
        }
        let max = self.limits.max(level);
        if left != NIL && self.count(left) + self.count(slot) <= max {
            self.join(left, slot, source, touch);
            true
        } else if right != NIL && self.count(slot) + self.count(right) <= max {
            *path = self.right_of(path, level);
            self.join(slot, right, source, touch);
            true
        } else {
            false
        }
    }

    fn join(&mut self, left: u32, right: u32, source: &mut impl BlockSource, touch: &mut Touch) {
        let (l, r) = self.pair(left, right);
        l.records.append(&mut r.records);
        l.keys.append(&mut r.keys);
        l.children.append(&mut r.children);
        l.right = r.right;
        let (far, id) = (r.right, r.id);
        if far != NIL {
            self.nodes[far as usize].left = left;
        }
        self.spare.push(right);
        source.free(id);
        touch.merges += 1;
    }

    /// `xfs_btree_kill_root` and `xfs_btree_kill_iroot`: drops a level whose only child can be the root.
    fn shrink_root(&mut self, source: &mut impl BlockSource, touch: &mut Touch) {
        let root = &self.nodes[self.root as usize];
        let &[child] = root.children.as_slice() else { return };
        let Some(max) = self.inode_root else {
            source.free(root.id);
            self.nodes[self.root as usize].keys.clear();
            self.nodes[self.root as usize].children.clear();
            self.spare.push(self.root);
            self.root = child;
            self.levels -= 1;
            touch.merges += 1;
            return;
        };
        // A bmbt of one leaf stays one until it becomes a plain list of extents again.
        if self.levels > 2 && self.count(child) <= max {
            let (root, node) = self.pair(self.root, child);
            root.keys.clear();
            root.children.clear();
            std::mem::swap(&mut root.keys, &mut node.keys);
            std::mem::swap(&mut root.children, &mut node.children);
            let id = node.id;
            self.spare.push(child);
            source.free(id);
            self.levels -= 1;
            touch.merges += 1;
        }
    }

    // Parts of both
}
