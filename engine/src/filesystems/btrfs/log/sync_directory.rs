//! fsync of a directory (`btrfs_sync_file`): all of it goes into the log, and so do the files whose names are new there
//! (`log_new_dir_dentries`, since 4.1).

use super::directory::entries_at;
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::tree::key::{ItemKind, Key};
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::DirId;
use crate::kernel::btrfs::{FullCommit, LogDirectory};
use crate::waist::Machine;
use crate::waist::Side;

impl Btrfs {
    /// Names of a directory that have changed are on disk afterwards.
    pub(crate) async fn sync_directory<M: Machine>(&self, m: &M, dir: DirId) {
        m.at("fsync");
        let directory = self.directory(dir);
        m.lock(directory.i_rwsem, Side::Write).await;
        let log = &self.fs_root(directory.ino).log;
        log.announce(m);
        log.announce(m);
        if !self.directory_needs_log(dir, self.transaction.committed(), log.on_disk()) {
            return m.unlock(directory.i_rwsem, Side::Write).await;
        }
        let handle = self.start_transaction(m).await;
        let mine = self.fill_log_with_directory(m, dir).await;
        m.unlock(directory.i_rwsem, Side::Write).await;
        self.end_sync(m, log, handle, mine).await;
    }

    /// `btrfs_log_inode_parent` of a directory. A name that a rename has taken from it into another directory only the whole
    /// transaction can tell.
    async fn fill_log_with_directory<M: Machine>(&self, m: &M, dir: DirId) -> Option<u64> {
        let since_committed = self.fsync.full_commit == FullCommit::SinceCommitted;
        if since_committed && self.transaction.full_commit_under_way() {
            return None;
        }
        let before = if since_committed { self.transaction.committed() } else { self.transid() - 1 };
        if self.last_unlink(dir) > before {
            self.transaction.set_full_commit(self.transid());
            return None;
        }
        let log = &self.fs_root(self.directory(dir).ino).log;
        let mine = log.start(m, || self.needs_full_commit()).await?;
        let in_tree = self.log_directory(m, dir).await;
        self.log_new_dentries(m, dir, in_tree).await;
        self.directory_is_logged(dir, mine);
        log.end(m).await;
        Some(mine)
    }

    /// `log_new_dir_dentries`: of files with new names that the log does not have, the inode and the names. Of such whose names are delayed,
    /// and not in the tree, the directory's leaves are not read for that since 6.1 (`log_new_delayed_dentries`).
    pub(super) async fn log_new_dentries<M: Machine>(&self, m: &M, dir: DirId, in_tree: bool) {
        let mut looked = self.fsync.directory == LogDirectory::Delayed && !in_tree;
        while let Some(slot) = self.take_new_name(dir) {
            if !std::mem::replace(&mut looked, true) {
                self.read_changed_entries(m, dir).await;
            }
            let file = self.file(slot);
            if self.data(slot).is_logged(self.transid()) || !self.directories_of(slot).any(|of| of == dir) {
                continue;
            }
            self.ask_for_file(m, slot).await;
            self.drop_items(m, file.ino, false).await;
            self.copy_names(m, file.ino).await;
            self.log_xattrs(m, slot, file.ino).await;
            self.data(slot).log_existence(self.transid());
        }
    }

    /// `btrfs_search_forward`: the entries of a directory in leaves that the transaction has changed, leaf by leaf.
    async fn read_changed_entries<M: Machine>(&self, m: &M, dir: DirId) {
        let kind = if self.fsync.directory < LogDirectory::Indices { ItemKind::DirItem } else { ItemKind::DirIndex };
        let first = Key::new(self.directory(dir).ino, kind, 0);
        let (fs_root, mut from) = (self.fs_root_with(first), first);
        loop {
            let Some(next) = fs_root.root.tree.borrow().first_changed(from) else { return };
            let locked = fs_root.root.locked(m);
            let ops = locked.ops();
            let (mut path, _) = ops.search_slot(next, Intent::Read).await;
            let last = entries_at(&fs_root.root.tree.borrow(), path.leaf(), path.slots[0], first).last().map(|e| e.key);
            ops.release_path(&mut path).await;
            let last = last.unwrap_or(next);
            from = Key::new(last.objectid(), last.kind(), last.offset() + 1);
        }
    }
}
