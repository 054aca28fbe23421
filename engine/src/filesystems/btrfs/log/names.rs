//! Names and the log: what it must know of names that are lost, and of new directories.

use crate::filesystems::btrfs::fs_root::is_root_directory;
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::transaction::Handle;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::DirId;
use crate::kernel::btrfs::FullCommit;
use crate::waist::Machine;
use crate::waist::Side;

/// What became of the new name of a renamed file in the log.
pub(crate) enum NewName {
    /// The log does not have the file.
    NotLogged,
    /// This log transaction has the name.
    Logged(u64),
    /// Only the whole transaction can tell it.
    NeedsCommit,
}

impl Btrfs {
    /// Whether the log would need a name that a directory has lost, by the kernel's rule.
    pub(super) async fn lost_name<M: Machine>(&self, m: &M, slot: u32, dir: DirId) -> bool {
        let before = match self.fsync.full_commit {
            FullCommit::SinceCommitted => self.transaction.committed(),
            FullCommit::Running => self.transid() - 1,
            FullCommit::Directory => {
                let logs_directory = self.data(slot).renamed() == self.transid();
                return logs_directory && self.directories_of(slot).any(|dir| self.last_unlink(dir) == self.transid());
            }
        };
        self.data(slot).named() > before && self.parent_lost_name(m, dir, before).await
    }

    /// `check_parent_dirs_for_sync`: whether the directory of a file or one above it has lost a name that the log does not know since
    /// that transaction, which is asked under their mutexes.
    async fn parent_lost_name<M: Machine>(&self, m: &M, dir: DirId, before: u64) -> bool {
        let above = if is_root_directory(self.directory(dir).ino) { dir } else { 0 };
        for dir in [dir].into_iter().chain((above != dir).then_some(above)) {
            let mutex = self.directory(dir).log_mutex;
            m.lock(mutex, Side::Write).await;
            let lost = self.last_unlink(dir) > before;
            m.unlock(mutex, Side::Write).await;
            if lost {
                return true;
            }
        }
        false
    }

    /// `btrfs_record_unlink_dir` of a rename into another directory (`btrfs_rename` asks for no other): an fsync of the file logs its
    /// directories (`last_unlink_trans`). The old one loses a name; if the log has the file it will have the new name too.
    pub(crate) async fn record_rename<M: Machine>(&self, m: &M, slot: u32, dir: DirId) {
        let transid = self.transid();
        let is_logged = self.data(slot).is_logged(transid) || self.new_and_logged(dir).1;
        self.data(slot).unlink(transid);
        if !is_logged {
            let mutex = self.directory(dir).log_mutex;
            m.lock(mutex, Side::Write).await;
            self.record_unlink(dir);
            m.unlock(mutex, Side::Write).await;
        }
    }

    /// `btrfs_log_new_name`: what the log has of a renamed or linked file gets the new name.
    ///
    /// So does one that a directory loses of which the log has all (`old`, with that name).
    pub(crate) async fn log_new_name<M: Machine>(&self, m: &M, slot: u32, old: Option<Inode>) -> NewName {
        self.data(slot).rename(self.transid());
        if !self.takes_new_name(m, slot, old).await {
            return NewName::NotLogged;
        }
        let lost = old.filter(|old| self.new_and_logged(old.dir).1);
        let joined = match lost {
            Some(old) if !self.fsync.rename_unlogs => self.join_and_lose(m, old).await,
            _ => false,
        };
        let name = self.log_names(m, slot).await;
        if joined {
            self.fs_root(self.file(slot).ino).log.end(m).await;
        }
        name
    }

    /// Whether the log has the file or the directory of its old name. Before 5.14 it is what memory says.
    async fn takes_new_name<M: Machine>(&self, m: &M, slot: u32, old: Option<Inode>) -> bool {
        if !self.fsync.new_name_asks {
            return self.data(slot).is_logged(self.transid()) || old.is_some_and(|old| self.new_and_logged(old.dir).1);
        }
        match old {
            _ if self.file_is_logged(m, slot).await => true,
            Some(old) => self.directory_is_in_log(m, old.dir).await,
            None => false,
        }
    }

    /// The inode with its names, and nothing else of it (`LOG_INODE_EXISTS`).
    async fn log_names<M: Machine>(&self, m: &M, slot: u32) -> NewName {
        let inode = self.file(slot);
        let log = &self.fs_root(inode.ino).log;
        let Some(mine) = log.start(m, || self.needs_full_commit()).await else { return NewName::NeedsCommit };
        self.ask_for_file(m, slot).await;
        let logged = self.data(slot).is_logged(self.transid());
        self.drop_items(m, inode.ino, logged).await;
        self.copy_names(m, inode.ino).await;
        self.log_conflict(m, slot, inode).await;
        self.data(slot).log_existence(self.transid());
        log.end(m).await;
        NewName::Logged(mine)
    }

    /// Ends the handle of a rename: kernels from 4.19 to 5.9 sync the log that has the new name, or commit (`btrfs_rename`).
    pub(crate) async fn end_rename<M: Machine>(&self, m: &M, handle: Handle, slot: u32, name: NewName) {
        let done = match name {
            NewName::Logged(mine) if self.fsync.rename_syncs => {
                let log = &self.fs_root(self.file(slot).ino).log;
                log.sync(m, mine, || self.needs_full_commit()).await
            }
            NewName::NeedsCommit => !self.fsync.rename_syncs,
            NewName::Logged(_) | NewName::NotLogged => true,
        };
        if done {
            self.end_transaction(m, handle).await;
        } else {
            self.commit_for_fsync(m, handle).await;
        }
    }

    /// `btrfs_del_inode_ref_in_log` and `btrfs_del_dir_entries_in_log`: a name that is lost is taken out of the log, if that has the
    /// file, and if it has the directory. A reference that is not there is looked for as an extended one too (`btrfs_del_inode_extref`).
    pub(crate) async fn unlink_in_log<M: Machine>(&self, m: &M, slot: u32, inode: Inode) {
        let log = &self.fs_root(inode.ino).log;
        if self.file_is_logged(m, slot).await && log.join(m).await {
            let name = items::inode_ref(inode.ino, self.directory(inode.dir).ino, b"").key;
            if !self.log_change(m, log, name, Intent::Delete).await {
                self.log_change(m, log, name, Intent::Delete).await;
            }
            log.end(m).await;
        }
        self.unlink_in_logged_directory(m, inode).await;
    }

    /// `log_new_ancestors_fast`: if the directory of a new file was made in this transaction as well, its inode and name are logged, before 6.1
    /// after all that is delayed for it is committed. Before 5.12 this is done again with each file.
    pub(super) async fn log_new_ancestor<M: Machine>(&self, m: &M, dir: DirId) {
        let (is_new, logged) = self.new_and_logged(dir);
        if !is_new || (logged && !self.fsync.relogs_ancestors) {
            return;
        }
        let directory = self.directory(dir);
        self.commit_delayed_for_log(m, dir).await;
        m.lock(directory.log_mutex, Side::Write).await;
        self.ask_for_directory(m, dir).await;
        self.drop_items(m, directory.ino, logged).await;
        self.copy_names(m, directory.ino).await;
        self.log_directory_xattrs(m, dir).await;
        m.unlock(directory.log_mutex, Side::Write).await;
        self.set_logged(dir);
    }
}
