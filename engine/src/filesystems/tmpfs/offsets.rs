//! The offsets of a directory's names (`struct offset_ctx`, fs/libfs.c): a tree in memory that gives each name a number for `readdir`.
//!
//! The directory is locked already; what a change finds in caches of others are the tree's lock with root and next number, the last line of
//! `struct shmem_inode_info` before 64 (`dir_offsets`, 32), and a node. Numbers grow (`xa_alloc_cyclic`, `mtree_alloc_cyclic`), so new names come
//! to the last node: in an xarray 64 numbers, in a maple tree up to 16 entries of names and gaps. A node of a maple tree above it says
//! how large the largest gap is (`mas_update_gap`), which each name changes that comes behind the others.

use crate::filesystems::costs::Costs;
use crate::filesystems::listed::{Entry, Pointers};
use crate::filesystems::DirId;
use crate::fx::FxMap;
use crate::kernel::vfs::DirectoryOffsets;
use crate::waist::{Access, Machine};
use std::cell::{Cell, RefCell};

/// Numbers of a node of an xarray (`XA_CHUNK_SIZE`).
const NUMBERS: u32 = 64;
/// Names of a leaf of a maple tree, whose 16 slots have gaps between them too (`MAPLE_RANGE64_SLOTS`).
const NAMES: u32 = 8;

#[derive(Default)]
struct Node {
    given: u32,
    names: u32,
}

/// The nodes of one directory that have names, and the last one; where each name is.
#[derive(Default)]
struct Tree {
    last: Option<u64>,
    nodes: FxMap<u64, Node>,
    names: FxMap<Entry, u64>,
}

/// Those of all directories of a mount.
pub(super) struct Offsets {
    rule: DirectoryOffsets,
    trees: RefCell<FxMap<DirId, Tree>>,
    nodes: Cell<u64>,
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
            trees: RefCell::default(),
            nodes: Cell::new(0),
            contexts: Pointers::default(),
            above: Pointers::default(),
            node: Pointers::of_span(costs.number("tmpfs_offsets.node")? as u32),
        })
    }

    /// `simple_offset_add`.
    pub fn add<M: Machine>(&self, m: &M, dir: DirId, name: Entry) {
        if self.rule == DirectoryOffsets::None {
            return;
        }
        let mut trees = self.trees.borrow_mut();
        let tree = trees.entry(dir).or_default();
        let full = |node: &Node| match self.rule {
            DirectoryOffsets::MapleTree => node.names >= NAMES,
            _ => node.given >= NUMBERS,
        };
        let last = match tree.last {
            Some(last) if !full(&tree.nodes[&last]) => last,
            _ => self.new_node(),
        };
        tree.last = Some(last);
        let node = tree.nodes.entry(last).or_default();
        (node.given, node.names) = (node.given + 1, node.names + 1);
        tree.names.insert(name, last);
        self.change(m, dir, last, tree.nodes.len());
    }

    /// `simple_offset_remove`.
    pub fn remove<M: Machine>(&self, m: &M, dir: DirId, name: Entry) {
        let mut trees = self.trees.borrow_mut();
        let Some(tree) = trees.get_mut(&dir) else { return };
        let Some(at) = tree.names.remove(&name) else { return };
        self.change(m, dir, at, tree.nodes.len());
        let node = tree.nodes.get_mut(&at).expect("it has a name");
        node.names -= 1;
        if node.names == 0 && tree.last != Some(at) {
            tree.nodes.remove(&at);
            self.node.free(m, at);
        }
    }

    fn new_node(&self) -> u64 {
        self.nodes.set(self.nodes.get() + 1);
        self.nodes.get()
    }

    /// Under the tree's lock, from the root to the node.
    fn change<M: Machine>(&self, m: &M, dir: DirId, node: u64, nodes: usize) {
        self.contexts.touch(m, dir.into(), Access::Atomic);
        if self.rule == DirectoryOffsets::MapleTree && nodes > 1 {
            self.above.touch(m, dir.into(), Access::Write);
        }
        self.node.touch(m, node, Access::Write);
    }
}
