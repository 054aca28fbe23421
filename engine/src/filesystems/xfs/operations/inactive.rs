//! What an inodegc worker does for every inode on its list: `xfs_inactive` (truncation of a written file, the attribute
//! fork, then `xfs_inactive_ifree`). The third AGI hold of every file.

use super::inodegc::{InodeGc, Limits};
use crate::cost_table;
use crate::filesystems::xfs::inode::Inode;
use crate::filesystems::xfs::log::buffer::{lock_all, unlock_all};
use crate::filesystems::xfs::log::grant::{Reservation, TR_ATTRINVAL, TR_IFREE, TR_ITRUNCATE};
use crate::filesystems::xfs::log::Logged;
use crate::filesystems::xfs::mount::Xfs;
use crate::kernel::xfs::StatfsInodegc;
use crate::kernel::xfs::UnlinkedList;
use crate::waist::Machine;
use crate::waist::{Account, Time};
use std::rc::Rc;

cost_table!(InactiveCosts {
    truncate: [
        "tmp_short_gc.log_reserve",
        "tmp_short_gc.trans_alloc",
        "tmp_short_gc.lock_file_ilock_excl",
        "tmp_short_gc.defer_finish",
        "tmp_short_gc.trans_roll",
        "tmp_short_gc.trans_dup",
        "tmp_short_gc.trans_commit"
    ],
    truncate_commit: [
        "tmp_short_gc.trans_free",
        "tmp_short_gc.defer_finish_2",
        "tmp_short_gc.trans_commit_2",
        "tmp_short_gc.trans_free_2",
        "tmp_short_gc.unlock_file_ilock_excl"
    ],
    attr: [
        "cu_short_gc.inode_inactivating",
        "cu_short_gc.lock_file_ilock_shared",
        "cu_short_gc.unlock_file_ilock_shared",
        "cu_short_gc.log_reserve",
        "cu_short_gc.trans_alloc",
        "cu_short_gc.lock_file_ilock_excl",
        "cu_short_gc.defer_finish",
        "cu_short_gc.trans_commit"
    ],
    attr_commit: ["cu_short_gc.trans_free", "cu_short_gc.unlock_file_ilock_excl"],
    agi: [
        "cu_short_gc.log_reserve_2",
        "cu_short_gc.trans_alloc_2",
        "cu_short_gc.lock_file_ilock_excl_2",
        "cu_short_gc.read_agi",
        "cu_short_gc.lock_agi"
    ],
    ifree: [
        "cu_short_gc.lock_inobt",
        "cu_short_gc.lock_finobt",
        "cu_short_gc.iunlink_remove",
        "cu_short_gc.read_agi_2",
        "cu_short_gc.iunlink_remove_2",
        "cu_short_gc.defer_finish_2",
        "cu_short_gc.trans_commit_2"
    ],
    chunk: ["ifree.chunk"],
    cluster: ["create_node.lock_inode_cluster", "create_node.unlock_inode_cluster"],
    alone: ["unlink_node_gc.trans_commit_2", "unlink_node_gc.unlock_file_ilock_excl_2"],
    listed: [
        "unlink_node_list_gc.trans_commit_2",
        "unlink_node_list_gc.lock_inode_cluster",
        "unlink_node_list_gc.unlock_file_ilock_excl_2",
        "unlink_node_list_gc.unlock_inode_cluster"
    ],
    traced_regions: ["iunlink_gc.traced_regions"],
    commit: ["cu_short_gc.unlock_file_ilock_excl_2"],
    release: [
        "cu_short_gc.unlock_agi",
        "cu_short_gc.unlock_inobt",
        "cu_short_gc.unlock_finobt",
        "cu_short_gc.trans_free_2",
        "cu_short_gc.inode_set_reclaimable"
    ],
});

/// The inodegc worker of one CPU, or of one allocation group.
pub struct Worker {
    pub(crate) fs: Rc<Xfs>,
    pub(crate) list: usize,
}

impl Worker {
    /// Its program: frees what is on its list, then sleeps until it is woken, for ever.
    pub async fn run<M: Machine>(self, m: M) {
        let mut batch = Vec::new();
        let gc = &self.fs.inodegc[self.list];
        m.at("inodegc");
        loop {
            if !gc.start(&m, &mut batch) {
                gc.arm(&m);
                m.rest().await;
                continue;
            }
            for (slot, written) in batch.drain(..) {
                self.fs.inactive(&m, slot, written).await;
            }
            gc.flushed(&m).await;
        }
    }
}

/// How inodes are inactivated.
pub(crate) struct Inactive {
    costs: InactiveCosts,
    statfs: StatfsInodegc,
    /// Inodes have an attribute fork, which goes first (`xfs_attr_inactive`).
    attribute_forks: bool,
}

impl Inactive {
    pub(crate) fn new(attribute_forks: bool, costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        Ok(Self { costs: InactiveCosts::new(costs)?, statfs: costs.rules().statfs_inodegc, attribute_forks })
    }

    /// Of a transaction that truncates, before its commit and in it.
    pub(super) fn truncate(&self) -> (Time, Time) {
        (self.costs.truncate, self.costs.truncate_commit)
    }
}

impl Xfs {
    pub(crate) async fn inactive<M: Machine>(&self, m: &M, slot: u32, written: bool) {
        let inode = self.inodes.inode(slot);
        let c = &self.inactive.costs;
        if written || !self.layout.borrow().file_extents(inode.ino).is_empty() {
            self.itruncate(m, &inode, None).await;
        }
        self.give_data_back(slot);
        self.sb.calls.files.whole_inode(m, slot);
        self.inodes.touch(m, slot);
        inode.peek(m).await;
        if self.inactive.attribute_forks {
            self.inode_transaction(m, &inode, TR_ATTRINVAL, (c.attr, c.attr_commit)).await;
        }
        self.ifree(m, &inode).await;
        self.inodes.set_reclaimable(m, slot);
    }

    /// What `xfs_fs_statfs` does first.
    pub(super) async fn hurry_inodegc<M: Machine>(&self, m: &M) {
        if self.inactive.statfs == StatfsInodegc::Nothing {
            return;
        }
        self.inodegc.iter().for_each(|gc| gc.push(m));
        if let Some(queue) = &self.inodegc_queue {
            queue.flush(m, &self.inodegc).await;
        }
    }

    /// `xfs_itruncate_extents`: the inode is logged, then the blocks of the file are given back, or so many at its end.
    pub(super) async fn itruncate<M: Machine>(&self, m: &M, inode: &Inode, tail: Option<u32>) {
        let (work, commit) = self.inactive.truncate();
        let ticket = self.log.reserve(m, TR_ITRUNCATE).await;
        inode.ilock(m).await;
        m.run(Account::System, work).await;
        self.log.commit(m, Logged::items([inode.item()])).await;
        m.run(Account::System, commit).await;
        let extents = match tail {
            None => self.layout.borrow_mut().take_file_blocks(inode.ino),
            Some(blocks) => self.layout.borrow_mut().take_file_tail(inode.ino, blocks),
        };
        let ticket = self.free_extents(m, ticket, extents).await;
        self.log.committed(m, ticket).await;
        inode.iunlock(m).await;
    }

    /// A transaction that logs only the inode.
    pub(super) async fn inode_transaction<M: Machine>(
        &self,
        m: &M,
        inode: &Inode,
        kind: Reservation,
        (work, commit): (Time, Time),
    ) {
        let ticket = self.log.reserve(m, kind).await;
        inode.ilock(m).await;
        m.run(Account::System, work).await;
        self.log.commit(m, Logged::items([inode.item()])).await;
        m.run(Account::System, commit).await;
        self.log.committed(m, ticket).await;
        inode.iunlock(m).await;
    }

    /// `xfs_inactive_ifree`: off the unlinked list, back into inobt and finobt, all under the AGI.
    async fn ifree<M: Machine>(&self, m: &M, inode: &Inode) {
        let c = &self.inactive.costs;
        let ticket = self.log.reserve(m, TR_IFREE).await;
        inode.ilock(m).await;
        m.run(Account::System, c.agi).await;
        let group = self.group_of(inode.ino);
        group.agi.lock(m).await;
        group.inobt.lock(m).await;
        group.finobt.lock(m).await;
        let (freed, list) = {
            let mut layout = self.layout.borrow_mut();
            (layout.ifree(inode.ino), layout.iunlink_remove(inode.ino).expect("an unlinked inode is on a list"))
        };
        self.drop_inode_buffers(m, inode.ino, &freed).await;
        let inodes = self.rewritten(m, list);
        self.log.precommit(m, &[inode.item()]).await;
        if self.unlinked == UnlinkedList::OnDisk {
            self.read_next(m, inode).await;
            lock_all(m, &inodes).await;
        }
        let checks = self.check_free(freed.agno);
        m.run(Account::System, c.ifree + checks + if freed.chunk_freed { c.chunk } else { 0 }).await;
        if self.unlinked == UnlinkedList::InMemory {
            lock_all(m, &inodes).await;
        }
        let each = (c.listed - c.alone).saturating_sub(c.traced_regions);
        m.run(Account::System, self.clusters.logging(m, &inodes, each)).await;
        let agino = self.number(inode.ino).agino;
        let items = [inode.item(), group.agi_of_unlinked(agino).item()];
        self.log.commit(m, Logged::items(items).buffers(&group.records_of(agino)).buffers(&inodes)).await;
        self.mod_ifree(m).await;
        m.run(Account::System, c.commit).await;
        inode.iunlock(m).await; // the inode is the transaction's own: released first
        group.agi.unlock(m).await;
        group.inobt.unlock(m).await;
        group.finobt.unlock(m).await;
        unlock_all(m, &inodes).await;
        match freed.chunk_freed {
            true => self.free_blocks(m, group.agf, ticket, Logged::default()).await,
            false => self.log.committed(m, ticket).await,
        }
        m.run(Account::System, c.release).await;
    }

    /// Which inode is next on the unlinked list was told by the inode's buffer only, before 6.0.
    async fn read_next<M: Machine>(&self, m: &M, inode: &Inode) {
        let (agno, agino) = self.layout.borrow().geometry().split_ino(inode.ino);
        let cluster = self.clusters.of(m, agno, agino);
        cluster.lock(m).await;
        m.run(Account::System, self.inactive.costs.cluster).await;
        cluster.unlock(m).await;
    }
}

/// So many lists.
pub(crate) fn lists(count: usize, limits: Limits) -> Vec<InodeGc> {
    (0..count).map(|_| InodeGc::new(limits)).collect()
}
