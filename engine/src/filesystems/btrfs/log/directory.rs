//! A directory in the log: its inode, and its entries as far as they lie in leaves that this transaction has changed
//! (`log_directory_changes`, `log_dir_items`).

use super::delayed_entries::DelayedEntries;
use super::LogTree;
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::btrfs::tree::key::{Item, ItemKind, Key};
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::btrfs::tree::Tree;
use crate::filesystems::DirId;
use crate::kernel::btrfs::{LogDirectory, LogInode};
use crate::waist::Machine;
use crate::waist::Side;

/// Where entries by index begin that are not of earlier transactions, and those that the log need not have yet.
struct Known {
    old: Key,
    unlogged: Key,
}

impl Btrfs {
    /// `btrfs_log_inode` of a directory with all its entries (`LOG_INODE_ALL`). Whether entries of it were found in the tree.
    pub(super) async fn log_directory<M: Machine>(&self, m: &M, dir: DirId) -> bool {
        let (directory, design) = (self.directory(dir), self.fsync.directory);
        self.commit_delayed_for_log(m, dir).await;
        m.lock(directory.log_mutex, Side::Write).await;
        self.ask_for_directory(m, dir).await;
        let logged = self.new_and_logged(dir).1;
        self.drop_directory_items(m, directory.ino, logged).await;
        self.copy_names(m, directory.ino).await;
        self.log_directory_xattrs(m, dir).await;
        let index = |first| Key::new(directory.ino, ItemKind::DirIndex, first);
        let known = Known {
            old: index(self.first_new(dir)),
            unlogged: index(if design > LogDirectory::Each { self.take_unlogged(dir) } else { 0 }),
        };
        if design < LogDirectory::Indices {
            let first = Key::new(directory.ino, ItemKind::DirItem, 0);
            self.log_entries(m, first, Known { unlogged: if logged { index(0) } else { first }, ..known }).await;
        }
        let delayed = match design {
            LogDirectory::Delayed => self.delayed_entries(m, dir, known.unlogged).await,
            _ => DelayedEntries::default(),
        };
        let unlogged = if logged || design >= LogDirectory::New { known.unlogged } else { index(0) };
        let last = self.log_entries(m, index(0), Known { unlogged, ..known }).await;
        let log = &self.fs_root(directory.ino).log;
        self.log_delayed(m, log, &delayed, (last, logged)).await;
        self.set_logged(dir);
        m.unlock(directory.log_mutex, Side::Write).await;
        last.is_some()
    }

    /// Before 6.1 who logs a directory puts what is delayed of it into the tree first.
    pub(super) async fn commit_delayed_for_log<M: Machine>(&self, m: &M, dir: DirId) {
        if self.fsync.directory < LogDirectory::Delayed {
            while self.commit_directory_batch(m, dir).await {}
        }
    }

    /// What the log has of the directory, before it is logged again: until 6.0 all ranges too.
    async fn drop_directory_items<M: Machine>(&self, m: &M, ino: u64, logged: bool) {
        if self.fsync.directory == LogDirectory::Delayed {
            self.drop_items(m, ino, logged).await;
        } else if logged || self.fsync.inode == LogInode::LeafHeld {
            self.truncate_in_log(m, Key::new(ino, ItemKind::DirItem, 0)).await;
        }
    }

    /// `log_dir_items`: the entries of this kind from a key on, and the range that the log knows of. Returns the last that went there.
    async fn log_entries<M: Machine>(&self, m: &M, first: Key, known: Known) -> Option<Key> {
        let fs_root = self.fs_root_with(first);
        let (mut from, mut found, mut range) = (first, None, first);
        loop {
            let Some(next) = fs_root.root.tree.borrow().first_changed(from) else { break };
            let locked = fs_root.root.locked(m);
            let ops = locked.ops().blocking(); // as `btrfs_search_forward` leaves it
            let (mut path, _) = ops.search_slot(next, Intent::Read).await;
            let entries = entries_at(&fs_root.root.tree.borrow(), path.leaf(), path.slots[0], first);
            match self.fsync.directory {
                LogDirectory::Each => self.log_each(m, &fs_root.log, &entries).await,
                LogDirectory::Batches | LogDirectory::Indices => {
                    self.log_batch(m, &fs_root.log, &entries, known.unlogged).await;
                }
                LogDirectory::New | LogDirectory::Delayed => {
                    range = self.log_gaps(m, &fs_root.log, &entries, (range, known.old)).await;
                    let new = &entries[entries.partition_point(|entry| entry.key < known.unlogged)..];
                    self.log_batch(m, &fs_root.log, new, known.unlogged).await;
                    found = new.last().map(|entry| entry.key).or(found);
                }
            }
            ops.release_path(&mut path).await;
            let last = entries.last().map_or(next, |entry| entry.key);
            from = Key::new(last.objectid(), last.kind(), last.offset() + 1);
        }
        self.log_range(m, &fs_root.log, range).await;
        found
    }

    /// Of old entries the log has to know between which others are gone, since 5.18. Returns where the range after the last begins. `from`: that of
    /// the leaf before. Left out: that the first entries are gone, and that the range is not known where a leaf was passed over.
    async fn log_gaps<M: Machine>(&self, m: &M, log: &LogTree, entries: &[Item], (from, old): (Key, Key)) -> Key {
        let behind = |key: Key| Key::new(key.objectid(), key.kind(), key.offset() + 1);
        let mut range = from;
        for entry in entries.iter().take_while(|entry| entry.key < old) {
            if entry.key > range && range.offset() > 0 {
                self.log_range(m, log, range).await;
            }
            range = behind(entry.key);
        }
        range
    }

    /// `process_dir_items_leaf`: those that the log lacks go there together.
    async fn log_batch<M: Machine>(&self, m: &M, log: &LogTree, entries: &[Item], unlogged: Key) {
        let mut batch = Vec::new();
        for entry in entries {
            if entry.key >= unlogged || !self.log_has(m, log, entry.key).await {
                batch.push(*entry);
            }
        }
        if !batch.is_empty() {
            self.log_insertion(m, log, &batch).await;
        }
    }

    async fn log_has<M: Machine>(&self, m: &M, log: &LogTree, key: Key) -> bool {
        let locked = log.root.locked(m);
        let ops = locked.ops().blocking();
        let (mut path, found) = ops.search_slot(key, Intent::Read).await;
        ops.release_path(&mut path).await;
        found
    }

    /// `overwrite_item`: what the log has already it need not copy again.
    async fn log_each<M: Machine>(&self, m: &M, log: &LogTree, entries: &[Item]) {
        for entry in entries {
            if !self.log_has(m, log, entry.key).await {
                self.log_insertion(m, log, std::slice::from_ref(entry)).await;
            }
        }
    }

    /// `btrfs_del_dir_entries_in_log`: a name that is lost is taken out of a directory that the log has.
    pub(super) async fn unlink_in_logged_directory<M: Machine>(&self, m: &M, inode: Inode) {
        let log = &self.fs_root(inode.ino).log;
        if !self.directory_is_in_log(m, inode.dir).await || !log.join(m).await {
            return;
        }
        let directory = self.directory(inode.dir);
        m.lock(directory.log_mutex, Side::Write).await;
        let by_hash = self.fsync.directory < LogDirectory::Indices && self.log_deletion(m, log, inode.entry).await;
        let index = items::dir_index(directory.ino, inode.index, b"").key;
        let by_index = self.log_deletion(m, log, index).await;
        if self.fsync.unlink_logs_inode && (by_hash || by_index) {
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
                self.log_range(m, log, Key::new(directory.ino, ItemKind::DirIndex, old.index)).await;
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
