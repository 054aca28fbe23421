//! The index of a subvolume's inodes that are in memory, under `inode_lock` of its root: a red-black tree of nodes in the inodes
//! (`inode_tree_add` and `inode_tree_del` of `fs/btrfs/inode.c`), since 6.11 an xarray (`btrfs_add_inode_to_root`).
//!
//! Inodes come in the order of their numbers, so that each goes down the right edge of the tree, which has twice as many nodes as a perfect
//! tree has levels. What it changes there, others have written last.

use crate::filesystems::costs::Costs;
use crate::kernel::btrfs::InodeIndex;
use crate::memory::Held;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};
use std::cell::Cell;
use std::rc::Rc;

/// The index.
pub struct OpenInodes {
    lock: LockId,
    neighbours: LineId,
    lines: u32,
    hold: Time,
    /// Time for a node on the way down; none in an xarray.
    node: Time,
    inodes: Rc<Cell<u64>>,
}

impl OpenInodes {
    /// That of a subvolume; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let (tree, node) = (costs.rules().inode_index == InodeIndex::Tree, costs.sum(&["inode_index_node"])?);
        let lines = costs.number("btrfs_root.inodes")? as u32;
        Ok(Self {
            lock: m.new_lock(m.class("btrfs.inode_lock", "btrfs.inode_lock")),
            neighbours: m.new_line(lines),
            lines,
            hold: costs.sum(&["inode_index"])?,
            node: if tree { node } else { 0 },
            inodes: Rc::new(Cell::new(costs.number("cached_inodes")? as u64)),
        })
    }

    /// That of another subvolume, which has none in memory.
    pub fn another<M: Machine>(&self, m: &M) -> Self {
        Self {
            lock: m.new_lock(m.class("btrfs.inode_lock", "btrfs.inode_lock")),
            neighbours: m.new_line(self.lines),
            inodes: Rc::default(),
            ..*self
        }
    }

    /// So many more are in memory.
    pub fn add(&self, inodes: u64) {
        self.inodes.set(self.inodes.get() + inodes);
    }

    /// An inode comes into memory. Returns what is left of the `step` that this is part of, the way down a tree not being so.
    pub async fn enter<M: Machine>(&self, m: &M, step: Time) -> Time {
        let nodes = 2 * self.inodes.get().checked_ilog2().unwrap_or(0);
        self.add(1);
        self.change(m, self.hold + self.node * Time::from(nodes)).await;
        self.without(step)
    }

    /// One goes, from its place.
    pub async fn leave<M: Machine>(&self, m: &M) {
        self.inodes.set(self.inodes.get().saturating_sub(1));
        self.change(m, self.hold).await;
    }

    /// One is not in memory when the run begins.
    pub fn leaves_memory(&self) {
        self.inodes.set(self.inodes.get().saturating_sub(1));
    }

    /// What one takes that goes because memory is short (`btrfs_destroy_inode`).
    pub fn held(&self) -> Held {
        Held { locks: vec![self.lock], hold: self.hold, count: Some(self.inodes.clone()) }
    }

    /// What is left of a step that this is part of.
    pub fn without(&self, step: Time) -> Time {
        step.saturating_sub(self.hold)
    }

    async fn change<M: Machine>(&self, m: &M, hold: Time) {
        m.lock(self.lock, Side::Write).await;
        m.touch(self.neighbours, Access::Write);
        m.run(Account::System, hold).await;
        m.unlock(self.lock, Side::Write).await;
    }
}
