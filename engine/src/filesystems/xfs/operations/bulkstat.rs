//! `ioctl(XFS_IOC_BULKSTAT)`, inode by inode (`fs/xfs/xfs_itable.c`, `xfs_iwalk.c` of Linux 6.12): from an allocation group on, records of the
//! tree of inodes are copied with the AGI and the tree locked, up to 40 (what 2,048 inodes are taken to have). Then each inode of them that is
//! in use is brought in by its number, which nobody trusts: `xfs_imap_lookup` looks into the tree again, with the AGI locked. It is copied with
//! its ILOCK shared, and goes again, as it is not to be cached (`XFS_IGET_DONTCACHE`): onto the superblock's list and off it. An inode that is in
//! memory is only copied. Who walks begins at the group of its number and goes on to the next.
//!
//! Left out: the readahead of the clusters, for which here the first who needs one waits, and `pag_ici_lock`.

use crate::cost_table;
use crate::filesystems::inodes::listed::{self, Entry};
use crate::filesystems::xfs::log::clusters::INODES;
use crate::filesystems::xfs::mount::Xfs;
use crate::waist::{Account, Machine, Side};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

cost_table!(BulkstatCosts {
    record: ["bulkstat.record"],
    alloc: ["bulkstat.inode_alloc"],
    agi: ["bulkstat.read_agi"],
    imap: ["bulkstat.imap_lookup"],
    cluster: ["bulkstat.inode_from_disk"],
    insert: ["bulkstat.insert"],
    copy: ["bulkstat.copy_and_evict"],
    hit: ["bulkstat.in_memory"],
});

/// Records that are copied at a time (`xfs_iwalk_prefetch`).
const RECORDS: usize = 40;
const INODE_BYTES: u32 = 512;

/// Where a walk is.
#[derive(Default)]
struct Cursor {
    agno: u32,
    /// Where the records go on.
    next: u32,
    /// Inodes of those that were copied.
    inodes: VecDeque<u32>,
}

/// All walks, by who walks.
pub(crate) struct Bulkstat {
    costs: BulkstatCosts,
    walks: RefCell<BTreeMap<u32, Cursor>>,
}

impl Bulkstat {
    pub(crate) fn new(costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        Ok(Self { costs: BulkstatCosts::new(costs)?, walks: RefCell::default() })
    }
}

impl Xfs {
    /// The next inode of a walk.
    pub(super) async fn bulkstat_next<M: Machine>(&self, m: &M, who: u32) {
        m.at("bulkstat");
        let (agno, agino) = loop {
            let agno = {
                let groups = self.layout.borrow().geometry().agcount;
                let mut walks = self.bulkstat.walks.borrow_mut();
                let walk = walks.entry(who).or_insert_with(|| Cursor { agno: who % groups, ..Cursor::default() });
                match walk.inodes.pop_front() {
                    Some(agino) => break (walk.agno, agino),
                    None => walk.agno,
                }
            };
            self.copy_records(m, who, agno).await;
        };
        match self.inodes.in_memory(agno, agino).filter(|&slot| !self.sb.cold.has(slot)) {
            Some(slot) => self.bulkstat_cached(m, slot).await,
            None => self.bulkstat_one(m, (agno, agino), listed::passing(who)).await,
        }
    }

    /// `xfs_iwalk_ag` until its cache is full, or the group ends.
    async fn copy_records<M: Machine>(&self, m: &M, who: u32, agno: u32) {
        let group = self.group(agno);
        group.agi.lock(m).await;
        group.inobt.lock(m).await;
        let (records, inodes, next) = {
            let walks = self.bulkstat.walks.borrow();
            self.layout.borrow().groups().groups[agno as usize].inodes_from(walks[&who].next, RECORDS)
        };
        m.run(Account::System, self.bulkstat.costs.record * records.max(1)).await;
        group.inobt.unlock(m).await;
        group.agi.unlock(m).await;
        let groups = self.layout.borrow().geometry().agcount;
        let mut walks = self.bulkstat.walks.borrow_mut();
        let walk = walks.get_mut(&who).expect("it has begun");
        walk.inodes = inodes.into();
        match next {
            _ if !walk.inodes.is_empty() => walk.next = next.unwrap_or(u32::MAX),
            _ => (walk.agno, walk.next) = ((agno + 1) % groups, 0),
        }
    }

    /// `xfs_iget_cache_hit`.
    async fn bulkstat_cached<M: Machine>(&self, m: &M, slot: u32) {
        let inode = self.inodes.inode(slot);
        m.lock(inode.ilock, Side::Read).await;
        m.run(Account::System, self.bulkstat.costs.hit).await;
        m.unlock(inode.ilock, Side::Read).await;
    }

    /// `xfs_iget_cache_miss`, and the inode goes again.
    async fn bulkstat_one<M: Machine>(&self, m: &M, (agno, agino): (u32, u32), entry: Entry) {
        let (c, group) = (&self.bulkstat.costs, self.group(agno));
        m.run(Account::System, c.alloc + c.agi).await;
        group.agi.lock(m).await;
        group.inobt.lock(m).await;
        m.run(Account::System, c.imap).await;
        group.inobt.unlock(m).await;
        group.agi.unlock(m).await;
        let cluster = self.clusters.of(m, agno, agino);
        cluster.lock(m).await;
        if self.sb.cold.reads(cluster.place.block) {
            self.storage.read_uncounted(m, INODES * INODE_BYTES, "xfs_buf_iowait").await;
        }
        m.run(Account::System, c.cluster).await;
        cluster.unlock(m).await;
        let rest = self.sb.inodes.enter(m, entry, None, c.insert).await;
        m.run(Account::System, rest).await;
        let rest = self.sb.inodes.leave(m, entry, None, c.copy).await;
        m.run(Account::System, rest).await;
    }
}
