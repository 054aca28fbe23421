//! `FICLONE` (`fs/btrfs/reflink.c` of 6.12): a new file gets the extents of another, which both use from then on until one of them writes
//! there; each write has a new place anyway.
//!
//! Left out: `i_mmap_lock` of both inodes, which page faults take; ranges; a target that has data.

use super::super::data::Placed;
use super::super::mount::{Btrfs, Inode};
use super::super::tree::items;
use crate::waist::Machine;
use crate::waist::{Account, Side};

impl Btrfs {
    /// `btrfs_remap_file_range`: both inodes' locks in their order (`lock_two_nondirectories`), what of the first is dirty goes to the
    /// device and into the tree, then its extents are cloned.
    pub(super) async fn clone_file<M: Machine>(&self, m: &M, from: u32, to: u32) {
        let (source, target, rest) = (self.file(from), self.file(to), self.costs.reflink.rest);
        let mut locks = [(from, source.i_rwsem), (to, target.i_rwsem)];
        locks.sort_unstable_by_key(|(slot, _)| *slot); // by address
        for (_, lock) in locks {
            m.lock(lock, Side::Write).await;
        }
        m.run(Account::System, rest / 2).await;
        self.write_and_wait(m, from, source).await;
        self.clone_extents(m, (from, source), (to, target)).await;
        m.run(Account::System, rest - rest / 2).await;
        for (_, lock) in locks.into_iter().rev() {
            m.unlock(lock, Side::Write).await;
        }
    }

    /// `btrfs_clone`. That both files use an extent is known from the beginning, so that it stays whatever becomes of the first.
    async fn clone_extents<M: Machine>(&self, m: &M, (from, source): (u32, Inode), (to, target): (u32, Inode)) {
        let data = self.data(from).clone();
        self.data(to).share_data_of(&data, self.transid());
        let owned = data.on_device();
        owned.iter().for_each(|&(place, _)| self.extents.refs.share(place));
        let mut owned = owned.into_iter();
        for extent in data.extents() {
            self.read_item(m, items::extent(source.ino, extent.offset).key, self.costs.reflink.extent).await;
            self.replace_extent(m, target, to, *extent, owned.next()).await;
        }
    }

    /// `btrfs_replace_file_extents` of a range without data: nothing is dropped, the item goes in, the extent tree will hear of another
    /// reference to what is on disk (`btrfs_inc_extent_ref`), and the inode is changed later.
    async fn replace_extent<M: Machine>(
        &self,
        m: &M,
        inode: Inode,
        slot: u32,
        extent: Placed,
        on_disk: Option<(u64, u64)>,
    ) {
        let handle = self.start_transaction(m).await;
        let item = self.data(slot).item(inode.ino, &extent);
        // btrfs_drop_extents: a new file is the last of its tree, so that btrfs_next_leaf searches once more
        self.read_item(m, item.key, 0).await;
        self.read_item(m, item.key, 0).await;
        self.insert(m, &[item], self.costs.reflink.extent).await;
        if let Some((place, bytes)) = on_disk {
            self.extents.refs.count_data(m, place, bytes).await;
        }
        self.data(slot).change(self.transid());
        self.delay_file_inode(m, inode.ino).await;
        self.end_transaction(m, handle).await;
        if self.fsync.rename_balances {
            self.btree_balance_dirty(m).await;
        }
    }
}
