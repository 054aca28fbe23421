//! The tree of log roots (`log_root_tree`): where the logs of subvolumes are. A sync enters its own log there, and then one of those who
//! have entered theirs writes this tree and the superblock for all of them (the second half of `btrfs_sync_log`).

use super::Sleepers;
use crate::cost_table;
use crate::devices::BlockDevice;
use crate::filesystems::btrfs::block_io::{TreeBlocks, SUPER_INFO_OFFSET};
use crate::filesystems::btrfs::root::Root;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::costs::Costs;
use crate::filesystems::BLOCK;
use crate::kernel::btrfs::TreeLogMutex;
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side};
use std::cell::Cell;
use std::rc::Rc;

cost_table!(LogCosts { item: ["wfsync.log_item"], write_block: ["wfsync.write_block"] });

/// The tree of log roots, and what writing it needs.
pub struct LogRoots {
    /// The tree.
    pub root: Root,
    /// What commits of transactions hold until their superblocks are written (`tree_log_mutex`).
    pub tree_log_mutex: LockId,
    /// What it is stored on.
    pub storage: Rc<BlockDevice>,
    mutex: LockId,
    mutex_design: TreeLogMutex,
    costs: LogCosts,
    blocks: Rc<TreeBlocks>,
    /// Number of the transaction of log roots that is being filled, and of the last that is on disk.
    filling: Cell<u64>,
    committed: Cell<u64>,
    /// By number modulo 2: whether it is under way, and who waits for its end.
    committing: [Cell<bool>; 2],
    waiting: [Sleepers; 2],
}

impl LogRoots {
    /// Without logs; the error names a cost that is missing.
    pub fn new<M: Machine>(
        m: &M,
        root: Root,
        (storage, blocks): (Rc<BlockDevice>, Rc<TreeBlocks>),
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let mutex = |name: &str| m.new_lock(m.class(name, "btrfs.log_mutex"));
        Ok(Self {
            root,
            tree_log_mutex: mutex("btrfs.tree_log_mutex"),
            storage,
            mutex: mutex("btrfs.log_root_tree"),
            mutex_design: costs.rules().tree_log_mutex,
            costs: LogCosts::new(costs)?,
            blocks,
            filling: Cell::new(1),
            committed: Cell::new(0),
            committing: Default::default(),
            waiting: Default::default(),
        })
    }

    /// A commit makes all logs superfluous.
    pub fn forget(&self) {
        self.root.clear();
    }

    /// A subvolume gets a log (`start_log_trans`).
    pub async fn begin<M: Machine>(&self, m: &M) {
        if self.mutex_design == TreeLogMutex::LogStart {
            m.lock(self.tree_log_mutex, Side::Write).await;
            m.unlock(self.tree_log_mutex, Side::Write).await;
        }
    }

    /// `btrfs_write_marked_extents`: submits the blocks changed since the last time, under the task's plug; they are copied before they
    /// change again. Returns what their end completes.
    pub async fn submit<M: Machine>(&self, m: &M, root: &Root) -> Vec<LockId> {
        let dirty = root.tree.borrow_mut().end_transaction();
        m.run(Account::System, self.costs.write_block * dirty.blocks + self.blocks.check(dirty)).await;
        self.blocks.submit(m, &self.storage, dirty).await
    }

    /// Enters the log of a subvolume, whose blocks are on their way or in the task's plug, and returns when that is on disk, written by this task or by
    /// another who enters one.
    pub async fn sync<M: Machine>(&self, m: &M, subvolume: u64, log: Vec<LockId>) {
        m.lock(self.mutex, Side::Write).await;
        self.enter(m, subvolume).await;
        let mine = self.filling.get();
        let index = (mine % 2) as usize;
        if self.committing[index].get() {
            m.flush_plug();
            wait_for_blocks(m, log).await;
            self.wait_for_commit(m, mine).await;
            return m.unlock(self.mutex, Side::Write).await;
        }
        self.committing[index].set(true);
        self.wait_for_commit(m, mine - 1).await;
        let roots = self.submit(m, &self.root).await;
        m.flush_plug();
        wait_for_blocks(m, log.into_iter().chain(roots)).await;
        self.filling.set(mine + 1);
        m.unlock(self.mutex, Side::Write).await;
        self.write_super(m).await;
        m.lock(self.mutex, Side::Write).await;
        self.committed.set(mine);
        self.committing[index].set(false);
        m.unlock(self.mutex, Side::Write).await;
        self.waiting[index].wake_all(m).await;
    }

    /// `update_log_root`.
    async fn enter<M: Machine>(&self, m: &M, subvolume: u64) {
        let locked = self.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, _) = ops.insert_items(&[items::log_root(subvolume)]).await;
        m.run(Account::System, self.root.after_insertion(self.costs.item)).await;
        ops.release_path(&mut path).await;
    }

    /// `wait_log_commit`.
    async fn wait_for_commit<M: Machine>(&self, m: &M, number: u64) {
        let index = (number % 2) as usize;
        while self.committed.get() < number && self.committing[index].get() {
            self.waiting[index].sleep(m, self.mutex).await;
        }
    }

    /// `write_all_supers`: `barrier_all_devices`, then the first superblock.
    async fn write_super<M: Machine>(&self, m: &M) {
        let waits = self.mutex_design == TreeLogMutex::LogSuper;
        if waits {
            m.lock(self.tree_log_mutex, Side::Write).await;
        }
        self.storage.flush_then_write(m, BLOCK, Some(SUPER_INFO_OFFSET)).await;
        if waits {
            m.unlock(self.tree_log_mutex, Side::Write).await;
        }
    }
}

async fn wait_for_blocks<M: Machine>(m: &M, requests: impl IntoIterator<Item = LockId>) {
    for written in requests {
        m.wchan("btrfs_wait_tree_log_extents");
        m.wait_for_io(written).await;
        m.drop_completion(written);
    }
}
