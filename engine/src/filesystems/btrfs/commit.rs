//! The commit of a transaction (`btrfs_commit_transaction` of Linux 6.18).

use super::key::NODE_SIZE;
use super::mount::Btrfs;
use crate::filesystems::BLOCK;
use crate::machine::{LockId, Side};
use crate::waist::Machine;
use std::rc::Rc;

impl Btrfs {
    /// The program of the transaction thread: a commit every `ticks` ticks.
    pub async fn transaction_thread<M: Machine>(m: M, fs: Rc<Self>, ticks: u64) {
        m.at("commit");
        let mutex = fs.extents.new_runner(&m);
        loop {
            m.wake_at_tick(m.task(), ticks);
            m.park().await;
            _ = fs.commit(&m, mutex).await;
        }
    }

    /// Most delayed refs are run while handles go on; what they then add is run when those that are started are kept out, and
    /// the last, with the delayed items, when nobody may change anything.
    ///
    /// Nothing is done, and false returned, if another task is at it.
    pub(super) async fn commit<M: Machine>(&self, m: &M, mutex: LockId) -> bool {
        if self.committing.replace(true) {
            return false;
        }
        self.extents.run_delayed_refs(m, mutex, self.extents.refs.waiting()).await;
        self.transaction.block_starts(m).await;
        self.run_delayed_items(m).await;
        self.transaction.block_all(m).await;
        self.run_delayed_items(m).await;
        self.extents.run_all_delayed_refs(m, mutex).await;
        m.lock(self.log.tree_log_mutex, Side::Write).await;
        let blocks = self.extents.refs.take_count();
        self.fs_root.tree.borrow_mut().transid += 1;
        self.log.forget();
        self.extents.next_transaction();
        self.extents.refs.space.borrow_mut().begin_commit();
        self.transaction.unblock(m);
        self.log.storage.commit(m, blocks * u64::from(NODE_SIZE), BLOCK).await;
        m.unlock(self.log.tree_log_mutex, Side::Write).await;
        self.extents.refs.space.borrow_mut().unpin();
        self.committing.set(false);
        true
    }
}
