//! The XFS B+tree (`xfs_btree.c`): real block capacities, the kernel's order of shifts, splits and joins.
//!
//! Blocks live in one arena and carry the number that the allocator gave them, so that a caller can lock them by
//! identity. The root is a block of its own (inobt, finobt, bnobt, cntbt) or sits in the inode (bmbt).
//!
//! Searches are here; `insert`, `delete` and `check` each have a file.

mod check;
mod delete;
mod insert;
#[cfg(test)]
mod tests;
mod touch;

pub use touch::Touch;

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
        if level == 0 {
            self.leaf_max
        } else {
            self.node_max
        }
    }

    const fn min(&self, level: usize) -> usize {
        if level == 0 {
            self.leaf_min
        } else {
            self.node_min
        }
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

    /// The numbers of all blocks, level by level; a root in the inode is none.
    pub fn block_numbers(&self) -> impl Iterator<Item = BlockId> + '_ {
        (0..self.levels).flat_map(|level| self.chain(level)).map(|node| node.id).filter(|&id| id != IN_INODE)
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
            touch.add(&self.nodes[path.at[level].0 as usize]);
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
