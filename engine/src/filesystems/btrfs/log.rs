//! fsync: the data go to the device, the inode's items into the log tree, and one task writes the log for all who came
//! before (`btrfs_sync_file`, `btrfs_log_inode`, `btrfs_sync_log` of Linux 6.18).
//!
//! The file's extent enters the subvolume's tree and its checksum the log's, as `btrfs_finish_ordered_io` and
//! `log_one_extent` would have it; the checksum tree itself and the tree of log roots are not modelled.

use super::items;
use super::key::{size, Item, ItemKind, Key, EXTENT_CSUM_OBJECTID};
use super::mount::Btrfs;
use super::root::Root;
use super::search::{Intent, Rules};
use super::tree::Tree;
use crate::cost_table;
use crate::devices::{BlockDevice, Storage};
use crate::filesystems::costs::Costs;
use crate::filesystems::designs::NocowCheck;
use crate::filesystems::{File, BLOCK};
use crate::machine::{Account, LockId, Side};
use crate::waist::Machine;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

cost_table!(FsyncCosts {
    writepages: ["wfsync.reserve_extent", "wfsync.ordered_extent_add", "wfsync.get_extent", "wfsync.submit"],
    data_io: ["wfsync.data_io"],
    log_item: ["wfsync.log_item"],
    write_log: ["wfsync.write_log"],
    log_io: ["wfsync.log_io"],
    super_io: ["wfsync.super_io"],
    exit: ["wfsync.exit"],
});

/// The log of a subvolume (`log_root` and its counters).
pub struct LogTree {
    root: Root,
    mutex: LockId,
    storage: Storage,
    costs: FsyncCosts,
    /// Number of the log that is being filled, and of the last that is on disk.
    filling: Cell<u64>,
    written: Cell<u64>,
    writing: Cell<bool>,
    waiting: RefCell<Vec<LockId>>,
}

impl LogTree {
    /// An empty log.
    pub fn new<M: Machine>(m: &M, rules: Rules, device: Option<Rc<BlockDevice>>, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            root: Root::new(m, "log", Tree::new(), rules, costs)?,
            mutex: m.new_lock(m.class("btrfs.log_mutex", "btrfs.log_mutex")),
            storage: Storage::new(m, device),
            costs: FsyncCosts::new(costs)?,
            filling: Cell::new(1),
            written: Cell::new(0),
            writing: Cell::new(false),
            waiting: RefCell::default(),
        })
    }

    /// A commit makes the log superfluous: the next blocks are new.
    pub fn forget(&self) {
        self.root.tree.borrow_mut().transid += 1;
    }

    /// `btrfs_sync_log`: returns when log `mine` is on disk, written by this task or by another.
    async fn sync<M: Machine>(&self, m: &M, mine: u64) {
        m.lock(self.mutex, Side::Write).await;
        while self.writing.get() && self.written.get() < mine {
            m.unlock(self.mutex, Side::Write).await;
            let done = m.new_completion();
            self.waiting.borrow_mut().push(done);
            m.wait_for(done).await;
            m.drop_completion(done);
            m.lock(self.mutex, Side::Write).await;
        }
        if self.written.get() >= mine {
            return m.unlock(self.mutex, Side::Write).await;
        }
        self.writing.set(true);
        let this = self.filling.replace(self.filling.get() + 1);
        self.root.tree.borrow_mut().transid += 1; // blocks under I/O are copied before they change again
        m.run(Account::System, self.costs.write_log).await;
        m.unlock(self.mutex, Side::Write).await;
        self.storage.write(m, BLOCK, self.costs.log_io).await;
        self.storage.write_ordered(m, BLOCK, self.costs.super_io).await;
        m.lock(self.mutex, Side::Write).await;
        self.written.set(this);
        self.writing.set(false);
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        m.unlock(self.mutex, Side::Write).await;
        for task in waiting {
            m.complete(task).await;
        }
    }
}

impl Btrfs {
    /// `run_delalloc_nocow`: looks the extent up, and whether somebody shares it (`btrfs_cross_ref_exist`). The extent tree is
    /// not modelled, so what the second takes is a time, without waiting.
    async fn check_nocow<M: Machine>(&self, m: &M, ino: u64) {
        let locked = self.fs_root.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(Key::new(ino, ItemKind::ExtentData, 0), Intent::Read).await;
        if self.nocow_check == NocowCheck::PathReleased {
            ops.release_path(&mut path).await;
        }
        m.run(Account::System, self.cross_ref).await;
        ops.release_path(&mut path).await;
    }

    /// `btrfs_sync_file` of a file whose one dirty page has never been on disk.
    pub(super) async fn sync_file<M: Machine>(&self, m: &M, file: &File) {
        let (inode, log) = (self.file(file.inode), &self.log);
        m.at("fsync");
        m.run(Account::System, log.costs.writepages).await;
        if self.nodatacow && inode.extent {
            self.check_nocow(m, inode.ino).await;
        }
        log.storage.write(m, BLOCK, log.costs.data_io).await;
        self.transaction.start(m).await;
        let extent = Item::new(Key::new(inode.ino, ItemKind::ExtentData, 0), size::EXTENT_DATA);
        if !inode.extent {
            self.insert(m, &[extent], log.costs.log_item).await;
            self.set_extent(file.inode);
        }
        m.lock(log.mutex, Side::Write).await; // start_log_trans
        let mine = log.filling.get();
        m.unlock(log.mutex, Side::Write).await;
        let csum = Item::new(Key::new(EXTENT_CSUM_OBJECTID, ItemKind::ExtentCsum, inode.ino << 12), size::CSUM);
        for item in [csum, items::inode(inode.ino), items::inode_ref(inode.ino, 0, b""), extent] {
            let locked = log.root.locked(m);
            let ops = locked.ops().blocking();
            let (mut path, _) = ops.insert_items(&[item]).await;
            m.run(Account::System, log.root.after_insertion(log.costs.log_item)).await;
            ops.release_path(&mut path).await;
        }
        log.sync(m, mine).await;
        self.transaction.end(m);
        m.run(Account::System, log.costs.exit).await;
    }
}
