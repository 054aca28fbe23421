//! A directory in the log: its inode, and its entries as far as they lie in leaves that this transaction has changed
//! (`log_directory_changes`, `log_dir_items`).

use super::LogTree;
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, ItemKind, Key};
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::btrfs::tree::Tree;
use crate::filesystems::DirId;
use crate::kernel::btrfs::LogDirectory;
use crate::waist::Machine;
use crate::waist::Side;

/// Bytes of a range of a directory of which the log knows all (`struct btrfs_dir_log_item`).
const RANGE: u32 = 8;

impl Btrfs {
    /// `btrfs_log_inode` of a directory with all its entries (`LOG_INODE_ALL`).
    pub(super) async fn log_directory<M: Machine>(&self, m: &M, dir: DirId) {
        let (directory, design) = (self.directory(dir), self.fsync.directory);
        while self.commit_directory_batch(m, dir).await {}
        m.lock(directory.log_mutex, Side::Write).await;
        let logged = self.new_and_logged(dir).1;
        self.drop_items(m, directory.ino).await;
        self.copy_names(m, directory.ino).await;
        self.log_directory_xattrs(m, dir).await;
        if design < LogDirectory::Indices {
            self.log_entries(m, Key::new(directory.ino, ItemKind::DirItem, 0), logged).await;
        }
        let first = if design == LogDirectory::New { self.take_unlogged(dir) } else { 0 };
        self.log_entries(m, Key::new(directory.ino, ItemKind::DirIndex, first), logged).await;
        self.set_logged(dir);
        m.unlock(directory.log_mutex, Side::Write).await;
    }

    /// `log_dir_items`: the entries of this kind from a key on, and the range that the log knows of.
    async fn log_entries<M: Machine>(&self, m: &M, first: Key, logged: bool) {
        let fs_root = self.fs_root_with(first);
        let each = self.fsync.directory == LogDirectory::Each || logged;
        let mut from = first;
        loop {
            let Some(next) = fs_root.root.tree.borrow().first_changed(from) else { break };
            let locked = fs_root.root.locked(m);
            let ops = locked.ops().blocking(); // as `btrfs_search_forward` leaves it
            let (mut path, _) = ops.search_slot(next, Intent::Read).await;
            let entries = entries_at(&fs_root.root.tree.borrow(), path.leaf(), path.slots[0], first);
            match entries.last() {
                Some(_) if each => self.log_each(m, &fs_root.log, &entries).await,
                Some(_) => self.log_insertion(m, &fs_root.log, &entries).await,
                None => {}
            }
            ops.release_path(&mut path).await;
            let last = entries.last().map_or(next, |entry| entry.key);
            from = Key::new(last.objectid(), last.kind(), last.offset() + 1);
        }
        let range = Key::new(first.objectid(), ItemKind::DirLogIndex, first.offset());
        self.log_each(m, &fs_root.log, &[Item::new(range, RANGE)]).await;
    }

    /// `overwrite_item`: what the log has already it need not copy again.
    async fn log_each<M: Machine>(&self, m: &M, log: &LogTree, entries: &[Item]) {
        for entry in entries {
            let locked = log.root.locked(m);
            let ops = locked.ops().blocking();
            let (mut path, found) = ops.search_slot(entry.key, Intent::Read).await;
            ops.release_path(&mut path).await;
            if !found {
                self.log_insertion(m, log, std::slice::from_ref(entry)).await;
            }
        }
    }

    /// `btrfs_del_dir_entries_in_log`: a name that is lost is taken out of a directory that the log has.
    pub(super) async fn unlink_in_logged_directory<M: Machine>(&self, m: &M, inode: Inode) {
        let log = &self.fs_root(inode.ino).log;
        if !self.new_and_logged(inode.dir).1 || !log.join(m).await {
            return;
        }
        let directory = self.directory(inode.dir);
        m.lock(directory.log_mutex, Side::Write).await;
        if self.fsync.directory < LogDirectory::Indices {
            self.log_deletion(m, log, inode.entry).await;
        }
        self.log_deletion(m, log, items::dir_index(directory.ino, inode.index, b"").key).await;
        if self.fsync.unlink_logs_inode {
            self.log_change(m, log, items::inode_key(directory.ino), Intent::Update).await;
        }
        m.unlock(directory.log_mutex, Side::Write).await;
        log.end(m).await;
    }

    /// Joins the log to take the old name of a renamed file out of a directory that it has. If it does not have the name, it learns of
    /// a range without it (`insert_dir_log_key`).
    pub(super) async fn join_and_lose<M: Machine>(&self, m: &M, old: Inode) -> bool {
        let log = &self.fs_root(old.ino).log;
        let joined = log.join(m).await;
        if joined {
            let directory = self.directory(old.dir);
            m.lock(directory.log_mutex, Side::Write).await;
            if !self.log_deletion(m, log, items::dir_index(directory.ino, old.index, b"").key).await {
                let range = Key::new(directory.ino, ItemKind::DirLogIndex, old.index);
                self.log_each(m, log, &[Item::new(range, RANGE)]).await;
            }
            m.unlock(directory.log_mutex, Side::Write).await;
        }
        joined
    }

    /// Whether it was there.
    async fn log_deletion<M: Machine>(&self, m: &M, log: &LogTree, key: Key) -> bool {
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, found) = ops.search_slot(key, Intent::Delete).await;
        if found {
            ops.del_items(&mut path, 1).await;
        }
        ops.release_path(&mut path).await;
        found
    }
}

/// The entries of a leaf from a slot on that are of the object and kind of a key.
pub(super) fn entries_at(tree: &Tree, leaf: u32, slot: usize, first: Key) -> Vec<Item> {
    let behind = &tree.items(leaf)[slot..];
    behind.iter().take_while(|item| item.key.is_like(first)).copied().collect()
}
