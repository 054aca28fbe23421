//! An inode's attributes, its extents and its size: `btrfs_setattr`, `extent_fiemap`, `btrfs_truncate`.

use super::super::mount::Btrfs;
use super::super::tree::items;
use crate::filesystems::{Attribute, File};
use crate::waist::Machine;
use crate::waist::{Account, Side};

impl Btrfs {
    /// `btrfs_setattr`, `btrfs_dirty_inode`: times, mode and owner alike.
    pub(super) async fn setattr<M: Machine>(&self, m: &M, file: &File, attribute: Attribute) {
        let setattr = async |time| {
            let handle = self.transaction.join(m).await;
            m.run(Account::System, time).await;
            self.transaction.end(m, handle).await;
        };
        self.sb.notify_change(m, attribute, (file.inode, self.file(file.inode).i_rwsem), setattr).await;
    }

    /// `extent_fiemap`: `i_rwsem` shared, and a search for the first of the extents that lie in a leaf.
    pub(super) async fn list_extents<M: Machine>(&self, m: &M, file: &File) {
        let inode = self.file(file.inode);
        m.at("fiemap");
        self.sb.calls.files.held(m, file.inode);
        m.run(Account::System, self.costs.truncate.enter).await;
        m.lock(inode.i_rwsem, Side::Read).await;
        let extents = self.data(file.inode).items(inode.ino);
        let first = extents.first().map_or_else(|| items::extent(inode.ino, 0).key, |item| item.key);
        let time = self.costs.create.read_leaf * extents.len().max(1) as u64;
        self.read_item(m, first, time).await;
        m.unlock(inode.i_rwsem, Side::Read).await;
    }

    /// `ftruncate` to nothing (`btrfs_setsize`, `btrfs_truncate`): what is on its way to the device is waited for, then the extents
    /// are given back in a handle, and the inode is written.
    pub(super) async fn truncate_file<M: Machine>(&self, m: &M, file: &File) {
        let (slot, inode) = (file.inode, self.file(file.inode));
        m.at("truncate");
        self.sb.calls.files.held(m, slot);
        m.run(Account::System, self.costs.truncate.enter).await;
        self.sb.start_write(m).await;
        m.lock(inode.i_rwsem, Side::Write).await;
        self.data(slot).truncate();
        self.log.storage.writeback.truncated(m, slot, 0).await;
        self.ordered.wait_for_file(m, slot).await;
        let handle = self.start_transaction(m).await;
        let extents = self.data(slot).drop_extents();
        m.run(Account::System, self.costs.unlink.truncate).await;
        self.delete_extents(m, inode.ino, &extents).await;
        m.run(Account::System, self.costs.unlink.after_truncate).await;
        self.data(slot).truncated(self.transid());
        self.transaction.end(m, handle).await;
        m.unlock(inode.i_rwsem, Side::Write).await;
        self.sb.end_write(m).await;
    }
}
