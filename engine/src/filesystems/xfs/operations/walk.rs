//! A walk through directories whose files are not in memory: `getdents` and, for each name, a `stat` that has to find the name and to read
//! the inode (`xfs_lookup`, `xfs_iget_cache_miss`).
//!
//! What walkers of different directories share is the superblock's list of inodes. An inode cluster is read from the device by whoever
//! needs the first of its 32 inodes, with the buffer locked; directory blocks are taken for read ahead.

use crate::cost_table;
use crate::filesystems::inodes::listed::{self, Entry};
use crate::filesystems::xfs::log::clusters::INODES;
use crate::filesystems::xfs::mount::{Xfs, XfsDirectory};
use crate::filesystems::xfs::structures::directory::DirForm;
use crate::filesystems::DirId;
use crate::waist::Machine;
use crate::waist::{Access, Account, Side};

cost_table!(WalkCosts {
    before: ["openat.before_i_rwsem"],
    lookup: ["openat.under_i_rwsem", "cu_short.unlock_dir_ilock_shared"],
    node: [
        "cu_node.lock_dir_da_node",
        "cu_node.lock_dir_leafn",
        "cu_node.unlock_dir_da_node",
        "cu_node.unlock_dir_leafn"
    ],
    data: ["create_node_agf.lock_dir_data", "create_node_agf.unlock_dir_data"],
    iget: ["create_node.iget_miss"],
    cluster: ["create_node.lock_inode_cluster", "create_node.unlock_inode_cluster"],
    stat: ["call.fstat"],
});

/// The times of a walk.
pub(crate) struct Walk(WalkCosts);

impl Walk {
    pub(crate) fn new(costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        WalkCosts::new(costs).map(Self)
    }
}

impl Xfs {
    /// The `nth` file of a directory: its part of `getdents`, and `stat`. Files lie behind their directory's inode, in order.
    pub(crate) async fn walk_to<M: Machine>(&self, m: &M, dir: DirId, nth: u32) {
        m.at("walk");
        let (c, d) = (&self.walk.0, self.directory(dir));
        m.run(Account::System, self.sb.calls.readdir_name() + c.before).await;
        m.lock(d.i_rwsem, Side::Read).await; // lookup_slow
        self.find_name(m, &d).await;
        let (agno, first) = self.layout.borrow().geometry().split_ino(d.ino);
        let agino = first + nth + 1;
        self.read_inode(m, (agno, agino), listed::OTHERS, agino.is_multiple_of(INODES) || nth == 0).await;
        m.unlock(d.i_rwsem, Side::Read).await;
        m.run(Account::System, c.stat).await;
        self.sb.calls.dcache.unused(m).await;
    }

    /// `xfs_lookup` of a name whose file is not in memory.
    pub(super) async fn look_up_cold<M: Machine>(&self, m: &M, dir: DirId, slot: u32) {
        self.find_name(m, &self.directory(dir)).await;
        let inode = self.inodes.inode(slot);
        let (agno, agino) = self.layout.borrow().geometry().split_ino(inode.ino);
        let first = self.sb.cold.reads(inode.cluster.place.block);
        self.read_inode(m, (agno, agino), listed::file(slot), first).await;
        m.touch(inode.line, Access::Write);
    }

    /// `xfs_dir_lookup`.
    async fn find_name<M: Machine>(&self, m: &M, d: &XfsDirectory) {
        let c = &self.walk.0;
        m.lock(d.ilock, Side::Read).await;
        let form = self.layout.borrow().dir(d.id).form();
        let blocks = match form {
            DirForm::Short => 0,
            DirForm::Block | DirForm::Leaf => c.data,
            DirForm::Node => c.node + c.data,
        };
        m.run(Account::System, c.lookup + blocks).await;
        m.unlock(d.ilock, Side::Read).await;
    }

    /// `xfs_iget_cache_miss`; the first who needs a cluster reads it.
    async fn read_inode<M: Machine>(&self, m: &M, (agno, agino): (u32, u32), entry: Entry, first: bool) {
        let c = &self.walk.0;
        self.storage.memory.add_inode(m, &self.storage.writeback).await;
        let rest = self.sb.inodes.enter(m, entry, None, c.iget).await; // in no hash: inode_fake_hash
        m.run(Account::System, rest).await;
        let cluster = self.clusters.of(m, agno, agino);
        cluster.lock(m).await;
        if first {
            self.storage.read_uncounted(m, INODES * INODE_BYTES, "xfs_buf_iowait").await;
        }
        m.run(Account::System, c.cluster).await;
        cluster.unlock(m).await;
    }
}

const INODE_BYTES: u32 = 512;
