//! A file's extents and its size: `extent_fiemap`, `btrfs_truncate`.

use super::super::mount::Btrfs;
use super::super::tree::items;
use crate::filesystems::inodes::times::Timed;
use crate::filesystems::File;
use crate::kernel::btrfs::DirtyInode;
use crate::waist::Machine;
use crate::waist::{Access, Account, Side, Time};

impl Btrfs {
    /// `extent_fiemap`: a search for the first of the extents that lie in a leaf.
    pub(super) async fn list_extents<M: Machine>(&self, m: &M, file: &File) {
        let inode = self.file(file.inode);
        let extents = self.data(file.inode).items(inode.ino);
        let first = extents.first().map_or_else(|| items::extent(inode.ino, 0).key, |item| item.key);
        let time = self.costs.create.read_leaf * extents.len().max(1) as u64;
        self.read_item(m, first, time).await;
    }

    /// `btrfs_dirty_inode`: the inode is written later, with what else is delayed of it (`btrfs_delayed_update_inode`).
    pub(super) async fn dirty_inode<M: Machine>(&self, m: &M, inode: Timed, time: Time) {
        let handle = match self.dirty_inode {
            DirtyInode::Joins => self.transaction.join(m).await,
            DirtyInode::Starts => self.start_transaction(m).await,
        };
        m.run(Account::System, time).await;
        let ino = match inode {
            Timed::File(slot) => self.file(slot).ino,
            Timed::Directory(dir) => self.directory(dir).ino,
        };
        self.update_root_times(m, ino).await;
        m.touch(self.delayed_line, Access::Write);
        self.sb.line.owner(m).await; // fill_stack_inode_item
        let new = match inode {
            Timed::File(_) => self.delayed.borrow_mut().update_file_inode(ino),
            Timed::Directory(dir) => {
                let mutex = self.directory(dir).delayed;
                m.lock(mutex, Side::Write).await;
                let new = self.delayed.borrow_mut().update_inode(dir);
                m.unlock(mutex, Side::Write).await;
                new
            }
        };
        match inode {
            Timed::File(slot) => self.data(slot).change(self.transid()), // `btrfs_set_inode_last_trans`
            Timed::Directory(dir) => self.directory_changed(dir),
        }
        if new && self.dirty_inode == DirtyInode::Joins {
            self.transaction.reservations.reserve(m).await; // `btrfs_delayed_inode_reserve_metadata`
        }
        self.end_transaction(m, handle).await;
        self.btree_balance_dirty(m).await;
    }

    /// `btrfs_setsize` and `btrfs_truncate` to nothing: what is on its way to the device is waited for, then the extents are given back
    /// in a handle, and the inode is written.
    pub(super) async fn truncate_file<M: Machine>(&self, m: &M, file: &File) {
        let slot = file.inode;
        let inode = self.file(slot);
        self.data(slot).truncate();
        self.count_dirty(slot);
        self.storage.writeback.truncated(m, slot, 0).await;
        self.sb.calls.truncate_pages(m, file, self.costs.unlink.drop_pages).await;
        self.ordered.wait_for_file(m, slot).await;
        let handle = self.start_transaction(m).await;
        let extents = self.data(slot).drop_extents();
        m.run(Account::System, self.costs.unlink.truncate).await;
        self.delete_extents(m, inode.ino, &extents).await;
        m.run(Account::System, self.costs.unlink.after_truncate).await;
        self.update_root_times(m, inode.ino).await;
        self.data(slot).truncated(self.transid());
        self.end_transaction(m, handle).await;
        self.btree_balance_dirty_nodelay(m).await;
    }
}
