//! Names that the last commit gives to other inodes. Who is replayed after a crash takes such a name while the other still has it,
//! so the log must also know what became of the other (`btrfs_check_ref_name_override`, `log_conflicting_inodes` of 5.10 and 6.1).
//!
//! Left out: the conflicts of the other's new name in turn, and what the log says of a renamed file's directories of old (`btrfs_log_all_parents`).

use super::lost_names::Fate;
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::kernel::btrfs::FullCommit;
use crate::waist::Account;
use crate::waist::Machine;

impl Btrfs {
    /// A file loses its name, and another takes its place unless the file is `gone`.
    pub(crate) fn lose_name(&self, slot: u32, inode: &Inode, gone: bool) {
        let committed = self.data(slot).named() < self.transid();
        let fs_root = self.fs_root(inode.ino);
        let mut lost = fs_root.log.lost.borrow_mut();
        if committed {
            lost.lose(inode.entry, slot, inode.ino);
        }
        if gone && self.data(slot).made() < self.transid() {
            lost.delete(inode.ino);
        }
    }

    /// If the last commit gives the name of a new file to another inode, that is logged, or, where it is gone, before 6.1 the directory.
    pub(super) async fn log_conflict<M: Machine>(&self, m: &M, slot: u32, inode: Inode) {
        if self.data(slot).made() < self.transid() {
            return;
        }
        let fs_root = self.fs_root(inode.ino);
        m.run(Account::System, fs_root.root.unlocked_search()).await;
        let fate = fs_root.log.lost.borrow().fate(inode.entry);
        match fate {
            Some(Fate::Deleted) => self.log_parent_of_deleted(m, inode).await,
            Some(Fate::Renamed(other)) if !self.data(other).is_logged(self.transid()) => {
                let ino = self.file(other).ino;
                self.drop_items(m, ino, false).await;
                self.copy_names(m, ino).await;
                self.data(other).log_existence(self.transid());
            }
            Some(Fate::Renamed(_)) | None => {}
        }
    }

    /// Since 6.1 only if it was a directory, which a search of the last commit's tree says (`conflicting_inode_is_dir`). All are files here. A
    /// directory that has lost a name to another in this transaction only the whole transaction can tell.
    async fn log_parent_of_deleted<M: Machine>(&self, m: &M, inode: Inode) {
        if !self.fsync.logs_parent_of_deleted {
            m.run(Account::System, self.fs_root(inode.ino).root.unlocked_search()).await;
        } else if self.fsync.full_commit == FullCommit::Directory && self.last_unlink(inode.dir) == self.transid() {
            self.transaction.set_full_commit(self.transid());
        } else {
            self.log_directory(m, inode.dir).await;
        }
    }
}
