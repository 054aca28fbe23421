//! The items of an inode go into the log (`btrfs_log_inode`).

use super::LogTree;
use crate::filesystems::btrfs::data::Extent;
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::transaction::delayed::Batch;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, Key};
use crate::filesystems::btrfs::tree::search::Intent;
use crate::kernel::btrfs::{FsyncWait, LogCsums, LogInode};
use crate::waist::Machine;
use crate::waist::{Account, Side, Time};

impl Btrfs {
    /// `btrfs_log_inode`.
    pub(super) async fn log_inode<M: Machine>(&self, m: &M, slot: u32, inode: Inode, written: &[Extent]) {
        let looks = self.fsync.inode > LogInode::LeafHeld;
        let log = &self.fs_root(inode.ino).log;
        if !looks {
            self.commit_delayed_inode(m, inode.ino).await;
        }
        self.ask_for_file(m, slot).await;
        if self.data(slot).needs_full_sync() {
            self.log_all(m, slot, inode).await;
            self.data(slot).log(self.transid(), log.filling());
            return;
        }
        if self.data(slot).take_copy_everything() {
            let logged = self.data(slot).is_logged(self.transid());
            self.drop_items(m, inode.ino, logged).await;
            self.copy_names(m, inode.ino).await;
        } else if looks {
            self.log_change(m, log, items::inode_key(inode.ino), Intent::Update).await;
        } else {
            self.log_insertion(m, log, &[items::inode(inode.ino)]).await;
        }
        self.log_xattrs(m, slot, inode.ino).await;
        for extent in written {
            if extent.bytes > 0 && !self.nodatacow {
                if self.fsync.wait == FsyncWait::Ordered {
                    self.read_csums(m, extent.place).await; // others have them from the ordered extent
                }
                self.log_csums(m, log, extent.place, extent.bytes).await;
            }
            self.log_extent(m, log, extent).await;
        }
        self.data(slot).log(self.transid(), log.filling());
    }

    /// `btrfs_commit_inode_delayed_inode`: the inode's update is not left to the workers.
    async fn commit_delayed_inode<M: Machine>(&self, m: &M, ino: u64) {
        let waits = self.delayed.borrow_mut().take_file(ino);
        self.fs_root(ino).root.locked(m).ops().commit_batch(Batch::Inode(items::inode_key(ino))).await;
        if waits {
            self.finish_delayed(m, 1).await;
        }
    }

    /// `drop_objectid_items` (`drop_inode_items`): what the log has of an inode. Since 5.16 only if it has any.
    pub(super) async fn drop_items<M: Machine>(&self, m: &M, ino: u64, logged: bool) {
        if self.fsync.inode > LogInode::LeafHeld && !logged {
            return;
        }
        let log = &self.fs_root(ino).log;
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, found) = ops.search_slot(items::inode_key(ino), Intent::Delete).await;
        if found {
            let keys = [items::inode_key(ino), items::inode_ref(ino, 0, b"").key].into_iter();
            let run = ops.run_of_keys(&path, keys);
            ops.del_items(&mut path, run).await;
        }
        ops.release_path(&mut path).await;
    }

    /// `log_csums`.
    pub(super) async fn log_csums<M: Machine>(&self, m: &M, log: &LogTree, first: u64, bytes: u64) {
        let replaces = self.fsync.csums == LogCsums::Replace;
        if replaces {
            self.take_csum_range(m, log).await;
            log.root.locked(m).ops().delete_csums(first, bytes).await;
        }
        log.root.locked(m).ops().add_csums(first, bytes).await;
        if replaces {
            self.take_csum_range(m, log).await;
        }
    }

    /// `btrfs_lookup_csums_range` of an extent.
    pub(super) async fn read_csums<M: Machine>(&self, m: &M, place: u64) {
        self.extents.look_for_csums(m, place).await;
        m.run(Account::System, self.fsync.costs.lookup).await;
    }

    /// `lock_extent_bits` and `unlock_extent_cached` of a range that nobody else wants: its tree's spinlock.
    async fn take_csum_range<M: Machine>(&self, m: &M, log: &LogTree) {
        m.lock(log.csum_range, Side::Write).await;
        m.run(Account::System, self.fsync.costs.range).await;
        m.unlock(log.csum_range, Side::Write).await;
    }

    /// A search of the log for a change at a key, or to delete what is there; whether anything is.
    pub(super) async fn log_change<M: Machine>(&self, m: &M, log: &LogTree, key: Key, intent: Intent) -> bool {
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, found) = ops.search_slot(key, intent).await;
        let time: Time = if intent == Intent::Update { self.fsync.costs.item } else { 0 };
        m.run(Account::System, log.root.after_search(time)).await;
        if found && intent == Intent::Delete {
            ops.del_items(&mut path, 1).await;
        }
        ops.release_path(&mut path).await;
        found
    }

    pub(super) async fn log_insertion<M: Machine>(&self, m: &M, log: &LogTree, items: &[Item]) {
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, _) = ops.insert_items(items).await;
        m.run(Account::System, log.root.after_insertion(self.fsync.costs.of_items(items.len()))).await;
        ops.release_path(&mut path).await;
    }

    /// `log_one_extent`. Since 5.18 what the item says is put together before its leaf is locked.
    async fn log_extent<M: Machine>(&self, m: &M, log: &LogTree, extent: &Extent) {
        let fill = self.fsync.costs.fill;
        if !self.fsync.fills_in_leaf {
            m.run(Account::System, fill).await;
        }
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let mut path = ops.replace_extent(extent.item, extent.end()).await;
        m.run(Account::System, log.root.after_search(self.fsync.costs.item)).await;
        if self.fsync.fills_in_leaf {
            m.run(Account::System, fill).await;
        }
        ops.release_path(&mut path).await;
    }
}
