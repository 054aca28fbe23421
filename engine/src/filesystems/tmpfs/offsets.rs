//! The offsets of a directory's names (`struct offset_ctx`, fs/libfs.c): a tree in memory that gives each name a number for `readdir`.
//!
//! The directory is locked already; what a change finds in caches of others are the tree's lock with root and next number, the last line of
//! `struct shmem_inode_info` before 64 (`dir_offsets`, 32), and a node. Numbers grow (`xa_alloc_cyclic`, `mtree_alloc_cyclic`), so new names come
//! to the last node: in an xarray 64 numbers, in a maple tree up to 16 entries of names and gaps. A node of a maple tree above it says
//! how large the largest gap is (`mas_update_gap`), which each name changes that comes behind the others.
//!
//! A change of a maple tree with one node is part of the operation's time. Names that do not fit into one node take more, and so does a node
//! that is split or joins another.

use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::listed::{Entry, Pointers, OTHERS};
use crate::filesystems::paged::Paged;
use crate::filesystems::DirId;
use crate::fx::FxMap;
use crate::kernel::vfs::DirectoryOffsets;
use crate::waist::{Access, Machine, Time};
use std::cell::RefCell;

/// Numbers of a node of an xarray (`XA_CHUNK_SIZE`).
const NUMBERS: u32 = 64;
/// Names of a leaf of a maple tree, whose 16 slots have gaps between them too (`MAPLE_RANGE64_SLOTS`).
const NAMES: u32 = 8;
/// Names without gaps between them that fill a leaf.
const FULL: u32 = 15;

/// A node, and how many of its numbers were given and have names.
#[derive(Clone, Copy, Default)]
struct Node {
    given: u32,
    names: u32,
}

/// The tree of a directory: its last node, and how many nodes and names there are.
#[derive(Clone, Copy, Default)]
struct Tree {
    last: Option<u32>,
    nodes: u32,
    names: u32,
}

/// The trees by directory, nodes by number, the node of each file's first name, and by directory those of further names of files, the
/// latest last.
#[derive(Default)]
struct Trees {
    trees: Paged<Tree>,
    nodes: Paged<Node>,
    number: u32,
    free: Vec<u32>,
    names: Paged<Option<u32>>,
    others: FxMap<DirId, Vec<u32>>,
}

cost_table!(
    /// What changes of a maple tree take besides.
    TreeCosts {
        deep: ["offsets.deep"],
        split: ["offsets.split"],
        merge: ["offsets.merge"],
    }
);

/// Those of all directories of a mount.
pub(super) struct Offsets {
    rule: DirectoryOffsets,
    costs: TreeCosts,
    trees: RefCell<Trees>,
    /// Lines of directories: `dir_offsets`, and the node above.
    contexts: Pointers,
    above: Pointers,
    node: Pointers,
}

impl Offsets {
    /// No directory has names; the error names a cost that is missing.
    pub fn new(costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            rule: costs.rules().directory_offsets,
            costs: TreeCosts::new(costs)?,
            trees: RefCell::default(),
            contexts: Pointers::default(),
            above: Pointers::default(),
            node: Pointers::of_span(costs.number("tmpfs_offsets.node")? as u32),
        })
    }

    /// `simple_offset_add`: what it takes beyond a tree of one node.
    pub fn add<M: Machine>(&self, m: &M, dir: DirId, name: Entry) -> Time {
        if self.rule == DirectoryOffsets::None {
            return 0;
        }
        let mut trees = self.trees.borrow_mut();
        let before = *trees.trees.of(dir.into());
        let (node, nodes) = trees.add(dir, name, self.rule);
        self.change(m, dir, node, nodes);
        let split = before.nodes > 0 && nodes > before.nodes;
        self.takes(before.names + 1, if split { self.costs.split } else { 0 })
    }

    /// `simple_offset_remove`, the same.
    pub fn remove<M: Machine>(&self, m: &M, dir: DirId, name: Entry) -> Time {
        let mut trees = self.trees.borrow_mut();
        let Some(node) = trees.take(dir, name) else { return 0 };
        let Tree { nodes, names, .. } = *trees.trees.of(dir.into());
        self.change(m, dir, node, nodes);
        let merges = trees.remove(dir, node);
        if merges {
            self.node.free(m, node.into());
        }
        self.takes(names, if merges { self.costs.merge } else { 0 })
    }

    /// A change of a tree of so many names, which `rebuilds` nodes for so long.
    fn takes(&self, names: u32, rebuilds: Time) -> Time {
        match self.rule {
            DirectoryOffsets::MapleTree if names > FULL => self.costs.deep + rebuilds,
            DirectoryOffsets::MapleTree => rebuilds,
            _ => 0,
        }
    }

    /// Under the tree's lock, from the root to the node.
    fn change<M: Machine>(&self, m: &M, dir: DirId, node: u32, nodes: u32) {
        self.contexts.touch(m, dir.into(), Access::Atomic);
        if self.rule == DirectoryOffsets::MapleTree && nodes > 1 {
            self.above.touch(m, dir.into(), Access::Write);
        }
        self.node.touch(m, node.into(), Access::Write);
    }
}

impl Trees {
    /// A name of a directory is in this node.
    fn put(&mut self, dir: DirId, name: Entry, node: u32) {
        match name {
            OTHERS => self.others.entry(dir).or_default().push(node),
            _ => *self.names.of(name) = Some(node),
        }
    }

    /// The node that a name of a directory was in, which it leaves.
    fn take(&mut self, dir: DirId, name: Entry) -> Option<u32> {
        match name {
            OTHERS => self.others.get_mut(&dir)?.pop(),
            _ => self.names.of(name).take(),
        }
    }

    /// A name gets the next number: the node in which that is, and how many nodes its tree has.
    fn add(&mut self, dir: DirId, name: Entry, rule: DirectoryOffsets) -> (u32, u32) {
        let last = self.trees.of(dir.into()).last.filter(|&last| !self.is_full(last, rule));
        let node = last.unwrap_or_else(|| self.new_node(dir));
        let at = self.nodes.of(node.into());
        (at.given, at.names) = (at.given + 1, at.names + 1);
        self.put(dir, name, node);
        let tree = self.trees.of(dir.into());
        tree.names += 1;
        (node, tree.nodes)
    }

    fn is_full(&mut self, node: u32, rule: DirectoryOffsets) -> bool {
        let node = self.nodes.of(node.into());
        match rule {
            DirectoryOffsets::MapleTree => node.names >= NAMES,
            _ => node.given >= NUMBERS,
        }
    }

    /// A tree's new last node.
    fn new_node(&mut self, dir: DirId) -> u32 {
        let node = self.free.pop().unwrap_or_else(|| {
            self.number += 1;
            self.number
        });
        *self.nodes.of(node.into()) = Node::default();
        let tree = self.trees.of(dir.into());
        (tree.last, tree.nodes) = (Some(node), tree.nodes + 1);
        node
    }

    /// A name leaves a node: whether the node goes, too.
    fn remove(&mut self, dir: DirId, node: u32) -> bool {
        let (names, tree) = (&mut self.nodes.of(node.into()).names, self.trees.of(dir.into()));
        *names -= 1;
        tree.names -= 1;
        let goes = *names == 0 && tree.last != Some(node);
        if goes {
            tree.nodes -= 1;
            self.free.push(node);
        }
        goes
    }
}
