//! Names of files that have several: `btrfs_link`, and `btrfs_unlink` of one of them. The inode no longer knows the index of a name, so
//! that its reference is deleted by a search, and at once (`btrfs_del_inode_ref`).

use super::super::mount::{Btrfs, Directory, Inode};
use super::super::names::Name;
use super::super::tree::items;
use super::super::tree::key::{ITEM_HEAD, LEAF_DATA};
use crate::filesystems::DirId;
use crate::waist::Machine;
use crate::waist::{Access, Account};

impl Btrfs {
    /// `btrfs_link` and `btrfs_add_link` under the locks of directory and file: the reference, the entry, both inodes later.
    pub(super) async fn link_inode<M: Machine>(&self, m: &M, dir: DirId, name: &[u8], slot: u32) {
        let (d, inode, c) = (self.directory(dir), self.file(slot), &self.costs.create);
        let reference = items::inode_ref(inode.ino, d.ino, name);
        if (self.names.count_in(slot, dir) as u32 + 2) * u32::from(reference.size) + 2 * ITEM_HEAD > LEAF_DATA {
            return m.give_up("more names of a file in one directory than a leaf of btrfs holds need INODE_EXTREF items, which simfs does not have");
        }
        let handle = self.start_transaction(m).await;
        self.extend(m, reference, c.insert_entry).await;
        let index = self.insert_dir_item(m, dir, d, name, c.insert_entry).await;
        m.run(Account::System, self.costs.delayed.update_inode).await;
        self.delay_file_inode(m, inode.ino).await;
        self.names.add(slot, Name { dir, index, entry: items::dir_item(d.ino, name).key });
        self.note_new_name(dir, slot);
        self.data(slot).link(self.transid());
        let name = self.log_new_name(m, slot, None).await;
        self.end_rename(m, handle, slot, name).await;
        self.btree_balance_dirty(m).await;
    }

    /// `btrfs_unlink` of a name of a file that keeps others (`btrfs_record_unlink_dir` and `btrfs_unlink_inode`): there is no orphan. That
    /// the inode is changed is in the step `delayed_index`, as of any unlink.
    pub(super) async fn unlink_link<M: Machine>(&self, m: &M, d: Directory, name: &[u8], inode: &Inode, slot: u32) {
        let handle = self.start_transaction(m).await;
        self.data(slot).unlink(self.transid());
        self.remove_name(m, d, name, inode, Some((slot, false))).await;
        self.drop_name(slot, inode.name());
        self.delay_file_inode(m, inode.ino).await;
        m.run(Account::System, self.costs.unlink.tail).await;
        self.end_transaction(m, handle).await;
        self.btree_balance_dirty(m).await;
    }

    /// `btrfs_update_inode` of a file whose number of links changes: later, by a worker.
    pub(super) async fn delay_file_inode<M: Machine>(&self, m: &M, ino: u64) {
        self.update_root_times(m, ino).await;
        m.touch(self.delayed_line, Access::Write);
        self.delayed.borrow_mut().update_file_inode(ino);
    }
}
