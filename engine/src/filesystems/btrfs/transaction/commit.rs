//! The commit of a transaction (`btrfs_commit_transaction` of Linux 5.9 to 6.18): by the transaction thread every so often, by
//! reclaim, and by each fsync that the log cannot serve.

use super::Handle;
use crate::cost_table;
use crate::filesystems::btrfs::block_io::{PAGES, SUPER_INFO_OFFSET};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::space::Group;
use crate::filesystems::btrfs::tree::Dirty;
use crate::filesystems::costs::Costs;
use crate::filesystems::BLOCK;
use crate::kernel::btrfs::{CommitFlush, CommitStart};
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use crate::writeback::{metadata_of, METADATA};
use std::rc::Rc;

cost_table!(CommitCosts { block: ["commit_block"], unpin: ["unpin"] });

/// Times of a commit, and how kernels differ in it.
pub struct Commits {
    costs: CommitCosts,
    start: CommitStart,
    flush: CommitFlush,
}

impl Commits {
    pub(crate) fn new(costs: &Costs<'_>) -> Result<Self, String> {
        let rules = costs.rules();
        Ok(Self { costs: CommitCosts::new(costs)?, start: rules.commit_start, flush: rules.commit_flush })
    }

    /// CPU time of who writes blocks, besides checking them.
    pub(super) fn time(&self, dirty: Dirty) -> Time {
        self.costs.block * dirty.blocks
    }
}

impl Btrfs {
    /// The program of the transaction thread: commits what has run for `ticks` ticks of this length.
    pub async fn transaction_thread<M: Machine>(m: M, fs: Rc<Self>, ticks: u64, tick: u64) {
        m.at("commit");
        let mutex = fs.extents.new_runner(&m);
        let mut next = ticks;
        loop {
            m.wake_at_tick(m.task(), next);
            m.park().await;
            let age = (m.now() - fs.transaction.began()) / tick;
            next = ticks.saturating_sub(age).max(1);
            if age + 1 >= ticks {
                let handle = fs.transaction.join(&m).await;
                fs.commit(&m, handle, mutex).await;
                next = ticks;
            }
        }
    }

    /// An fsync's commit: others that come for it meanwhile wait for the one who began.
    pub(crate) async fn commit_for_fsync<M: Machine>(&self, m: &M, handle: Handle) {
        let mutex = self.extents.new_runner(m);
        self.commit(m, handle, mutex).await;
        m.drop_lock(mutex);
    }

    /// Commits the transaction of a handle, or waits for who does.
    ///
    /// Most delayed refs are run while handles go on; what they then add is run when those that are started are kept out, and
    /// the last, with the delayed items, when nobody may change anything.
    pub(super) async fn commit<M: Machine>(&self, m: &M, handle: Handle, mutex: LockId) {
        let mine = self.transid();
        let each = self.commits.flush == CommitFlush::Each;
        if self.transaction.begin_flush() || each {
            self.extents.run_delayed_refs(m, mutex, self.extents.refs.waiting()).await;
        }
        if self.transaction.begin_groups() {
            self.start_dirty_groups(m, mutex).await;
        }
        if !self.transaction.begin_commit() {
            self.transaction.end(m, handle).await;
            return self.transaction.wait_for_commit(m, mine, each).await;
        }
        if self.commits.start == CommitStart::AtOnce {
            self.transaction.keep_starts_out(m);
        }
        self.transaction.wait_for_commit(m, mine - 1, each).await;
        self.transaction.keep_starts_out(m);
        self.transaction.end(m, handle).await;
        self.run_delayed_items(m).await;
        self.transaction.block_starts(m).await;
        self.run_delayed_items(m).await;
        self.transaction.block_all(m).await;
        self.run_delayed_items(m).await;
        self.write_dirty_groups(m, mutex).await;
        m.lock(self.log_roots.tree_log_mutex, Side::Write).await;
        let dirty = self.next_transaction(m);
        self.write_transaction(m, mine, dirty).await;
        self.transaction.finish(m, mine, false);
        m.unlock(self.log_roots.tree_log_mutex, Side::Write).await;
        let extents = self.extents.refs.space.borrow_mut().unpin();
        m.run(Account::System, self.commits.costs.unpin * extents).await;
        self.transaction.finish(m, mine, true);
        self.grant_tickets(m).await; // unpin_extent_range
    }

    /// `btrfs_start_dirty_block_groups` (since 4.1): once a transaction, while others go on, what has changed of block groups is
    /// written, and once more what that has changed.
    async fn start_dirty_groups<M: Machine>(&self, m: &M, mutex: LockId) {
        for _ in 0..2 {
            let dirty = self.extents.refs.space.borrow_mut().take_dirty_groups();
            if dirty.is_empty() {
                return;
            }
            self.extents.create_pending_groups(m).await;
            for group in dirty {
                self.write_cache(m, group, None).await;
                self.extents.update_group_item(m, group).await;
            }
            self.extents.run_delayed_refs(m, mutex, self.extents.refs.waiting()).await;
        }
    }

    /// `btrfs_write_dirty_block_groups` and delayed refs, those that come of it as well, until there are none
    /// (`commit_cowonly_roots`).
    async fn write_dirty_groups<M: Machine>(&self, m: &M, mutex: LockId) {
        loop {
            self.extents.run_delayed_refs(m, mutex, usize::MAX).await;
            while let Some(group) = self.next_dirty_group() {
                self.write_cache(m, group, Some(mutex)).await;
                self.extents.create_pending_groups(m).await;
                self.extents.update_group_item(m, group).await;
            }
            self.wait_for_caches(m).await;
            if self.extents.refs.waiting() == 0 {
                return;
            }
        }
    }

    fn next_dirty_group(&self) -> Option<Group> {
        self.extents.refs.space.borrow_mut().take_dirty_group()
    }

    /// Nobody has a handle: what is changed from now on belongs to the next transaction. Returns what this one is to write.
    fn next_transaction<M: Machine>(&self, m: &M) -> Dirty {
        let subvolumes = self.fs_roots.borrow();
        let dirty: Dirty = subvolumes.iter().map(|fs_root| fs_root.root.tree.borrow_mut().end_transaction()).sum();
        let dirty = [dirty, self.extents.next_transaction()];
        subvolumes.iter().for_each(|fs_root| fs_root.log.forget());
        self.log_roots.forget();
        self.extents.refs.space.borrow_mut().begin_commit();
        self.transaction.unblock(m);
        self.storage.writeback.note(METADATA, 0);
        dirty.into_iter().sum()
    }

    /// `btrfs_write_and_wait_transaction`, which waits for what the flusher has under way of it as well, and `write_all_supers`.
    async fn write_transaction<M: Machine>(&self, m: &M, number: u64, dirty: Dirty) {
        let (wb, pages) = (&self.storage.writeback, dirty.blocks * PAGES);
        wb.begin(pages);
        m.run(Account::System, self.commits.time(dirty) + self.blocks.check(dirty)).await;
        self.blocks.write(m, &self.storage, dirty).await;
        wb.end(pages);
        wb.wait_for_pages(m, metadata_of(number)).await;
        self.storage.flush_then_write(m, BLOCK, Some(SUPER_INFO_OFFSET)).await;
    }
}
