//! fsync: the data go to the device or into the tree, the inode's items into the log, and one task writes the log for all who came
//! before (`btrfs_sync_file`, `btrfs_log_inode` and `log_one_extent` of Linux 5.9 to 6.18).
//!
//! A new file is logged in full, its items copied from the subvolume's tree together; of others the inode and the extents just
//! written. Left out: extended attributes but for looking for them.

use super::LogTree;
use crate::cost_table;
use crate::filesystems::btrfs::data::Extent;
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::transaction::Handle;
use crate::filesystems::File;
use crate::kernel::btrfs::{
    ExtentMapRelease, FsyncWait, FullCommit, InodeLogged, LogCsums, LogDirectory, LogInode, RenamePin,
};
use crate::waist::Machine;
use crate::waist::{Account, Side, Time};

cost_table!(pub(super) FsyncCosts {
    writepages: ["wfsync.reserve_extent", "wfsync.ordered_extent_add", "wfsync.get_extent", "wfsync.submit"],
    write_inline: ["wfsync.get_extent"],
    page: ["writeback_page"],
    item: ["wfsync.log_item"],
    further_item: ["delayed_item"],
    fill: ["fill_item"],
    range: ["extent_io"],
    lookup: ["dread.lookup_csums"],
    clone: ["copy"],
    exit: ["wfsync.exit"],
});

impl FsyncCosts {
    /// Time under the lock of a leaf into which so many items go together.
    pub(super) fn of_items(&self, items: usize) -> Time {
        self.item + self.further_item * (items as Time).saturating_sub(1)
    }
}

/// Times of an fsync, and how kernels differ in it.
pub struct Fsync {
    pub(super) costs: FsyncCosts,
    pub(super) csums: LogCsums,
    extent_map_release: ExtentMapRelease,
    pub(super) inode: LogInode,
    pub(super) copies_old_extents: bool,
    pub(super) fills_in_leaf: bool,
    pub(super) directory: LogDirectory,
    pub(super) full_commit: FullCommit,
    pub(super) wait: FsyncWait,
    asks_ordered: bool,
    pub(super) rename_syncs: bool,
    pub(crate) rename_pin: RenamePin,
    pub(crate) pin_locks_log: bool,
    pub(crate) rename_unlogs: bool,
    pub(super) unlink_logs_inode: bool,
    pub(super) inode_logged: InodeLogged,
    pub(super) new_name_asks: bool,
    pub(crate) rename_balances: bool,
    pub(super) remembers_no_xattrs: bool,
    pub(super) logs_parents: bool,
    pub(super) relogs_ancestors: bool,
    pub(super) logs_parent_of_deleted: bool,
}

impl Fsync {
    pub(crate) fn new(costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        let rules = costs.rules();
        Ok(Self {
            costs: FsyncCosts::new(costs)?,
            csums: rules.log_csums,
            extent_map_release: rules.extent_map_release,
            inode: rules.log_inode,
            copies_old_extents: rules.copies_old_extents,
            fills_in_leaf: rules.fills_item_in_leaf,
            directory: rules.log_directory,
            full_commit: rules.full_commit,
            wait: rules.fsync_wait,
            asks_ordered: rules.fsync_asks_ordered,
            rename_syncs: rules.rename_syncs_log,
            rename_pin: rules.rename_pin,
            pin_locks_log: rules.pin_locks_log,
            rename_unlogs: rules.rename_unlogs,
            unlink_logs_inode: rules.unlink_logs_inode,
            inode_logged: rules.inode_logged,
            new_name_asks: rules.new_name_asks,
            rename_balances: rules.rename_balances,
            remembers_no_xattrs: rules.remembers_no_xattrs,
            logs_parents: rules.logs_parents,
            relogs_ancestors: rules.relogs_ancestors,
            logs_parent_of_deleted: rules.logs_parent_of_deleted,
        })
    }
}

impl Btrfs {
    /// `btrfs_sync_file`.
    pub(crate) async fn sync_file<M: Machine>(&self, m: &M, file: &File) {
        m.at("fsync");
        self.sb.calls.files.held(m, file.inode);
        let inode = self.file(file.inode);
        if self.fsync.extent_map_release == ExtentMapRelease::FullSync {
            self.data(file.inode).release_maps();
        }
        let writeback = self.write_back(m, file.inode, inode).await;
        m.lock(inode.i_rwsem, Side::Write).await;
        let log = &self.fs_root(inode.ino).log;
        log.announce(m);
        self.wait_for_data(m, file.inode, &writeback).await;
        log.announce(m);
        if self.skips_logging(file.inode, log) {
            return m.unlock(inode.i_rwsem, Side::Write).await;
        }
        let handle = self.start_transaction(m).await;
        let mine = self.fill_log(m, file.inode, inode, &writeback.extents).await;
        m.unlock(inode.i_rwsem, Side::Write).await;
        self.end_sync(m, log, handle, mine).await;
    }

    /// `skip_inode_logging`: an earlier fsync has logged all of it and written that, and, since 5.13, no write of its data is under way.
    fn skips_logging(&self, slot: u32, log: &LogTree) -> bool {
        let under_way = self.fsync.asks_ordered && self.ordered.has(slot);
        !under_way && !self.data(slot).needs_log(self.transid(), self.transaction.committed(), log.on_disk())
    }

    /// The log transaction that has what was synced goes to the disk, or the whole transaction if none has.
    pub(super) async fn end_sync<M: Machine>(&self, m: &M, log: &LogTree, handle: Handle, mine: Option<u64>) {
        let synced = match mine {
            Some(mine) => log.sync(m, mine, || self.needs_full_commit()).await,
            None => false,
        };
        if synced {
            self.end_transaction(m, handle).await;
        } else {
            self.commit_for_fsync(m, handle).await;
        }
        m.run(Account::System, self.fsync.costs.exit).await;
    }

    /// `btrfs_log_inode_parent`: the number of the log transaction that has the file. None if the transaction must be committed.
    async fn fill_log<M: Machine>(&self, m: &M, slot: u32, inode: Inode, written: &[Extent]) -> Option<u64> {
        if self.fsync.full_commit == FullCommit::SinceCommitted && self.transaction.full_commit_under_way() {
            return None;
        }
        if self.lost_name(m, slot, inode.dir).await {
            self.transaction.set_full_commit(self.transid());
            return None;
        }
        let is_new = self.data(slot).is_new();
        let log = &self.fs_root(inode.ino).log;
        let mine = log.start(m, || self.needs_full_commit()).await?;
        self.log_inode(m, slot, inode, written).await;
        if self.data(slot).lost_or_got_link() == self.transid() {
            self.log_parents(m, slot).await;
        } else if is_new {
            self.log_new_ancestor(m, inode.dir).await;
        }
        log.end(m).await;
        Some(mine)
    }

    /// `btrfs_need_log_full_commit`. New block groups are in no log either (`btrfs_make_block_group`).
    pub(super) fn needs_full_commit(&self) -> bool {
        self.transaction.needs_full_commit(self.transid()) || self.extents.refs.space.borrow().has_new_group()
    }
}
