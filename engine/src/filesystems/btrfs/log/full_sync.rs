//! A full sync (`BTRFS_INODE_NEEDS_FULL_SYNC`): all that the transaction changed of an inode is logged anew, with the checksums of all its
//! extents, and not only what was written since the last fsync. Of new files and such whose extents went, and before 5.9 of files of
//! which reclaim took the first page of an extent (`try_release_extent_mapping`). Items of earlier transactions in the same leaves are
//! not copied with them.

use crate::filesystems::btrfs::data::Placed;
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, Key};
use crate::filesystems::btrfs::tree::locks::TreeLocks;
use crate::filesystems::btrfs::tree::path::Path;
use crate::filesystems::btrfs::tree::search::{Intent, TreeOps};
use crate::kernel::btrfs::LogInode;
use crate::waist::Account;
use crate::waist::Machine;

/// Most items that are copied into the log together; a leaf has room for more of an extent's.
const MOST_ITEMS: usize = 100;

impl Btrfs {
    /// A full sync: what the log has of the inode goes, and what the transaction changed of it is copied (`btrfs_truncate_inode_items`,
    /// `copy_inode_items_to_log`).
    pub(super) async fn log_all<M: Machine>(&self, m: &M, slot: u32, inode: Inode) {
        if self.fsync.inode == LogInode::LeafHeld || self.data(slot).is_logged(self.transid()) {
            self.truncate_in_log(m, inode.ino).await;
        }
        let extents = self.data(slot).to_copy(self.transid(), inode.ino);
        self.copy_items(m, inode.ino, &extents).await;
        self.log_conflict(m, slot, inode).await;
        self.log_xattrs(m, slot, inode.ino).await;
    }

    /// Deletes all items of an inode from the log, a leaf's at a time and from the last on.
    async fn truncate_in_log<M: Machine>(&self, m: &M, ino: u64) {
        let log = &self.fs_root(ino).log;
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        loop {
            let (mut path, _) = ops.search_slot(Key::behind(ino), Intent::Delete).await;
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

    /// `copy_items`, leaf by leaf: the checksums of extents of this transaction are looked up while the leaves of both trees are
    /// locked, and put into the log when the log's is not.
    pub(super) async fn copy_items<M: Machine>(&self, m: &M, ino: u64, extents: &[(Item, Placed)]) {
        let names = [items::inode(ino), items::inode_ref(ino, 0, b"")];
        let all: Vec<_> = names
            .into_iter()
            .map(|item| (item, None))
            .chain(extents.iter().map(|&(item, extent)| (item, Some(extent))))
            .collect();
        let fs_root = self.fs_root(ino);
        let (locked, transid) = (fs_root.root.locked(m), self.transid());
        for part in all.chunks(MOST_ITEMS) {
            let ops = locked.ops();
            let (mut path, _) = ops.search_slot(part[0].0.key, Intent::Read).await;
            if self.fsync.inode == LogInode::LeafCloned {
                m.run(Account::System, self.fsync.costs.clone).await;
                ops.release_path(&mut path).await;
            }
            let items: Vec<Item> = part.iter().map(|(item, _)| *item).collect();
            let fresh = part.iter().filter_map(|(_, extent)| *extent);
            let fresh: Vec<_> = fresh.filter(|e| e.bytes > 0 && e.generation >= transid && !self.nodatacow).collect();
            self.copy_leaf(m, &items, &fresh).await;
            for extent in &fresh {
                self.log_csums(m, &fs_root.log, extent.place, extent.bytes).await;
            }
            ops.release_path(&mut path).await;
        }
    }

    /// Items of one leaf go into the log.
    async fn copy_leaf<M: Machine>(&self, m: &M, items: &[Item], fresh: &[Placed]) {
        let log = &self.fs_root_with(items[0].key).log;
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, _) = ops.insert_items(items).await;
        m.run(Account::System, log.root.after_insertion(self.fsync.costs.item)).await;
        for extent in fresh {
            self.read_csums(m, extent.place).await;
        }
        ops.release_path(&mut path).await;
    }
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
