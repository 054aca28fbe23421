//! A full sync (`BTRFS_INODE_NEEDS_FULL_SYNC`): all that the transaction changed of an inode is logged anew, with the checksums of all its
//! extents, and not only what was written since the last fsync. Of new files and such whose extents went, and before 5.9 of files of
//! which reclaim took the first page of an extent (`try_release_extent_mapping`). Before 5.18 items of earlier transactions in the same
//! leaves are copied with them.
//!
//! Left out: that `btrfs_truncate_inode_items` looks at each item that goes, and holes (`btrfs_log_holes`).

use super::directory::entries_at;
use crate::filesystems::btrfs::data::Placed;
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, ItemKind, Key};
use crate::filesystems::btrfs::tree::locks::TreeLocks;
use crate::filesystems::btrfs::tree::path::Path;
use crate::filesystems::btrfs::tree::search::{Intent, TreeOps};
use crate::filesystems::btrfs::tree::Tree;
use crate::kernel::btrfs::LogInode;
use crate::waist::Account;
use crate::waist::Machine;

impl Btrfs {
    /// A full sync: what the log has of the inode goes, and what the transaction changed of it is copied (`btrfs_truncate_inode_items`,
    /// `copy_inode_items_to_log`).
    pub(super) async fn log_all<M: Machine>(&self, m: &M, slot: u32, inode: Inode) {
        if self.fsync.inode == LogInode::LeafHeld || self.data(slot).is_logged(self.transid()) {
            self.truncate_in_log(m, Key::behind(inode.ino)).await;
        }
        self.copy_changed(m, slot, inode.ino).await;
        self.log_conflict(m, slot, inode).await;
        self.log_xattrs(m, slot, inode.ino).await;
    }

    /// Deletes all items of an inode before a key from the log, a leaf's at a time and from the last on.
    pub(super) async fn truncate_in_log<M: Machine>(&self, m: &M, end: Key) {
        let ino = end.objectid();
        let log = &self.fs_root(ino).log;
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        loop {
            let (mut path, _) = ops.search_slot(end, Intent::Delete).await;
            m.run(Account::System, log.root.after_search(0)).await;
            let run = ops.run_before(&mut path, ino);
            let goes_on = run > 0 && path.slots[0] == 0;
            if run > 0 {
                ops.del_items(&mut path, run).await;
            }
            ops.release_path(&mut path).await;
            if !goes_on {
                return;
            }
        }
    }

    /// The inode and its name go into the log.
    pub(super) async fn copy_names<M: Machine>(&self, m: &M, ino: u64) {
        self.copy_leaf(m, None, items::inode_key(ino), &names(ino)).await;
    }

    /// `copy_inode_items_to_log`: what leaves that the transaction has changed have of a file (`btrfs_search_forward`).
    async fn copy_changed<M: Machine>(&self, m: &M, slot: u32, ino: u64) {
        let fs_root = self.fs_root(ino);
        let changed = |offset| fs_root.root.tree.borrow().first_changed(Key::new(ino, ItemKind::ExtentData, offset));
        let mut next = changed(0);
        let of_inode = |tree: &Tree, key| tree.leaf_of(key) == tree.leaf_of(items::inode_key(ino));
        let together = next.is_some_and(|key| of_inode(&fs_root.root.tree.borrow(), key));
        let mut first = names(ino).to_vec();
        if !together {
            self.copy_leaf(m, None, items::inode_key(ino), &std::mem::take(&mut first)).await;
        }
        while let Some(key) = next {
            let last = self.copy_leaf(m, Some(slot), key, &std::mem::take(&mut first)).await;
            next = changed(last.offset() + 1);
        }
    }

    /// `copy_items`: what a leaf has of a file from a key on, behind `first`. The checksums of extents of this transaction are looked up
    /// while the leaves of both trees are locked, and put into the log when the log's is not. Returns the last key.
    async fn copy_leaf<M: Machine>(&self, m: &M, slot: Option<u32>, from: Key, first: &[Item]) -> Key {
        let fs_root = self.fs_root_with(from);
        let locked = fs_root.root.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(from, Intent::Read).await;
        let here = match slot {
            Some(_) => entries_at(&fs_root.root.tree.borrow(), path.leaf(), path.slots[0], from),
            None => Vec::new(),
        };
        if self.fsync.inode == LogInode::LeafCloned {
            m.run(Account::System, self.fsync.costs.clone).await;
            ops.release_path(&mut path).await;
        }
        let extents = slot.map_or_else(Vec::new, |slot| self.extents_to_copy(slot, &here));
        let items: Vec<Item> = first.iter().copied().chain(extents.iter().map(|(item, _)| *item)).collect();
        let transid = self.transid();
        let fresh = extents.iter().map(|(_, extent)| *extent);
        let fresh: Vec<_> = fresh.filter(|e| e.bytes > 0 && e.generation >= transid && !self.nodatacow).collect();
        if !items.is_empty() {
            self.put_into_log(m, &items, &fresh).await;
        }
        for extent in &fresh {
            self.log_csums(m, &fs_root.log, extent.place, extent.bytes).await;
        }
        ops.release_path(&mut path).await;
        here.last().map_or(from, |item| item.key)
    }

    /// Which of these items of a file a full sync copies.
    fn extents_to_copy(&self, slot: u32, here: &[Item]) -> Vec<(Item, Placed)> {
        let (data, transid) = (self.data(slot), self.transid());
        let known = here.iter().map(|&item| (item, data.extent_at(item.key.offset()).unwrap_or_default()));
        let inline = |extent: &Placed| extent.bytes == 0 && extent.generation > 0;
        let copied = |extent: &Placed| self.fsync.copies_old_extents || extent.generation >= transid || inline(extent);
        known.filter(|(_, extent)| copied(extent)).collect()
    }

    /// Items of one leaf go into the log.
    async fn put_into_log<M: Machine>(&self, m: &M, items: &[Item], fresh: &[Placed]) {
        let log = &self.fs_root_with(items[0].key).log;
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, _) = ops.insert_items(items).await;
        m.run(Account::System, log.root.after_insertion(self.fsync.costs.of_items(items.len()))).await;
        for extent in fresh {
            self.read_csums(m, extent.place).await;
        }
        ops.release_path(&mut path).await;
    }
}

/// The items of an inode but for what it has.
fn names(ino: u64) -> [Item; 2] {
    [items::inode(ino), items::inode_ref(ino, 0, b"")]
}

impl<L: TreeLocks> TreeOps<'_, L> {
    /// How many items of an object lie before the path's slot in its leaf; it points to the first of them then.
    fn run_before(&self, path: &mut Path, objectid: u64) -> usize {
        let tree = self.tree();
        let items = &tree.items(path.leaf())[..path.slots[0]];
        let run = items.iter().rev().take_while(|item| item.key.objectid() == objectid).count();
        path.slots[0] -= run;
        run
    }
}
