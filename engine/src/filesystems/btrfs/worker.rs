//! What btrfs does in the background: workers that commit delayed items, and the transaction's commit.

use super::delayed::{BACKGROUND, WRITEBACK};
use super::mount::Btrfs;
use crate::machine::{Access, Account, LockId, TaskId};
use crate::waist::Machine;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The work queue of delayed items (`delayed_workers`).
#[derive(Default)]
pub struct Workers {
    idle: RefCell<Vec<TaskId>>,
    queued: Cell<u32>,
    /// Tasks that wait until there are fewer items.
    waiting: RefCell<Vec<LockId>>,
}

impl Workers {
    /// `btrfs_queue_work`.
    fn queue<M: Machine>(&self, m: &M) {
        self.queued.set(self.queued.get() + 1);
        if let Some(worker) = self.idle.borrow_mut().pop() {
            m.wake(worker);
        }
    }
}

impl Btrfs {
    /// `btrfs_balance_delayed_items`: starts a worker if many items wait; waits for it if very many do.
    pub(super) async fn balance_delayed_items<M: Machine>(&self, m: &M) {
        m.touch(self.delayed_line, Access::Read);
        let items = self.delayed.borrow().items();
        if items < BACKGROUND {
            return;
        }
        self.workers.queue(m);
        if items >= WRITEBACK {
            let done = m.new_completion();
            self.workers.waiting.borrow_mut().push(done);
            m.wait_for(done).await;
            m.drop_completion(done);
        }
    }

    /// The program of a worker (`btrfs_async_run_delayed_root`).
    pub async fn delayed_worker<M: Machine>(m: M, fs: Rc<Self>) {
        m.at("delayed items");
        loop {
            while fs.workers.queued.get() == 0 {
                fs.workers.idle.borrow_mut().push(m.task());
                m.park().await;
            }
            fs.workers.queued.set(fs.workers.queued.get() - 1);
            let mut done = 0;
            while fs.delayed.borrow().worker_goes_on(done) {
                let Some(dir) = fs.delayed.borrow_mut().next_prepared() else { break };
                fs.transaction.join(&m).await;
                fs.commit_delayed_node(&m, dir).await;
                fs.transaction.end(&m);
                done += 1;
            }
            let waiting = std::mem::take(&mut *fs.workers.waiting.borrow_mut());
            for task in waiting {
                m.complete(task).await;
            }
        }
    }

    /// `__btrfs_commit_inode_delayed_items`, the directory's mutex held batch by batch.
    async fn commit_delayed_node<M: Machine>(&self, m: &M, dir: u32) {
        let mutex = self.directory(dir).delayed;
        loop {
            m.lock(mutex, crate::machine::Side::Write).await;
            let batch = self.delayed.borrow_mut().next_batch(dir);
            let more = batch.is_some();
            if let Some(batch) = batch {
                m.touch(self.delayed_line, Access::Write);
                self.fs_root.locked(m).ops().commit_batch(batch).await;
            }
            m.unlock(mutex, crate::machine::Side::Write).await;
            if !more {
                return;
            }
        }
    }

    /// The program of the transaction thread (`btrfs_commit_transaction` every `ticks` ticks): delayed items while handles go
    /// on, the rest and the delayed refs while they are kept out.
    pub async fn transaction_thread<M: Machine>(m: M, fs: Rc<Self>, ticks: u64) {
        m.at("commit");
        loop {
            m.wake_at_tick(m.task(), ticks);
            m.park().await;
            fs.run_delayed_items(&m).await;
            fs.transaction.block(&m).await;
            fs.run_delayed_items(&m).await;
            let refs = fs.fs_root.tree.borrow_mut().take_new_blocks();
            m.run(Account::System, fs.delayed_ref * refs).await;
            fs.fs_root.tree.borrow_mut().transid += 1;
            fs.log.forget();
            fs.transaction.unblock(&m);
        }
    }

    async fn run_delayed_items<M: Machine>(&self, m: &M) {
        loop {
            let Some(dir) = self.delayed.borrow_mut().next_prepared() else { return };
            self.commit_delayed_node(m, dir).await;
        }
    }
}
