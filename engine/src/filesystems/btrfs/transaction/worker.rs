//! Workers that commit delayed items in the background.

use super::delayed::{Batch, Prepared, BACKGROUND, BATCH, WRITEBACK};
use crate::filesystems::btrfs::mount::{Btrfs, Directory};
use crate::filesystems::btrfs::tree::items::inode_key;
use crate::waist::Machine;
use crate::waist::{Access, Account, LockId, Side};
use crate::workqueue::{Pools, Workqueue};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// From so many waiting pieces of work on one more runs at a time, from half of them on one less (`DFT_THRESHOLD`).
const THRESHOLD: usize = 32;

/// The work queue of delayed items (`delayed_workers`, a `btrfs_workqueue` of `fs/btrfs/async-thread.c`).
pub struct Workers {
    work: Workqueue<()>,
    /// How many directories or inodes each piece of work may commit.
    queued: RefCell<VecDeque<usize>>,
    running: Cell<usize>,
    /// So many may run at a time.
    active: Cell<usize>,
    most: usize,
    /// Tasks that wait until some items are committed.
    waiting: RefCell<Vec<LockId>>,
}

impl Workers {
    /// A queue whose work is done by at most so many workers at a time.
    pub fn new<M: Machine>(m: &M, pools: &Pools, most: u32) -> Self {
        let (queued, waiting) = Default::default();
        let work = Workqueue::unbound(m, pools, most);
        Self { work, queued, running: Cell::new(0), active: Cell::new(1), most: most as usize, waiting }
    }

    /// Whether no worker is at work: one has taken a directory's items before it has a handle.
    pub fn at_rest(&self) -> bool {
        self.running.get() == 0
    }

    /// `btrfs_queue_work`.
    async fn queue<M: Machine>(&self, m: &M, nodes: usize) {
        self.queued.borrow_mut().push_back(nodes);
        self.start_one(m).await;
    }

    /// `btrfs_workqueue_normal_congested`.
    fn congested(&self) -> bool {
        self.queued.borrow().len() > 2 * THRESHOLD
    }

    async fn start_one<M: Machine>(&self, m: &M) {
        if self.running.get() < self.active.get() && !self.queued.borrow().is_empty() {
            self.running.set(self.running.get() + 1);
            self.work.queue(m, ()).await;
        }
    }

    /// Whether a piece of work is this queue's.
    pub fn has(&self, work: LockId) -> bool {
        self.work.take(work).is_some()
    }

    /// What a running worker does next; `thresh_exec_hook`.
    fn next(&self) -> Option<usize> {
        if self.running.get() > self.active.get() {
            return None;
        }
        let work = self.queued.borrow_mut().pop_front()?;
        let (waiting, active) = (self.queued.borrow().len(), self.active.get());
        if waiting > THRESHOLD {
            self.active.set((active + 1).min(self.most));
        } else if waiting < THRESHOLD / 2 {
            self.active.set((active - 1).max(1));
        }
        Some(work)
    }

    async fn wake_waiting<M: Machine>(&self, m: &M) {
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for task in waiting {
            m.complete(task).await;
        }
    }
}

impl Btrfs {
    /// `btrfs_balance_delayed_items`: starts a worker if many items wait; waits until it has committed some if very many do.
    pub(crate) async fn balance_delayed_items<M: Machine>(&self, m: &M) {
        m.touch(self.delayed_line, Access::Read);
        let (items, finished) = {
            let delayed = self.delayed.borrow();
            (delayed.items(), delayed.finished())
        };
        if items < BACKGROUND || self.workers.congested() {
            return;
        }
        if items < WRITEBACK {
            return self.workers.queue(m, BATCH).await;
        }
        self.workers.queue(m, WRITEBACK).await;
        while !self.delayed.borrow().wait_is_over(finished) {
            let done = m.new_completion();
            self.workers.waiting.borrow_mut().push(done);
            m.wchan("btrfs_balance_delayed_items");
            m.wait_for(done).await;
            m.drop_completion(done);
        }
    }

    /// What a worker does of `delayed_workers` (`btrfs_async_run_delayed_root`).
    pub(in super::super) async fn run_delayed_root<M: Machine>(&self, m: &M) {
        m.at("delayed items");
        while let Some(mut nodes) = self.workers.next() {
            self.workers.start_one(m).await;
            while self.delayed.borrow().worker_goes_on(nodes) {
                let Some(next) = self.delayed.borrow_mut().next_prepared() else { break };
                let handle = self.transaction.join(m).await;
                m.run(Account::System, self.costs.run_delayed_node()).await;
                self.commit_delayed_node(m, next).await;
                self.transaction.end(m, handle).await;
                self.note_dirty_blocks(m).await;
                self.btree_balance_dirty_nodelay(m).await;
                nodes -= 1;
            }
            self.workers.wake_waiting(m).await;
        }
        self.workers.running.set(self.workers.running.get() - 1);
    }

    /// `__btrfs_commit_inode_delayed_items`.
    pub(super) async fn commit_delayed_node<M: Machine>(&self, m: &M, next: Prepared) {
        match next {
            Prepared::Directory(dir) => while self.commit_directory_batch(m, dir).await {},
            Prepared::File(ino) => {
                self.fs_root(ino).root.locked(m).ops().commit_batch(Batch::Inode(inode_key(ino))).await;
                self.finish_delayed(m, 1).await;
            }
        }
    }

    /// One batch of a directory under its mutex; whether there was one.
    pub(crate) async fn commit_directory_batch<M: Machine>(&self, m: &M, dir: u32) -> bool {
        let Directory { ino, delayed: mutex, .. } = self.directory(dir);
        m.lock(mutex, Side::Write).await;
        let batch = self.delayed.borrow_mut().next_batch(dir);
        let count = batch.as_ref().map_or(0, Batch::len);
        if let Some(batch) = batch {
            self.fs_root(ino).root.locked(m).ops().commit_batch(batch).await;
            self.finish_delayed(m, count).await;
        }
        m.unlock(mutex, Side::Write).await;
        count > 0
    }

    pub(crate) async fn finish_delayed<M: Machine>(&self, m: &M, count: usize) {
        self.transaction.reservations.release(m).await;
        m.touch(self.delayed_line, Access::Write);
        let look_again = self.delayed.borrow_mut().finish(count);
        if look_again {
            self.workers.wake_waiting(m).await;
        }
    }

    /// `btrfs_run_delayed_items`.
    pub(super) async fn run_delayed_items<M: Machine>(&self, m: &M) {
        loop {
            let Some(next) = self.delayed.borrow_mut().next_prepared() else { return };
            self.commit_delayed_node(m, next).await;
        }
    }
}
