//! Times of the operations, each by the steps of the traced calls that it is the sum of.

use super::super::space::delalloc::{Delalloc, WasDirty};
use super::super::space::reservations::Reservations;
use super::super::transaction::Transaction;
use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::waist::Time;

cost_table!(pub(super) CreateCosts {
    walk: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem"],
    read_leaf: ["cu_l0.read_unlock_fs_l0"],
    new_inode: ["cu_l0.read_lock_fs_l0_2"],
    read_leaf_again: ["cu_l0.read_unlock_fs_l0_2"],
    start: ["cu_l0.read_lock_fs_l0_3"],
    insert_inode: ["cu_l0.write_unlock_fs_l0"],
    inode_new: ["cu_l0.inode_new", "cu_l0.read_lock_fs_l0_4"],
    iget: ["walk.iget"],
    insert_entry: ["cu_l0.write_unlock_fs_l0_2"],
    tail: ["openat.i_rwsem_tail"],
    open: ["openat.after_i_rwsem"],
    close: ["cu_l0.enter_close", "cu_l0.exit_close"],
});

cost_table!(pub(super) WriteCosts {
    write: ["tmp_l0.enter_write", "tmp_l0.exit_write"],
    close: ["tmp_l0.enter_close", "tmp_l0.exit_close"],
});

cost_table!(pub(super) UnlinkCosts {
    walk: ["cu_l0.enter_unlinkat", "unlinkat.before_i_rwsem"],
    lookup: ["unlinkat.under_i_rwsem"],
    delete_entry: ["cu_l0.write_unlock_fs_l0_3"],
    delayed_index: ["cu_l0.read_lock_fs_l0_6"],
    insert_orphan: ["cu_l0.write_unlock_fs_l0_4"],
    tail: ["unlinkat.i_rwsem_tail"],
    evict: ["unlinkat.after_i_rwsem", "cu_l0.read_lock_fs_l0_7"],
    evict_pages: ["unlinkat.after_i_rwsem", "tmp_l0.read_lock_fs_l0_7"],
    delete_ref: ["cu_l0.write_unlock_fs_l0_5"],
    truncate: ["cu_l0.read_lock_fs_l0_8"],
    drop_pages: ["truncate.pages"],
    delete_inode: ["cu_l0.write_unlock_fs_l0_6"],
    after_truncate: ["cu_l0.read_lock_fs_l0_9"],
    callback: ["i_callback"],
    delete_orphan: ["cu_l0.write_unlock_fs_l0_7"],
    exit: ["cu_l0.exit_unlinkat"],
});

cost_table!(pub(super) DelayedCosts {
    update_inode: ["delayed_update_inode"],
    run_node: ["delayed_run_node"],
});

/// How a rename's time under the directory's `i_rwsem`, but outside of leaves, lies between its six searches: the instructions before each
/// and after the last.
pub(super) struct RenameParts([f64; 7]);

const RENAME_PARTS: [&str; 7] = [
    "rename.lookup",
    "rename.collision",
    "rename.start",
    "rename.unlink",
    "rename.del_ref",
    "rename.add_link",
    "rename.end",
];

impl RenameParts {
    fn new(costs: &Costs<'_>) -> Result<Self, String> {
        let mut parts = [0.0; 7];
        for (part, name) in parts.iter_mut().zip(RENAME_PARTS) {
            *part = costs.number(name)?;
        }
        Ok(Self(parts))
    }

    /// The parts of a time.
    pub(super) fn of(&self, time: Time) -> [Time; 7] {
        let all: f64 = self.0.iter().sum();
        self.0.map(|part| (time as f64 * part / all).round() as Time)
    }
}

// A clone but for its searches, and under the leaf of each extent.
cost_table!(pub(super) ReflinkCosts { rest: ["reflink.rest"], extent: ["wfsync.log_item"] });

cost_table!(pub(super) ReaddirCosts { collect: ["readdir_collect"] });

/// Times of all operations.
pub(in crate::filesystems::btrfs) struct OperationCosts {
    pub(super) delayed: DelayedCosts,
    pub(super) create: CreateCosts,
    pub(super) write: WriteCosts,
    pub(super) unlink: UnlinkCosts,
    pub(super) rename: RenameParts,
    pub(super) rename_ref: Time,
    pub(super) readdir: ReaddirCosts,
    pub(super) reflink: ReflinkCosts,
}

impl OperationCosts {
    pub(in crate::filesystems::btrfs) fn new(costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            delayed: DelayedCosts::new(costs)?,
            create: CreateCosts::new(costs)?,
            write: WriteCosts::new(costs)?,
            unlink: UnlinkCosts::new(costs)?,
            rename: RenameParts::new(costs)?,
            rename_ref: costs.sum(&["rename.insert_ref"])?,
            readdir: ReaddirCosts::new(costs)?,
            reflink: ReflinkCosts::new(costs)?,
        })
    }

    /// Takes what reservations and the start of a handle are charged for out of the traced steps that they are part of.
    pub(in crate::filesystems::btrfs) fn without(mut self, transaction: &Transaction, delalloc: &Delalloc) -> Self {
        let Reservations { reserve_time, release_time, .. } = transaction.reservations;
        let join_time = transaction.join_time;
        let (create, unlink) = (&mut self.create, &mut self.unlink);
        for step in [&mut create.start, &mut unlink.lookup, &mut unlink.evict, &mut unlink.evict_pages] {
            *step = step.saturating_sub(reserve_time + join_time);
        }
        for step in [&mut create.tail, &mut unlink.delayed_index, &mut unlink.tail, &mut unlink.exit] {
            *step = step.saturating_sub(release_time);
        }
        let first_page = delalloc.time(&transaction.reservations, WasDirty { range: false, others: false });
        self.write.write = self.write.write.saturating_sub(first_page);
        let node = &mut self.delayed.run_node; // its handle, and its items' room
        *node = node.saturating_sub(release_time + join_time);
        self
    }

    /// Of a worker, for each directory or inode, besides the work on the tree.
    pub(in crate::filesystems::btrfs) fn run_delayed_node(&self) -> Time {
        self.delayed.run_node
    }
}
