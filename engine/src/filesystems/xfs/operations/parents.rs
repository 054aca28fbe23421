//! Parent pointers (`fs/xfs/libxfs/xfs_parent.c`, since 6.10): each inode has an attribute for each of its names, with the directory's inode and
//! generation. Who changes a name intends to change the attribute, commits, and does so in the next transaction of the chain, in which the ILOCKs
//! are still held and buffers are not any more (`xfs_attr_defer_add`, `xfs_defer_finish`, `xfs_attr_set_iter`; 6.18).
//!
//! The intent and its end are in the same checkpoint as a rule, so that neither is written to the log (`XFS_LI_WHITEOUT`); what they take there
//! is left out. So are attributes that lie in a block, of an inode with more than a dozen short names.

use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::xfs::inode::Inode;
use crate::filesystems::xfs::log::grant::Ticket;
use crate::filesystems::xfs::log::Logged;
use crate::filesystems::xfs::mount::Xfs;
use crate::waist::Machine;
use crate::waist::{Account, Time};

cost_table!(ParentCosts {
    reserve: ["parent.reserve"],
    intend: ["parent.defer", "parent.intent", "parent.logged"],
    first: ["parent.set_first"],
    set: ["parent.set"],
    remove: ["parent.remove"],
    relog: ["parent.relog"],
    commit: ["parent.commit"],
    commit_relogged: ["parent.commit_relogged"],
});

/// What happens to the parent pointers of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParentChange {
    /// A new inode gets its first (`xfs_parent_addname`).
    First,
    /// One more.
    Add,
    /// One is gone (`xfs_parent_removename`).
    Remove,
    /// One is another (`xfs_parent_replacename`): the old one is removed in a transaction, the new one set in the next.
    Replace,
}

/// Whether inodes have them, and what they take.
pub(in crate::filesystems::xfs) struct Parents {
    on: bool,
    costs: ParentCosts,
}

impl Parents {
    pub(in crate::filesystems::xfs) fn new(on: bool, costs: &Costs<'_>) -> Result<Self, String> {
        if on && !costs.rules().parent_pointers {
            return Err("filesystem.parent: this kernel has no parent pointers, as before 6.10".to_owned());
        }
        Ok(Self { on, costs: ParentCosts::new(costs)? })
    }

    /// What a transaction on a name takes longer before it has its ILOCKs.
    pub(super) fn reserve(&self) -> Time {
        if self.on {
            self.costs.reserve
        } else {
            0
        }
    }

    /// And until its commit is done.
    pub(super) fn intend(&self) -> Time {
        if self.on {
            self.costs.intend
        } else {
            0
        }
    }

    /// The transactions that follow: each until its commit, and that.
    fn steps(&self, change: ParentChange) -> arrayvec::ArrayVec<(Time, Time), 2> {
        let c = &self.costs;
        let last = |work| (work, c.commit);
        let steps = match change {
            ParentChange::First => [None, Some(last(c.first))],
            ParentChange::Add => [None, Some(last(c.set))],
            ParentChange::Remove => [None, Some(last(c.remove))],
            ParentChange::Replace => [Some((c.remove + c.relog, c.commit_relogged)), Some(last(c.set))],
        };
        steps.into_iter().flatten().filter(|_| self.on).collect()
    }
}

impl Xfs {
    /// The end of a transaction on a name of this inode, whose ILOCK is held.
    pub(super) async fn end_name<M: Machine>(&self, m: &M, mut ticket: Ticket, inode: &Inode, change: ParentChange) {
        for (work, commit) in self.parents.steps(change) {
            ticket = self.log.rolled(m, ticket).await;
            m.run(Account::System, work).await;
            self.log.commit(m, Logged::items([inode.item()])).await;
            m.run(Account::System, commit).await;
        }
        self.log.committed(m, ticket).await;
    }
}
