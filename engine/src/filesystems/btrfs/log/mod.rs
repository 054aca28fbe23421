//! The log of a subvolume: the tree that fsync writes its items into, and how it gets to the disk (`start_log_trans`,
//! `btrfs_end_log_trans` and `btrfs_sync_log` of `fs/btrfs/tree-log.c`, Linux 5.9 to 6.18).
//!
//! Log transactions follow each other: one is filled while the one before it is on its way to the disk. Who wants to sync waits for
//! his predecessor, then until nobody is writing into the log, and so takes all with him who came meanwhile. The same is done once more
//! with the tree of log roots, into which the logs of all subvolumes are entered (`roots.rs`).

mod conflicts;
mod delayed_entries;
mod directory;
pub mod fsync;
mod full_sync;
mod log_inode;
mod logged;
mod lost_names;
mod names;
mod parents;
pub mod roots;
mod sync_directory;
mod writeback;
mod xattrs;

use super::root::Root;
use super::tree::Tree;
use crate::waist::Machine;
use crate::waist::{Access, LineId, LockId, Side, TaskId};
use roots::LogRoots;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Tasks that sleep until something has come about, and let go of a mutex meanwhile. All are woken together.
#[derive(Default)]
struct Sleepers(RefCell<Vec<LockId>>);

impl Sleepers {
    async fn sleep<M: Machine>(&self, m: &M, mutex: LockId) {
        let woken = m.new_completion();
        self.0.borrow_mut().push(woken);
        m.unlock(mutex, Side::Write).await;
        m.wchan("wait_log_commit");
        m.wait_for(woken).await;
        m.drop_completion(woken);
        m.lock(mutex, Side::Write).await;
    }

    async fn wake_all<M: Machine>(&self, m: &M) {
        let sleepers = std::mem::take(&mut *self.0.borrow_mut());
        for woken in sleepers {
            m.complete(woken).await;
        }
    }
}

/// The log of a subvolume (`log_root` and its counters).
pub struct LogTree {
    /// The tree.
    pub root: Root,
    /// The spinlock of `log_csum_range`.
    pub csum_range: LockId,
    roots: Rc<LogRoots>,
    /// The number of its subvolume.
    number: u64,
    mutex: LockId,
    /// There is a log tree since the last commit of a transaction.
    exists: Cell<bool>,
    /// `log_writers` and `log_batch`.
    counters: LineId,
    writers: Cell<u32>,
    batch: Cell<u64>,
    /// Who wrote first into the log transaction that is being filled, and whether others did (`log_start_pid`,
    /// `BTRFS_ROOT_MULTI_LOG_TASKS`).
    starter: Cell<Option<TaskId>>,
    several: Cell<bool>,
    /// Number of the log transaction that is being filled, and of the last that is over.
    filling: Cell<u64>,
    committed: Cell<u64>,
    /// Number of the last that was written (`last_log_commit`).
    written: Cell<u64>,
    /// By number modulo 2: whether it is under way (`log_commit`), and who waits for its end.
    committing: [Cell<bool>; 2],
    waiting: [Sleepers; 2],
    /// The last that was not written, because the whole transaction must be committed.
    failed: [Cell<u64>; 2],
    waiting_for_writers: Sleepers,
    /// Names that the last commit has and that have been lost since.
    pub lost: RefCell<lost_names::LostNames>,
}

impl LogTree {
    /// No log yet of a subvolume, in a tree without items.
    pub fn new<M: Machine>(m: &M, number: u64, root: Root, roots: Rc<LogRoots>) -> Self {
        Self {
            root,
            roots,
            number,
            csum_range: m.new_lock(m.class("btrfs.log_csum_range", "btrfs.log_csum_range")),
            mutex: m.new_lock(m.class("btrfs.log_mutex", "btrfs.log_mutex")),
            exists: Cell::new(false),
            counters: m.new_line("btrfs.log_writers", 1),
            writers: Cell::new(0),
            batch: Cell::new(0),
            starter: Cell::new(None),
            several: Cell::new(false),
            filling: Cell::new(1),
            committed: Cell::new(0),
            written: Cell::new(0),
            committing: Default::default(),
            waiting: Default::default(),
            failed: Default::default(),
            waiting_for_writers: Sleepers::default(),
            lost: RefCell::default(),
        }
    }

    /// The log of another subvolume.
    pub fn another<M: Machine>(&self, m: &M, number: u64) -> Self {
        Self::new(m, number, self.root.another(Tree::new()), self.roots.clone())
    }

    /// `btrfs_free_log`: a commit, while no handle is open, makes the log superfluous.
    pub fn forget(&self) {
        self.root.clear();
        self.lost.take();
        self.exists.set(false);
    }

    /// Whether there is a log since the last commit of a transaction (`BTRFS_ROOT_HAS_LOG_TREE`).
    pub fn exists(&self) -> bool {
        self.exists.get()
    }

    /// Number of the log transaction that is being filled (`log_transid`).
    pub fn filling(&self) -> u64 {
        self.filling.get()
    }

    /// Number of the last log transaction that is on disk (`last_log_commit`).
    pub fn on_disk(&self) -> u64 {
        self.written.get()
    }

    /// `start_log_trans`: joins the log transaction that is being filled; its number. None if there is a log and the whole
    /// transaction must be committed.
    pub async fn start<M: Machine>(&self, m: &M, needs_full_commit: impl Fn() -> bool) -> Option<u64> {
        m.lock(self.mutex, Side::Write).await;
        if self.exists.get() && needs_full_commit() {
            m.unlock(self.mutex, Side::Write).await;
            return None;
        }
        if !self.exists.get() {
            self.roots.begin(m).await;
            self.exists.set(true);
            self.starter.set(None);
        }
        self.note_writer(m.task());
        m.touch(self.counters, Access::Atomic);
        self.batch.set(self.batch.get() + 1);
        self.writers.set(self.writers.get() + 1);
        let mine = self.filling.get();
        m.unlock(self.mutex, Side::Write).await;
        Some(mine)
    }

    fn note_writer(&self, task: TaskId) {
        match self.starter.get() {
            Some(starter) => self.several.set(self.several.get() || starter != task),
            None => {
                self.starter.set(Some(task));
                self.several.set(false);
            }
        }
    }

    /// `join_running_log_trans`: keeps the log from being synced, if there is one.
    pub async fn join<M: Machine>(&self, m: &M) -> bool {
        if !self.exists.get() {
            return false;
        }
        m.lock(self.mutex, Side::Write).await;
        let exists = self.exists.get();
        if exists {
            self.pin(m);
        }
        m.unlock(self.mutex, Side::Write).await;
        exists
    }

    /// An fsync that is going to write into the log says so before and after it waits for its data: who syncs the log meanwhile
    /// waits for it, if for anybody (`log_batch`, `btrfs_sync_file` of 5.8 to 6.18).
    pub fn announce<M: Machine>(&self, m: &M) {
        m.touch(self.counters, Access::Atomic);
        self.batch.set(self.batch.get() + 1);
    }

    /// `btrfs_pin_log_trans`: whoever wants to sync waits until this is ended. Before 5.10 the mutex is taken to say so.
    pub async fn pin_for_rename<M: Machine>(&self, m: &M, locks: bool) {
        if locks {
            m.lock(self.mutex, Side::Write).await;
        }
        self.pin(m);
        if locks {
            m.unlock(self.mutex, Side::Write).await;
        }
    }

    fn pin<M: Machine>(&self, m: &M) {
        m.touch(self.counters, Access::Atomic);
        self.writers.set(self.writers.get() + 1);
    }

    /// `btrfs_end_log_trans`.
    pub async fn end<M: Machine>(&self, m: &M) {
        m.touch(self.counters, Access::Atomic);
        self.writers.set(self.writers.get() - 1);
        if self.writers.get() == 0 {
            self.waiting_for_writers.wake_all(m).await;
        }
    }

    /// `btrfs_sync_log`: returns when log transaction `mine` is on disk, written by this task or by another. False if it is not,
    /// because the whole transaction must be committed.
    pub async fn sync<M: Machine>(&self, m: &M, mine: u64, needs_full_commit: impl Fn() -> bool) -> bool {
        let index = (mine % 2) as usize;
        m.lock(self.mutex, Side::Write).await;
        if self.committed.get() >= mine || self.committing[index].get() {
            self.wait_for_commit(m, mine).await;
            m.unlock(self.mutex, Side::Write).await;
            return self.failed[index].get() != mine;
        }
        self.committing[index].set(true);
        self.wait_for_commit(m, mine - 1).await;
        self.wait_for_writers(m).await;
        if needs_full_commit() {
            self.filling.set(mine + 1);
            self.failed[index].set(mine);
            self.end_commit(m, mine).await;
            return false;
        }
        let log = self.roots.submit(m, &self.root).await;
        self.filling.set(mine + 1);
        self.starter.set(None);
        m.unlock(self.mutex, Side::Write).await;
        self.roots.sync(m, self.number, log).await;
        self.written.set(mine);
        m.lock(self.mutex, Side::Write).await;
        self.end_commit(m, mine).await;
        true
    }

    /// Log transaction `mine` is over, by who holds the mutex.
    async fn end_commit<M: Machine>(&self, m: &M, mine: u64) {
        let index = (mine % 2) as usize;
        self.committed.set(mine);
        self.committing[index].set(false);
        m.unlock(self.mutex, Side::Write).await;
        self.waiting[index].wake_all(m).await;
    }

    /// `wait_log_commit`.
    async fn wait_for_commit<M: Machine>(&self, m: &M, number: u64) {
        let index = (number % 2) as usize;
        while self.committed.get() < number && self.committing[index].get() {
            self.waiting[index].sleep(m, self.mutex).await;
        }
    }

    /// Until a look finds no writers, and nobody has begun to write since the look before. On a device that rotates, for a jiffy
    /// before each look if several tasks wrote: btrfs is mounted without `ssd` then.
    async fn wait_for_writers<M: Machine>(&self, m: &M) {
        loop {
            let batch = self.batch.get();
            if self.roots.storage.rotational && self.several.get() {
                m.unlock(self.mutex, Side::Write).await;
                let until = m.wake_at_tick(m.task(), 1);
                m.wchan("btrfs_sync_log");
                while m.now() < until {
                    m.park().await;
                }
                m.lock(self.mutex, Side::Write).await;
            }
            while self.writers.get() > 0 {
                self.waiting_for_writers.sleep(m, self.mutex).await;
            }
            if batch == self.batch.get() {
                return;
            }
        }
    }
}
