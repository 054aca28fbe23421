//! A B+tree of held ranges in nodes of 256 bytes, four cache lines, after the in-memory extent tree of XFS
//! (`fs/xfs/libxfs/xfs_iext_tree.c`): leaves of 14 records linked both ways, inner nodes of 15 children.
//!
//! A full node splits in half, but not when the new record comes after all others; a node below half joins a sibling when
//! both fit into one. Keys in inner nodes follow a child's first record (`xfs_iext_update_node`), so whoever removes that
//! writes to the nodes above as well.

mod balance;
mod node;

use super::{NodeId, Touch};
use crate::waist::Access;
use balance::Fate;
use node::Node;

/// Records in a leaf: 16 bytes each, and 32 bytes for the version and the links.
pub const RECORDS: usize = 14;
/// Children of an inner node: 8 bytes a key, 8 a pointer, and 16 for the version.
pub const CHILDREN: usize = 15;
const MAX_LEVELS: usize = 8;
const NIL: NodeId = NodeId::MAX;

/// What records are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// First unit of the range.
    pub start: u64,
    /// Tells apart reads that start together.
    pub hold: u32,
}

/// A held range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its place in the order; `hold` is the caller's number for it.
    pub key: Key,
    /// Last unit of the range.
    pub last: u64,
    /// How many share it for reading; 0: held exclusively.
    pub readers: u32,
}

/// At each level, the leaf's first, a node and an entry in it.
#[derive(Clone, Copy)]
struct Path([(NodeId, usize); MAX_LEVELS]);

/// The nodes that a change will write, those it makes anew left out.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    nodes: [NodeId; 4 * MAX_LEVELS],
    len: usize,
}

impl Changes {
    fn add(&mut self, node: NodeId) {
        if node != NIL && !self.nodes().contains(&node) {
            self.nodes[self.len] = node;
            self.len += 1;
        }
    }

    /// Only this node.
    pub fn one(node: NodeId) -> Self {
        let mut changes = Self { nodes: [NIL; 4 * MAX_LEVELS], len: 0 };
        changes.add(node);
        changes
    }

    /// The nodes, the leaf first.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes[..self.len]
    }
}

/// The tree.
#[derive(Clone, Debug)]
pub struct RangeBTree {
    root: NodeId,
    levels: usize,
    len: usize,
    /// How far the longest range held for reading goes beyond its start. Reads may overlap, so one that meets a range can
    /// start this far before it; exclusive ranges overlap nothing, so only the last one before it can meet it.
    longest_read: u64,
    nodes: Vec<Node>,
    spare: Vec<NodeId>,
}

impl Default for RangeBTree {
    fn default() -> Self {
        Self { root: 0, levels: 1, len: 0, longest_read: 0, nodes: vec![Node::new(true)], spare: Vec::new() }
    }
}

impl RangeBTree {
    /// Records in the tree.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Levels, leaves included.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// The root.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// Whether a node is part of the tree.
    pub fn is_in_use(&self, node: NodeId) -> bool {
        (node as usize) < self.nodes.len() && !self.spare.contains(&node)
    }

    /// Where a search for `key` goes on below `node`; `None` at a leaf.
    pub fn child(&self, node: NodeId, key: Key) -> Option<NodeId> {
        let node = &self.nodes[node as usize];
        (!node.leaf).then(|| node.children[node.child_index(key)])
    }

    /// Shows `visit` the records that meet `start..=last`, with their leaves, in order until it returns true.
    pub fn overlapping(
        &self,
        start: u64,
        last: u64,
        touch: &mut impl Touch,
        mut visit: impl FnMut(NodeId, &Record) -> bool,
    ) {
        let from = Key { start: start.saturating_sub(self.longest_read), hold: 0 };
        let (mut leaf, mut index) = self.seek(from, touch).0[0];
        if index == 0 && self.nodes[leaf as usize].prev != NIL {
            leaf = self.nodes[leaf as usize].prev;
            index = self.read(leaf, touch).len;
        }
        index = index.saturating_sub(1);
        while leaf != NIL {
            let node = &self.nodes[leaf as usize];
            for record in &node.records()[index..] {
                if record.key.start > last || (record.last >= start && visit(leaf, record)) {
                    return;
                }
            }
            (leaf, index) = (node.next, 0);
            if leaf != NIL {
                self.read(leaf, touch);
            }
        }
    }

    /// The leaf of a record that is in the tree, and the record, to be changed in place but for its key.
    pub fn record_mut(&mut self, key: Key, touch: &mut impl Touch) -> (NodeId, &mut Record) {
        let (leaf, index) = self.seek(key, touch).0[0];
        (leaf, &mut self.change(leaf, touch).records[index])
    }

    /// What inserting a record with `key` would write.
    pub fn insert_changes(&self, key: Key) -> Changes {
        let path = self.seek(key, &mut |_, _| {});
        let mut changes = Changes::one(path.0[0].0);
        if path.0[0].1 == 0 {
            self.following(&path, 1).for_each(|(node, _)| changes.add(node));
        }
        for &(node, _) in &path.0[..self.levels] {
            changes.add(node);
            let node = &self.nodes[node as usize];
            if node.len < node.max() {
                break;
            }
            changes.add(node.next); // its link back will point to the new leaf
        }
        changes
    }

    /// What removing the record with `key` would write.
    pub fn remove_changes(&self, key: Key) -> Changes {
        let path = self.seek(key, &mut |_, _| {});
        let mut changes = Changes::one(path.0[0].0);
        let mut first = path.0[0].1 == 0;
        for level in 0..self.levels {
            let id = path.0[level].0;
            changes.add(id);
            let node = &self.nodes[id as usize];
            if first && node.len > 1 {
                self.following(&path, level + 1).for_each(|(node, _)| changes.add(node));
            }
            let fate = self.fate(&path, level, node.len - 1, &mut |_, _| {});
            first = matches!(fate, Fate::IsEmpty) && path.0[level + 1].1 == 0;
            let (left, right) = match fate {
                Fate::Stays => break,
                Fate::IsEmpty => (node.prev, node.next),
                Fate::JoinsLeft(left) => (left, node.next),
                Fate::TakesRight(right) => (right, self.nodes[right as usize].next),
            };
            changes.add(left);
            changes.add(right);
        }
        changes
    }

    /// Adds a record whose key is new.
    pub fn insert(&mut self, record: Record, touch: &mut impl Touch) {
        if record.readers > 0 {
            self.longest_read = self.longest_read.max(record.last - record.key.start);
        }
        let path = self.seek(record.key, touch);
        let mut split = self.put_record(path.0[0], record, touch);
        if path.0[0].1 == 0 {
            self.follow_first(&path, 0, touch);
        }
        let mut level = 1;
        while let Some((key, node)) = split {
            if level == self.levels {
                self.grow(key, node, touch);
                break;
            }
            let (parent, index) = path.0[level];
            split = self.put_child((parent, index + 1), key, node, touch);
            level += 1;
        }
        self.len += 1;
    }

    /// Removes the record with `key`, which must be there, and returns it.
    pub fn remove(&mut self, key: Key, touch: &mut impl Touch) -> Record {
        let path = self.seek(key, touch);
        let (leaf, index) = path.0[0];
        let record = self.nodes[leaf as usize].records[index];
        debug_assert!(record.key == key, "no record {key:?}");
        self.change(leaf, touch).remove(index);
        let mut first = index == 0;
        for level in 0..self.levels {
            let (node, len) = (path.0[level].0, self.nodes[path.0[level].0 as usize].len);
            if first && len > 0 {
                self.follow_first(&path, level, touch);
            }
            let fate = self.fate(&path, level, len, touch);
            first = matches!(fate, Fate::IsEmpty) && path.0[level + 1].1 == 0;
            match fate {
                Fate::Stays => break,
                Fate::IsEmpty => self.drop_child(path.0[level + 1], touch),
                Fate::JoinsLeft(left) => self.join(path.0[level + 1], left, node, touch),
                Fate::TakesRight(right) => {
                    let (parent, index) = path.0[level + 1];
                    self.join((parent, index + 1), node, right, touch);
                }
            }
        }
        while !self.nodes[self.root as usize].leaf && self.nodes[self.root as usize].len == 1 {
            self.spare.push(self.root);
            self.root = self.nodes[self.root as usize].children[0];
            self.levels -= 1;
        }
        self.len -= 1;
        if self.len == 0 {
            self.longest_read = 0;
        }
        record
    }

    /// Checks order, fill, keys and links.
    pub fn check(&self) -> Result<(), String> {
        let mut leaves = Vec::new();
        self.check_below(self.root, self.levels, None, None, &mut leaves)?;
        let links = leaves.iter().map(|&leaf| (self.nodes[leaf as usize].prev, self.nodes[leaf as usize].next));
        let left = std::iter::once(NIL).chain(leaves.iter().copied());
        let right = leaves.iter().copied().skip(1).chain(std::iter::once(NIL));
        if !links.eq(left.zip(right)) {
            return Err("wrong links between leaves".into());
        }
        let records: usize = leaves.iter().map(|&leaf| self.nodes[leaf as usize].len).sum();
        if records != self.len {
            return Err(format!("{records} records in the leaves, {} counted", self.len));
        }
        Ok(())
    }

    fn check_below(
        &self,
        id: NodeId,
        levels: usize,
        low: Option<Key>,
        high: Option<Key>,
        leaves: &mut Vec<NodeId>,
    ) -> Result<(), String> {
        let node = &self.nodes[id as usize];
        if node.leaf != (levels == 1) || (node.len == 0 && self.len > 0) || node.len > node.max() {
            return Err(format!("node {id}: leaf {}, {} entries at level {levels}", node.leaf, node.len));
        }
        let inside = |key: Key| low.is_none_or(|low| low <= key) && high.is_none_or(|high| key < high);
        if node.leaf {
            leaves.push(id);
            let ordered = node.records().windows(2).all(|pair| pair[0].key < pair[1].key);
            return if ordered && node.records().iter().all(|record| inside(record.key)) {
                Ok(())
            } else {
                Err(format!("leaf {id}: records out of order or out of {low:?}..{high:?}"))
            };
        }
        for i in 0..node.len {
            if self.nodes[node.children[i] as usize].first_key() != node.keys[i] {
                return Err(format!("node {id}: key {i} is not its child's first"));
            }
            let low = if i == 0 { low } else { Some(node.keys[i]) };
            let high = if i + 1 == node.len { high } else { Some(node.keys[i + 1]) };
            self.check_below(node.children[i], levels - 1, low, high, leaves)?;
        }
        Ok(())
    }

    // Nodes

    fn read(&self, id: NodeId, touch: &mut impl Touch) -> &Node {
        touch(id, Access::Read);
        &self.nodes[id as usize]
    }

    fn change(&mut self, id: NodeId, touch: &mut impl Touch) -> &mut Node {
        touch(id, Access::Write);
        &mut self.nodes[id as usize]
    }

    fn seek(&self, key: Key, touch: &mut impl Touch) -> Path {
        let mut path = Path([(NIL, 0); MAX_LEVELS]);
        let mut id = self.root;
        for level in (1..self.levels).rev() {
            let node = self.read(id, touch);
            let index = node.child_index(key);
            path.0[level] = (id, index);
            id = node.children[index];
        }
        path.0[0] = (id, self.read(id, touch).records().partition_point(|record| record.key < key));
        path
    }

    fn new_node(&mut self, leaf: bool, touch: &mut impl Touch) -> NodeId {
        let id = self.spare.pop().unwrap_or(self.nodes.len() as NodeId);
        if id as usize == self.nodes.len() {
            self.nodes.push(Node::new(leaf));
        }
        *self.change(id, touch) = Node::new(leaf);
        id
    }

    // Keys

    /// The entries of a path, from `level` up, whose keys are the first one below them: up to one that is not its node's first.
    fn following<'a>(&self, path: &'a Path, level: usize) -> impl Iterator<Item = (NodeId, usize)> + use<'a> {
        let above = path.0.get(level..self.levels).unwrap_or_default();
        let last = above.iter().position(|&(_, index)| index > 0).map_or(above.len(), |at| at + 1);
        above[..last].iter().copied()
    }

    /// The node of a path at `level` has a new first entry: the keys above follow.
    fn follow_first(&mut self, path: &Path, level: usize, touch: &mut impl Touch) {
        let key = self.nodes[path.0[level].0 as usize].first_key();
        for (node, index) in self.following(path, level + 1) {
            self.change(node, touch).keys[index] = key;
        }
    }
}
