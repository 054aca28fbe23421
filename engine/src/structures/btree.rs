//! The XFS B+tree (`xfs_btree.c`): real block capacities, the kernel's order of shifts, splits and joins.
//!
//! Blocks live in one arena and carry the number that the allocator gave them, so that a caller can lock them by
//! identity. The root is a block of its own (inobt, finobt, bnobt, cntbt) or sits in the inode (bmbt).

/// The number of a block, as its allocator names it.
pub type BlockId = u64;

/// A record that is kept in the order of its key.
pub trait Record: Copy {
    /// What records are ordered by; unique in a tree.
    type Key: Copy + Ord + std::fmt::Debug;
    /// The key of this record.
    fn key(&self) -> Self::Key;
}

/// Where a tree gets its blocks from. The caller has made sure that there are enough (`minleft`).
pub trait BlockSource {
    /// A new block, close to block `near` where the source can choose.
    fn alloc(&mut self, near: BlockId) -> BlockId;
    /// Takes back a block.
    fn free(&mut self, block: BlockId);
}

/// How many entries a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most records in a leaf.
    pub leaf_max: usize,
    /// Fewest records in a leaf that is not the root.
    pub leaf_min: usize,
    /// Most children of a node.
    pub node_max: usize,
    /// Fewest children of a node that is not the root.
    pub node_min: usize,
}

impl Limits {
    /// Limits from sizes in bytes, as `xfs_inobt_maxrecs` and its sisters compute them.
    pub const fn from_sizes(block: usize, header: usize, record: usize, key: usize, pointer: usize) -> Self {
        let leaf_max = (block - header) / record;
        let node_max = (block - header) / (key + pointer);
        Self { leaf_max, leaf_min: leaf_max / 2, node_max, node_min: node_max / 2 }
    }

    const fn max(&self, level: usize) -> usize {
        if level == 0 { self.leaf_max } else { self.node_max }
    }

    const fn min(&self, level: usize) -> usize {
        if level == 0 { self.leaf_min } else { self.node_min }
    }
}

/// Blocks that one report can name; a change of a tree of four levels stays below.
const TOUCH_MAX: usize = 16;

/// What one operation did to a tree: blocks in the order they are locked, and how they changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touch {
    blocks: [BlockId; TOUCH_MAX],
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

    fn add(&mut self, block: BlockId) {
        if block != IN_INODE && !self.blocks().contains(&block) && usize::from(self.len) < TOUCH_MAX {
            self.blocks[usize::from(self.len)] = block;
            self.len += 1;
        }
    }

    /// Adds what a second operation on the same tree did.
    pub fn merge(&mut self, other: &Self) {
        other.blocks().iter().for_each(|&block| self.add(block));
        self.splits += other.splits;
        self.merges += other.merges;
        self.shifts += other.shifts;
    }
}

const NIL: u32 = u32::MAX;
/// The "block number" of a root that is kept in the inode.
const IN_INODE: BlockId = BlockId::MAX;
/// `XFS_BTREE_MAXLEVELS`.
const MAX_LEVELS: usize = 9;

#[derive(Clone, Debug)]
struct Node<R: Record> {
    id: BlockId,
    left: u32,
    right: u32,
    records: Vec<R>,
    keys: Vec<R::Key>,
    children: Vec<u32>,
}

impl<R: Record> Node<R> {
    fn len(&self) -> usize {
        self.records.len() + self.children.len()
    }

    fn first_key(&self) -> R::Key {
        self.keys.first().copied().unwrap_or_else(|| self.records[0].key())
    }
}

/// A cursor: at each level a block and an entry in it.
#[derive(Clone, Copy)]
struct Path {
    at: [(u32, usize); MAX_LEVELS],
}

enum Entry<R: Record> {
    Record(R),
    Child(R::Key, u32),
}

/// One B+tree.
#[derive(Clone, Debug)]
pub struct BTree<R: Record> {
    limits: Limits,
    /// Most children of a root kept in the inode.
    inode_root: Option<usize>,
    root: u32,
    levels: usize,
    len: usize,
    nodes: Vec<Node<R>>,
    spare: Vec<u32>,
}

impl<R: Record> BTree<R> {
    /// An empty tree whose root is block `root`.
    pub fn new(limits: Limits, root: BlockId) -> Self {
        let mut tree =
            Self { limits, inode_root: None, root: 0, levels: 1, len: 0, nodes: Vec::new(), spare: Vec::new() };
        tree.root = tree.new_node(root);
        tree
    }

    /// A tree of two levels with its root in the inode, of at most `root_max` children, and one leaf `leaf` of
    /// `records` (`xfs_bmap_extents_to_btree`).
    pub fn in_inode(limits: Limits, root_max: usize, leaf: BlockId, records: &[R]) -> Self {
        let mut tree = Self::new(limits, IN_INODE);
        let child = tree.new_node(leaf);
        tree.nodes[child as usize].records.extend_from_slice(records);
        let root = &mut tree.nodes[tree.root as usize];
        root.keys.push(records[0].key());
        root.children.push(child);
        tree.inode_root = Some(root_max);
        tree.levels = 2;
        tree.len = records.len();
        tree
    }

    /// Levels, leaves included.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Records in the tree.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Blocks of the tree; a root in the inode is none.
    pub fn blocks(&self) -> usize {
        self.nodes.len() - self.spare.len() - usize::from(self.inode_root.is_some())
    }

    /// The number of the root block.
    pub fn root(&self) -> BlockId {
        self.nodes[self.root as usize].id
    }

    /// Entries of every block of a level (0: leaves), from left to right.
    pub fn fill(&self, level: usize) -> Vec<usize> {
        self.chain(level).map(|node| node.len()).collect()
    }

    /// Blocks that a search for `key` reads.
    pub fn visit(&self, key: &R::Key) -> Touch {
        self.visited(&self.seek(key))
    }

    /// The record with this key.
    pub fn get(&self, key: &R::Key) -> Option<R> {
        self.ceil(key).filter(|record| record.key() == *key)
    }

    /// The first record whose key is not below `key` (`XFS_LOOKUP_GE`).
    pub fn ceil(&self, key: &R::Key) -> Option<R> {
        let (node, index) = self.seek(key).at[0];
        let node = &self.nodes[node as usize];
        match node.records.get(index) {
            Some(record) => Some(*record),
            None if node.right == NIL => None,
            None => self.nodes[node.right as usize].records.first().copied(),
        }
    }

    /// The last record whose key is not above `key` (`XFS_LOOKUP_LE`).
    pub fn floor(&self, key: &R::Key) -> Option<R> {
        let (node, index) = self.seek(key).at[0];
        let records = &self.nodes[node as usize].records;
        match records.get(index) {
            Some(record) if record.key() == *key => Some(*record),
            _ => index.checked_sub(1).map(|before| records[before]),
        }
    }

    /// The first record.
    pub fn first(&self) -> Option<R> {
        self.chain(0).next().and_then(|leaf| leaf.records.first().copied())
    }

    /// The last record.
    pub fn last(&self) -> Option<R> {
        let mut node = &self.nodes[self.root as usize];
        while let Some(&child) = node.children.last() {
            node = &self.nodes[child as usize];
        }
        node.records.last().copied()
    }

    /// All records in order.
    pub fn iter(&self) -> impl Iterator<Item = &R> {
        self.chain(0).flat_map(|leaf| leaf.records.iter())
    }

    /// Records from the first whose key is not below `key`.
    pub fn iter_from(&self, key: &R::Key) -> impl Iterator<Item = &R> {
        let (leaf, index) = self.seek(key).at[0];
        self.chain_from(leaf).flat_map(|leaf| leaf.records.iter()).skip(index)
    }

    /// Replaces the record with key `key`; the order must stay (`xfs_btree_update`).
    pub fn update(&mut self, key: &R::Key, record: R) -> Touch {
        let path = self.seek(key);
        let (node, index) = path.at[0];
        let slot = &mut self.nodes[node as usize].records[index];
        debug_assert!(slot.key() == *key, "no record with key {key:?}");
        *slot = record;
        if index == 0 && record.key() != *key {
            self.update_keys(&path, 0);
        }
        self.visited(&path)
    }

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

    /// Checks order, fill, keys and sibling links of every block.
    pub fn check(&self) -> Result<(), String> {
        let mut expected = vec![self.root];
        for level in (0..self.levels).rev() {
            let mut below = Vec::new();
            for (i, &slot) in expected.iter().enumerate() {
                let left = if i == 0 { NIL } else { expected[i - 1] };
                let right = expected.get(i + 1).copied().unwrap_or(NIL);
                self.check_node(slot, level, left, right, expected.len() == 1)?;
                below.extend_from_slice(&self.nodes[slot as usize].children);
            }
            if level > 0 {
                expected = below;
            }
        }
        let records: Vec<R> = self.iter().copied().collect();
        if records.len() != self.len {
            return Err(format!("{} records in the leaves, {} counted", records.len(), self.len));
        }
        match records.windows(2).find(|pair| pair[0].key() >= pair[1].key()) {
            Some(pair) => Err(format!("record {:?} is followed by {:?}", pair[0].key(), pair[1].key())),
            None => Ok(()),
        }
    }

    fn check_node(&self, slot: u32, level: usize, left: u32, right: u32, alone: bool) -> Result<(), String> {
        let node = &self.nodes[slot as usize];
        let place = format!("level {level} block {}", node.id);
        if (node.left, node.right) != (left, right) {
            return Err(format!("{place}: wrong sibling links"));
        }
        if (level == 0) != node.children.is_empty() || node.keys.len() != node.children.len() {
            return Err(format!("{place}: entries do not fit the level"));
        }
        let min = if alone { 0 } else { self.limits.min(level) };
        if node.len() > self.max(level) || node.len() < min {
            return Err(format!("{place}: {} entries, allowed {min}..={}", node.len(), self.max(level)));
        }
        for (key, &child) in node.keys.iter().zip(&node.children) {
            let first = self.nodes[child as usize].first_key();
            if *key != first {
                return Err(format!("{place}: key {key:?} for a child that starts at {first:?}"));
            }
        }
        Ok(())
    }

    // Reading

    fn seek(&self, key: &R::Key) -> Path {
        let mut path = Path { at: [(NIL, 0); MAX_LEVELS] };
        let mut slot = self.root;
        for level in (1..self.levels).rev() {
            let node = &self.nodes[slot as usize];
            let index = node.keys.partition_point(|k| k <= key).saturating_sub(1);
            path.at[level] = (slot, index);
            slot = node.children[index];
        }
        let leaf = &self.nodes[slot as usize];
        path.at[0] = (slot, leaf.records.partition_point(|record| record.key() < *key));
        path
    }

    fn visited(&self, path: &Path) -> Touch {
        let mut touch = Touch::default();
        for level in (0..self.levels).rev() {
            touch.add(self.nodes[path.at[level].0 as usize].id);
        }
        touch
    }

    fn chain(&self, level: usize) -> impl Iterator<Item = &Node<R>> {
        let mut slot = self.root;
        for _ in level + 1..self.levels {
            slot = self.nodes[slot as usize].children[0];
        }
        self.chain_from(slot)
    }

    fn chain_from(&self, first: u32) -> impl Iterator<Item = &Node<R>> {
        std::iter::successors(Some(&self.nodes[first as usize]), |node| self.nodes.get(node.right as usize))
    }

    fn max(&self, level: usize) -> usize {
        match self.inode_root {
            Some(max) if level + 1 == self.levels => max,
            _ => self.limits.max(level),
        }
    }

    fn count(&self, slot: u32) -> usize {
        self.nodes[slot as usize].len()
    }

    // Insertion

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
        touch.add(self.nodes[right as usize].id);
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
        touch.add(self.nodes[left as usize].id);
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
        touch.add(self.nodes[right as usize].id);
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
        touch.add(node.id);
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
        touch.add(node.id);
        touch.splits += 1;
        path.at[self.levels] = (self.root, 0);
        path.at[self.levels - 1].0 = slot;
        self.levels += 1;
    }

    // Removal

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
            touch.add(self.nodes[right as usize].id);
            if self.count(right) > min {
                self.move_first_left(slot, right);
                let path = self.right_of(path, level);
                self.update_keys(&path, level);
                touch.shifts += 1;
                return false;
            }
        }
        if left != NIL {
            touch.add(self.nodes[left as usize].id);
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

    /// `xfs_btree_update_keys`: the first entry of a block changed, so do the keys that stand for it above.
    fn update_keys(&mut self, path: &Path, level: usize) {
        let key = self.nodes[path.at[level].0 as usize].first_key();
        for above in level + 1..self.levels {
            let (slot, index) = path.at[above];
            self.nodes[slot as usize].keys[index] = key;
            if index > 0 {
                break;
            }
        }
    }

    /// The cursor moved to the right sibling at `level`, as `xfs_btree_increment` moves it.
    fn right_of(&self, path: &Path, level: usize) -> Path {
        let mut path = *path;
        let mut above = level + 1;
        while path.at[above].1 + 1 == self.count(path.at[above].0) {
            above += 1;
        }
        path.at[above].1 += 1;
        for l in (level..above).rev() {
            let (slot, index) = path.at[l + 1];
            path.at[l] = (self.nodes[slot as usize].children[index], 0);
        }
        path
    }

    fn move_last_right(&mut self, left: u32, right: u32) {
        let (l, r) = self.pair(left, right);
        if let Some(record) = l.records.pop() {
            r.records.insert(0, record);
        }
        if let (Some(key), Some(child)) = (l.keys.pop(), l.children.pop()) {
            r.keys.insert(0, key);
            r.children.insert(0, child);
        }
    }

    fn move_first_left(&mut self, left: u32, right: u32) {
        let (l, r) = self.pair(left, right);
        if r.children.is_empty() {
            l.records.push(r.records.remove(0));
        } else {
            l.keys.push(r.keys.remove(0));
            l.children.push(r.children.remove(0));
        }
    }

    fn pair(&mut self, a: u32, b: u32) -> (&mut Node<R>, &mut Node<R>) {
        let [a, b] = self.nodes.get_disjoint_mut([a as usize, b as usize]).expect("two blocks of the tree");
        (a, b)
    }

    fn new_node(&mut self, id: BlockId) -> u32 {
        if let Some(slot) = self.spare.pop() {
            let node = &mut self.nodes[slot as usize];
            (node.id, node.left, node.right) = (id, NIL, NIL);
            return slot;
        }
        let (records, keys, children) = (Vec::new(), Vec::new(), Vec::new());
        self.nodes.push(Node { id, left: NIL, right: NIL, records, keys, children });
        self.nodes.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Pair(u32, u32);

    impl Record for Pair {
        type Key = u32;
        fn key(&self) -> u32 {
            self.0
        }
    }

    #[derive(Default)]
    struct Blocks {
        next: BlockId,
        used: BTreeSet<BlockId>,
    }

    impl BlockSource for Blocks {
        fn alloc(&mut self, _near: BlockId) -> BlockId {
            self.next += 1;
            self.used.insert(self.next);
            self.next
        }
        fn free(&mut self, block: BlockId) {
            assert!(self.used.remove(&block), "block {block} freed twice");
        }
    }

    /// Marsaglia's xorshift: the tests want variety, not quality.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    const SMALL: Limits = Limits { leaf_max: 6, leaf_min: 3, node_max: 5, node_min: 2 };
    const INOBT: Limits = Limits::from_sizes(4096, 56, 16, 4, 4);

    fn against_a_model(mut tree: BTree<Pair>, mut blocks: Blocks, seed: u64, extra: usize) {
        let mut model: BTreeMap<u32, u32> = tree.iter().map(|r| (r.0, r.1)).collect();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for step in 0..3000u32 {
            let key = (random(&mut state) % 400) as u32;
            let grow = random(&mut state) % 100 < if step % 1000 < 500 { 70 } else { 30 };
            match (model.contains_key(&key), grow) {
                (false, true) => {
                    model.insert(key, step);
                    tree.insert(Pair(key, step), &mut blocks);
                }
                (true, false) if model.len() > 1 => {
                    model.remove(&key);
                    tree.delete(&key, &mut blocks);
                }
                (true, true) => {
                    model.insert(key, step);
                    tree.update(&key, Pair(key, step));
                }
                _ => {}
            }
            tree.check().unwrap_or_else(|e| panic!("seed {seed} step {step}: {e}"));
            assert_eq!(tree.blocks(), blocks.used.len() + extra, "seed {seed} step {step}: blocks leak");
            let at = (random(&mut state) % 400) as u32;
            let below = model.range(..=at).next_back().map(|(k, _)| *k);
            assert_eq!(tree.floor(&at).map(|r| r.0), below, "seed {seed} step {step}");
            let above = model.range(at..).next().map(|(k, _)| *k);
            assert_eq!(tree.ceil(&at).map(|r| r.0), above, "seed {seed} step {step}");
        }
        assert!(tree.iter().map(|r| (r.0, r.1)).eq(model));
    }

    #[test]
    fn random_operations_agree_with_a_model() {
        for seed in 1..=30 {
            against_a_model(BTree::new(SMALL, 0), Blocks::default(), seed, 1);
        }
    }

    #[test]
    fn random_operations_with_the_root_in_the_inode() {
        for seed in 1..=30 {
            let records: Vec<Pair> = (0..4).map(|k| Pair(k * 7, 0)).collect();
            against_a_model(BTree::in_inode(SMALL, 3, 0, &records), Blocks::default(), seed, 1);
        }
    }

    #[test]
    fn ascending_inserts_leave_full_leaves() {
        let (mut tree, mut blocks) = (BTree::new(INOBT, 3), Blocks::default());
        for key in 0..7813 {
            tree.insert(Pair(key, 0), &mut blocks);
        }
        tree.check().unwrap();
        assert_eq!((tree.levels(), tree.len(), tree.blocks()), (2, 7813, 33));
        assert_eq!(tree.fill(0).iter().filter(|&&n| n == 252).count(), 30);
    }

    #[test]
    fn limits_of_the_real_trees() {
        assert_eq!(INOBT, Limits { leaf_max: 252, leaf_min: 126, node_max: 505, node_min: 252 });
        let bnobt = Limits::from_sizes(4096, 56, 8, 8, 4);
        assert_eq!(bnobt, Limits { leaf_max: 505, leaf_min: 252, node_max: 336, node_min: 168 });
    }

    #[test]
    fn a_report_names_the_path_and_what_happened() {
        let (mut tree, mut blocks) = (BTree::new(SMALL, 100), Blocks::default());
        for key in 0..6 {
            assert_eq!(tree.insert(Pair(key, 0), &mut blocks).blocks(), [100]);
        }
        let touch = tree.insert(Pair(6, 0), &mut blocks);
        assert_eq!((touch.blocks(), touch.splits), ([100, 1, 2].as_slice(), 2));
        assert_eq!(tree.visit(&6).blocks(), [2, 1]);
    }
}
