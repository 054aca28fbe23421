//! `close` of a file: `xfs_release`, since 6.12 `xfs_file_release`, which gives back blocks behind the end of the file.
//!
//! A file of a few pages has such blocks only as long as its pages are not written back (`i_delayed_blks`), and a `close`
//! gives them back once: `XFS_IDIRTY_RELEASE`, since 6.12 `XFS_EOFBLOCKS_RELEASED`, keeps later ones from it.

use crate::cost_table;
use crate::filesystems::costs::Costs;
use crate::filesystems::xfs::inode::Inode;
use crate::filesystems::xfs::log::grant::TR_ITRUNCATE;
use crate::filesystems::xfs::log::Logged;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::File;
use crate::kernel::xfs::Release as Rule;
use crate::waist::Machine;
use crate::waist::{Account, Side};

cost_table!(ReleaseCosts {
    enter: ["cu_short.enter_close", "cu_short.try_file_iolock_excl"],
    unlock: ["cu_short.unlock_file_iolock_excl"],
    exit: ["cu_short.exit_close"],
    look: ["tmp_short.lock_file_ilock_shared_2", "tmp_short.unlock_file_ilock_shared_2"],
    free: [
        "tmp_short.log_reserve_2",
        "tmp_short.trans_alloc_2",
        "tmp_short.lock_file_ilock_excl_3",
        "tmp_short.defer_finish_2",
        "tmp_short.defer_finish_3",
        "tmp_short.trans_commit_2"
    ],
    free_commit: ["tmp_short.trans_free_2"],
    freed: ["tmp_short.unlock_file_ilock_excl_4"],
});

/// What closing files needs.
pub(crate) struct Release {
    costs: ReleaseCosts,
    rule: Rule,
}

impl Release {
    /// As the kernel has it.
    pub fn new(costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self { costs: ReleaseCosts::new(costs)?, rule: costs.rules().release })
    }
}

impl Xfs {
    pub(super) async fn release_file<M: Machine>(&self, m: &M, file: &File) {
        let (c, inode) = (&self.release.costs, self.inodes.inode(file.inode));
        m.run(Account::System, c.enter).await;
        inode.test_flags(m).await; // XFS_ITRUNCATED
        if self.wants_iolock(m, file, inode).await && m.try_lock(inode.iolock, Side::Write) {
            if self.inodes.tail(file.inode).sized {
                self.look_behind_end(m, file.inode, inode).await;
            }
            m.run(Account::System, c.unlock).await;
            m.unlock(inode.iolock, Side::Write).await;
        }
        m.run(Account::System, c.exit).await;
    }

    async fn wants_iolock<M: Machine>(&self, m: &M, file: &File, inode: Inode) -> bool {
        let asks = match self.release.rule {
            Rule::Always => return true,
            Rule::Sized => self.inodes.tail(file.inode).sized,
            Rule::Writers => file.writable,
        };
        if asks {
            inode.test_flags(m).await; // XFS_IDIRTY_RELEASE, XFS_EOFBLOCKS_RELEASED
        }
        asks && !self.inodes.tail(file.inode).released
    }

    /// `xfs_can_free_eofblocks`, and where it says yes, `xfs_free_eofblocks`.
    async fn look_behind_end<M: Machine>(&self, m: &M, slot: u32, inode: Inode) {
        let c = &self.release.costs;
        inode.peek(m).await;
        m.run(Account::System, c.look).await;
        if !self.sync.dirty.has_new(slot) {
            return;
        }
        if self.release.rule == Rule::Always {
            inode.test_flags(m).await; // XFS_IDIRTY_RELEASE, which the others have looked at before
        }
        if self.inodes.tail(slot).released {
            return;
        }
        let ticket = self.log.reserve(m, TR_ITRUNCATE).await;
        inode.ilock(m).await;
        m.run(Account::System, c.free).await;
        self.log.commit(m, Logged::items([inode.item()])).await;
        m.run(Account::System, c.free_commit).await;
        self.log.committed(m, ticket).await;
        inode.iunlock(m).await;
        m.run(Account::System, c.freed).await;
        inode.test_flags(m).await; // sets the flag
        self.inodes.set_released(slot);
    }
}
