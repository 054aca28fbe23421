//! The index of a subvolume's inodes that are in memory, under `inode_lock` of its root: a red-black tree of nodes in the inodes
//! (`inode_tree_add` and `inode_tree_del` of `fs/btrfs/inode.c`), since 6.11 an xarray (`btrfs_add_inode_to_root`).
//!
//! Inodes come in the order of their numbers, so that each goes down the right edge of the tree, which has twice as many nodes as a perfect
//! tree has levels. Of its lowest two nodes each insertion makes or changes both, of the two above every other one, and so on (`rb_insert_color`):
//! these come from the CPU that did so last. Each node is two lines, its pointers and its inode's number. Insertions into a real tree by threads in
//! random turn move as many lines (`tests/support/red_black.py`). Walks are taken to be in step, through files whose numbers alternate.
//!
//! An inode in memory holds a reference on its root (since 5.7).

use crate::filesystems::costs::Costs;
use crate::kernel::btrfs::InodeIndex;
use crate::memory::Held;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};
use std::cell::Cell;
use std::rc::Rc;

/// Levels of a perfect tree whose nodes on the right edge are lines that move: 2^10 insertions go by until the highest change.
const LOW_LEVELS: usize = 10;
/// Lines of a node.
const NODE_LINES: u32 = 2;

/// The index.
pub struct OpenInodes {
    lock: LockId,
    neighbours: LineId,
    lines: u32,
    hold: Time,
    /// Time for a node on the way down whose lines do not move; none in an xarray.
    node: Time,
    /// The nodes of the right edge of a tree, from the lowest level up.
    edge: Vec<[LineId; 2]>,
    entered: Cell<u64>,
    /// The root's reference count.
    refs: Option<LineId>,
    inodes: Rc<Cell<u64>>,
}

impl OpenInodes {
    /// That of a subvolume; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let (tree, node) = (costs.rules().inode_index == InodeIndex::Tree, costs.sum(&["inode_index_node"])?);
        let lines = costs.number("btrfs_root.inodes")? as u32;
        Ok(Self {
            lock: m.new_lock(m.class("btrfs.inode_lock", "btrfs.inode_lock")),
            neighbours: m.new_line("btrfs.inode_tree", lines),
            lines,
            hold: costs.sum(&["inode_index"])?,
            node: if tree { node } else { 0 },
            edge: if tree { edge(m) } else { Vec::new() },
            entered: Cell::new(0),
            refs: costs.rules().inodes_hold_root.then(|| m.new_line("btrfs.root refs", 1)),
            inodes: Rc::new(Cell::new(costs.number("cached_inodes")? as u64)),
        })
    }

    /// That of another subvolume, which has none in memory.
    pub fn another<M: Machine>(&self, m: &M) -> Self {
        Self {
            lock: m.new_lock(m.class("btrfs.inode_lock", "btrfs.inode_lock")),
            neighbours: m.new_line("btrfs.inode_tree", self.lines),
            edge: if self.edge.is_empty() { Vec::new() } else { edge(m) },
            entered: Cell::new(0),
            refs: self.refs.map(|_| m.new_line("btrfs.root refs", 1)),
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
        let levels = self.inodes.get().checked_ilog2().unwrap_or(0) as usize;
        self.add(1);
        self.hold_root(m);
        m.lock(self.lock, Side::Write).await;
        if self.node > 0 {
            self.go_down(m, levels);
        } else {
            m.touch(self.neighbours, Access::Write);
        }
        let deep = 2 * levels.saturating_sub(LOW_LEVELS);
        m.run(Account::System, self.hold + self.node * deep as Time).await;
        m.unlock(self.lock, Side::Write).await;
        self.without(step)
    }

    /// The lowest levels of the right edge, and what this insertion changes of them.
    fn go_down<M: Machine>(&self, m: &M, levels: usize) {
        let number = self.entered.get() + 1;
        self.entered.set(number);
        for (level, nodes) in self.edge.iter().enumerate().take(levels).rev() {
            let access = if number.is_multiple_of(1 << level) { Access::Write } else { Access::Read };
            nodes.iter().for_each(|&node| m.touch(node, access));
        }
    }

    /// A delayed node is looked for in vain (`btrfs_get_delayed_node`), until 6.10 under the same lock. Later it has a lock of its own, which is
    /// left out.
    pub async fn look_for_delayed<M: Machine>(&self, m: &M) {
        if self.node > 0 {
            m.lock(self.lock, Side::Write).await;
            m.unlock(self.lock, Side::Write).await;
        }
    }

    /// One goes, from its place.
    pub async fn leave<M: Machine>(&self, m: &M) {
        self.inodes.set(self.inodes.get().saturating_sub(1));
        m.lock(self.lock, Side::Write).await;
        m.touch(self.neighbours, Access::Write);
        m.run(Account::System, self.hold).await;
        m.unlock(self.lock, Side::Write).await;
        self.hold_root(m);
    }

    /// `btrfs_grab_root`, `btrfs_put_root`.
    fn hold_root<M: Machine>(&self, m: &M) {
        if let Some(refs) = self.refs {
            m.touch(refs, Access::Atomic);
        }
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
}

fn edge<M: Machine>(m: &M) -> Vec<[LineId; 2]> {
    (0..LOW_LEVELS)
        .map(|_| [m.new_line("btrfs.inode_tree", NODE_LINES), m.new_line("btrfs.inode_tree", NODE_LINES)])
        .collect()
}
