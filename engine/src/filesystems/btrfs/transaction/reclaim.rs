//! Reclaim of room for metadata before it is short (`need_preemptive_reclaim` and `btrfs_preempt_reclaim_metadata_space` of
//! `fs/btrfs/space-info.c`, since 5.12): what is delayed holds reservations sixteen times the size of a block and more, so a
//! worker does some of it, or commits, when they take half of the room that may be promised.
//!
//! Left out: the reserve of all trees together (some MiB), and that the threshold moves with how often tasks wait for room (`tickets`).

use super::tickets::{Tickets, Want};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::space::outstanding::Shrink;
use crate::filesystems::btrfs::tree::key::NODE_SIZE;
use crate::filesystems::btrfs::tree::MAX_LEVEL;
use crate::filesystems::NoSpace;
use crate::kernel::btrfs::Reserving;
use crate::kernel::Rules;
use crate::waist::Machine;
use crate::waist::{LockId, TaskId};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes that are reserved to insert one item: a path may be copied and split at each level (`btrfs_calc_insert_metadata_size`).
pub const ITEM: u64 = NODE_SIZE as u64 * MAX_LEVEL as u64 * 2;
/// Items of an unlink (`BTRFS_UNLINK_METADATA_UNITS`: the orphan, both entries, the reference, both inodes), and of a create (the inode with
/// its reference, both entries, the directory's inode, what a security module adds; `btrfs_new_inode_prepare`).
pub const UNLINK: u64 = 6;
/// Those of a create.
pub const CREATE: u64 = 5;
/// The global reserve is no larger.
const MOST_GLOBAL: u64 = 512 << 20;
/// Reservations up to here are never too many.
const HARMLESS: u64 = 128 << 20;

/// The worker that reclaims, and who waits for room.
pub struct Reclaim {
    worker: Cell<Option<TaskId>>,
    busy: Cell<bool>,
    pub(super) reserving: Reserving,
    reserves_refs: bool,
    pub(in crate::filesystems::btrfs) tickets: Tickets,
}

impl Reclaim {
    /// Nobody waits.
    pub fn new(rules: &Rules) -> Self {
        let (worker, busy, tickets) = Default::default();
        Self { worker, busy, reserving: rules.reserving, reserves_refs: rules.reserves_refs, tickets }
    }
}

/// Bytes of metadata that could be had back, by what holds them.
pub(super) struct Reclaimable {
    pub(super) items: u64,
    pub(super) refs: u64,
    pub(super) pinned: u64,
    pub(super) delalloc: u64,
}

impl Reclaimable {
    pub(super) fn all(&self) -> u64 {
        self.items + self.refs + self.pinned + self.delalloc
    }
}

impl Btrfs {
    pub(super) fn reclaimable(&self) -> Reclaimable {
        Reclaimable {
            items: self.delayed.borrow().items() as u64 * ITEM,
            refs: self.extents.refs.waiting() as u64 * self.ref_bytes(),
            pinned: self.extents.refs.space.borrow().pinned_bytes(),
            delalloc: self.delalloc_room(),
        }
    }

    /// Bytes for a delayed ref, which is an item of the extent tree and, if there is one, of the free space tree
    /// (`btrfs_calc_delayed_ref_bytes`).
    pub(in crate::filesystems::btrfs) fn ref_bytes(&self) -> u64 {
        if self.extents.caches.is_some() {
            ITEM
        } else {
            2 * ITEM
        }
    }

    /// Bytes of metadata that are promised: to handles, to what is delayed and to the global reserve; and what is pinned.
    pub(super) fn reserved(&self) -> u64 {
        self.reclaimable().all() + self.transaction.held.get() + self.global_reserve()
    }

    /// `btrfs_update_global_block_rsv`: as much as the trees have that a commit changes, and at least what an unlink takes, which may
    /// have to do with it. (Left out: that before 6.4 the unlink's delayed references were not in it.)
    pub(in crate::filesystems::btrfs) fn global_reserve_size(&self) -> u64 {
        let e = &self.extents;
        let trees = [&e.extent, &e.csum, &e.roots, &e.free_space];
        let trees = &trees[..if e.caches.is_some() { 3 } else { 4 }];
        let used: u64 = trees.iter().map(|root| root.tree.borrow().bytes_used()).sum();
        let least = (trees.len() as u64 + UNLINK) * ITEM + UNLINK * self.ref_bytes();
        used.max(least).min(MOST_GLOBAL)
    }

    /// The room that a change of so many items reserves when it starts; since 6.7 for the delayed references of as many, too, which who
    /// may take from the global reserve does without in the end (`btrfs_reserve_trans_metadata`).
    pub(crate) async fn reserve_items<M: Machine>(&self, m: &M, items: u64, steals: bool) -> Result<u64, NoSpace> {
        let bytes = items * ITEM;
        if self.reclaim.reserves_refs {
            let all = bytes + items * self.ref_bytes();
            match self.reserve_metadata(m, Want { bytes: all, steals }).await {
                Ok(()) => return Ok(all),
                Err(error) if !steals => return Err(error),
                Err(_) => {}
            }
        }
        self.reserve_metadata(m, Want { bytes, steals }).await?;
        Ok(bytes)
    }

    fn needs_reclaim(&self) -> bool {
        let reclaimable = self.reclaimable();
        if reclaimable.all() <= HARMLESS {
            return false;
        }
        let all = reclaimable.all() - if self.mostly_ordered() { reclaimable.delalloc } else { 0 };
        let space = self.extents.refs.space.borrow();
        let nearly_full = space.metadata_used() >= space.metadata_bytes() / 10 * 9;
        !nearly_full && all >= space.promised(false) / 2
    }

    /// The end of a reservation (`__reserve_bytes`).
    pub(crate) fn reclaim_if_needed<M: Machine>(&self, m: &M) {
        if let (Some(worker), false) = (self.reclaim.worker.get(), self.reclaim.busy.get()) {
            if self.needs_reclaim() {
                self.reclaim.busy.set(true);
                m.wake(worker);
            }
        }
    }

    /// The program of the worker.
    pub async fn reclaim_worker<M: Machine>(m: M, fs: Rc<Self>) {
        m.at("reclaim");
        let mutex = fs.extents.new_runner(&m);
        fs.reclaim.worker.set(Some(m.task()));
        loop {
            m.park().await;
            while fs.needs_reclaim() && fs.reclaim_some(&m, mutex).await {}
            fs.reclaim.busy.set(false);
        }
    }

    /// A quarter of what holds most (`flush_space`); whether there was anything.
    async fn reclaim_some<M: Machine>(&self, m: &M, mutex: LockId) -> bool {
        let Reclaimable { items, refs, pinned, delalloc } = self.reclaimable();
        if delalloc > items + refs {
            self.shrink_delalloc(m, (delalloc / 4, Shrink::Once), || false).await;
            return true;
        }
        let handle = self.transaction.join(m).await;
        if pinned > items + refs {
            self.commit(m, handle, mutex).await;
            return true;
        }
        let mut some = true;
        if items > refs {
            some = self.run_nodes(m, items / 4 / ITEM * 2).await;
        } else {
            self.extents.run_delayed_refs(m, mutex, (refs / 4 / self.ref_bytes()).max(1) as usize).await;
        }
        self.transaction.end(m, handle).await;
        some
    }

    /// Does what is delayed for so many directories or inodes, one at least (`btrfs_run_delayed_items_nr`); whether there were so many.
    pub(super) async fn run_nodes<M: Machine>(&self, m: &M, nodes: u64) -> bool {
        for _ in 0..nodes.max(1) {
            let Some(next) = self.delayed.borrow_mut().next_prepared() else { return false };
            self.commit_delayed_node(m, next).await;
        }
        true
    }
}
