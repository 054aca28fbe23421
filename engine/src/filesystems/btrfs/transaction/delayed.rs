//! Delayed items: `DIR_INDEX` entries and inode updates that wait in memory, by directory, until a worker or the commit puts
//! them into the tree in batches (`fs/btrfs/delayed-inode.c` of Linux 6.18).

use crate::filesystems::btrfs::tree::items::inode_key;
use crate::filesystems::btrfs::tree::key::{Item, Key, LEAF_DATA};
use crate::filesystems::btrfs::tree::locks::{TreeLocks, Work};
use crate::filesystems::btrfs::tree::path::Path;
use crate::filesystems::btrfs::tree::search::{Intent, TreeOps};
use std::collections::{BTreeMap, VecDeque};

/// From so many items on, the task that added one starts a worker (`BTRFS_DELAYED_BACKGROUND`).
pub const BACKGROUND: usize = 128;
/// From so many on it also waits (`BTRFS_DELAYED_WRITEBACK`).
pub const WRITEBACK: usize = 512;
/// So many directories or inodes a worker commits, unless a task waits for it (`BTRFS_DELAYED_BATCH`); and so often waiting
/// tasks look again.
pub const BATCH: usize = 16;

/// What waits for one directory (`struct btrfs_delayed_node`).
#[derive(Clone, Debug)]
struct DelayedNode {
    ino: u64,
    inserts: VecDeque<Item>,
    /// Items to delete, and whether the log knows of it.
    deletes: BTreeMap<Key, bool>,
    inode_dirty: bool,
    prepared: bool,
}

/// What goes into the tree while the directory's mutex is held.
#[derive(Clone, Debug)]
pub enum Batch {
    /// Items that one leaf can take.
    Insert(Vec<Item>),
    /// Items to delete, in order.
    Delete(VecDeque<Key>),
    /// The inode to write.
    Inode(Key),
}

impl Batch {
    /// How many items it is made of.
    pub fn len(&self) -> usize {
        match self {
            Self::Insert(items) => items.len(),
            Self::Delete(keys) => keys.len(),
            Self::Inode(_) => 1,
        }
    }

    /// There is always something in it.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// Whose delayed items are to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// A directory's.
    Directory(u32),
    /// The update of the inode of a new file with this number. If the file is gone, the search for it is in vain; the kernel's
    /// would have been made by the eviction.
    File(u64),
}

/// Everything that waits (`struct btrfs_delayed_root`).
#[derive(Clone, Debug, Default)]
pub struct DelayedRoot {
    nodes: Vec<DelayedNode>,
    prepared: VecDeque<Prepared>,
    items: usize,
    /// How many items have been committed (`items_seq`).
    finished: usize,
}

impl DelayedRoot {
    /// A directory with nothing that waits; its number.
    pub fn add_directory(&mut self, ino: u64) -> u32 {
        let (inserts, deletes) = Default::default();
        self.nodes.push(DelayedNode { ino, inserts, deletes, inode_dirty: false, prepared: false });
        (self.nodes.len() - 1) as u32
    }

    /// The number of a directory that is gone is that of another.
    pub fn reuse_directory(&mut self, dir: u32, ino: u64) {
        self.nodes[dir as usize].ino = ino;
    }

    /// Whether the update of a directory's inode waits; who takes it commits it.
    pub fn take_inode(&mut self, dir: u32) -> bool {
        std::mem::take(&mut self.nodes[dir as usize].inode_dirty)
    }

    /// How many items wait.
    pub fn items(&self) -> usize {
        self.items
    }

    /// `btrfs_insert_delayed_dir_index`; indices of a directory only grow.
    pub fn insert_index(&mut self, dir: u32, item: Item) {
        self.nodes[dir as usize].inserts.push_back(item);
        self.items += 1;
        self.prepare(dir);
    }

    /// `btrfs_delete_delayed_dir_index`: an insertion that still waits is forgotten instead.
    pub fn delete_index(&mut self, dir: u32, key: Key) {
        let node = &mut self.nodes[dir as usize];
        if let Ok(at) = node.inserts.binary_search_by(|item| item.key.cmp(&key)) {
            node.inserts.remove(at);
            self.items -= 1;
            return;
        }
        node.deletes.insert(key, false);
        self.items += 1;
        self.prepare(dir);
    }

    /// `btrfs_delayed_update_inode`; whether it did not wait before.
    pub fn update_inode(&mut self, dir: u32) -> bool {
        let new = !std::mem::replace(&mut self.nodes[dir as usize].inode_dirty, true);
        if new {
            self.items += 1;
            self.prepare(dir);
        }
        new
    }

    /// `btrfs_delayed_update_inode` of a file that has just been made.
    pub fn update_new_inode(&mut self, ino: u64) {
        self.items += 1;
        self.prepared.push_back(Prepared::File(ino));
    }

    /// The same of a file that is known, unless it waits already.
    pub fn update_file_inode(&mut self, ino: u64) -> bool {
        let new = !self.prepared.contains(&Prepared::File(ino));
        if new {
            self.update_new_inode(ino);
        }
        new
    }

    /// Takes the update of a new file's inode out of the queue, if it waits there; who takes it commits it.
    pub fn take_file(&mut self, ino: u64) -> bool {
        let place = self.prepared.iter().rposition(|waits| *waits == Prepared::File(ino));
        place.is_some_and(|place| self.prepared.remove(place).is_some())
    }

    /// `btrfs_first_prepared_delayed_node`: who waits longest.
    pub fn next_prepared(&mut self) -> Option<Prepared> {
        let next = self.prepared.pop_front()?;
        if let Prepared::Directory(dir) = next {
            self.nodes[dir as usize].prepared = false;
        }
        Some(next)
    }

    /// `finish_one_item`, for so many: whether those who wait look again.
    pub fn finish(&mut self, count: usize) -> bool {
        let before = self.finished;
        self.items -= count;
        self.finished += count;
        before / BATCH != self.finished / BATCH || self.items < BACKGROUND
    }

    /// Whoever adds or removes an entry writes the directory's inode too; the error says whose is not to be written.
    pub fn audit(&self) -> Result<(), String> {
        let waits = |node: &&DelayedNode| !node.inserts.is_empty() || !node.deletes.is_empty();
        match self.nodes.iter().filter(waits).find(|node| !node.inode_dirty) {
            None => Ok(()),
            Some(node) => Err(format!("entries of directory {} wait, and its inode is not to be written", node.ino)),
        }
    }

    /// How many items have been committed so far.
    pub fn finished(&self) -> usize {
        self.finished
    }

    /// `could_end_wait`: a task that began to wait after so many were finished waits no more.
    pub fn wait_is_over(&self, since: usize) -> bool {
        self.finished >= since + BATCH || self.items < BACKGROUND
    }

    /// Takes what is next for a directory: insertions as many as a leaf holds, then all deletions, then the inode.
    pub fn next_batch(&mut self, dir: u32) -> Option<Batch> {
        let node = &mut self.nodes[dir as usize];
        if !node.inserts.is_empty() {
            let count = batch_len(node.inserts.iter());
            return Some(Batch::Insert(node.inserts.drain(..count).collect()));
        }
        if !node.deletes.is_empty() {
            return Some(Batch::Delete(std::mem::take(&mut node.deletes).into_keys().collect()));
        }
        std::mem::take(&mut node.inode_dirty).then(|| Batch::Inode(inode_key(node.ino)))
    }

    /// `btrfs_log_get_delayed_items`: insertions from an index on, and deletions that the log does not know of, which it is told now.
    pub fn take_unlogged(&mut self, dir: u32, first: Key) -> (Vec<Item>, Vec<Key>) {
        let node = &mut self.nodes[dir as usize];
        let inserts = node.inserts.iter().filter(|item| item.key >= first).copied().collect();
        let unlogged = node.deletes.iter_mut().filter(|(_, logged)| !**logged);
        let deletes = unlogged.map(|(key, logged)| {
            *logged = true;
            *key
        });
        (inserts, deletes.collect())
    }

    /// Whether a worker that may commit so many more goes on with the next.
    pub fn worker_goes_on(&self, more: usize) -> bool {
        more > 0 && self.items >= BACKGROUND / 2
    }

    fn prepare(&mut self, dir: u32) {
        if !std::mem::replace(&mut self.nodes[dir as usize].prepared, true) {
            self.prepared.push_back(Prepared::Directory(dir));
        }
    }
}

/// How many items one insertion takes, if any: as many as an empty leaf holds.
pub fn batch_len<'i>(items: impl Iterator<Item = &'i Item>) -> usize {
    let bytes = items.scan(0, |sum, item| {
        *sum += item.bytes();
        Some(*sum)
    });
    bytes.take_while(|&bytes| bytes <= LEAF_DATA).count()
}

impl<L: TreeLocks> TreeOps<'_, L> {
    /// Puts a batch of delayed items into the tree (the loops of `__btrfs_commit_inode_delayed_items`).
    pub async fn commit_batch(&self, batch: Batch) {
        match batch {
            Batch::Insert(items) => {
                let (mut path, _) = self.insert_items(&items).await;
                self.locks.work(Work::DelayedItems(items.len())).await;
                self.release_path(&mut path).await;
            }
            Batch::Delete(mut keys) => {
                while let Some(&key) = keys.front() {
                    let (mut path, found) = self.search_slot(key, Intent::Delete).await;
                    let run = if found { self.run_of_keys(&path, keys.iter().copied()) } else { 0 };
                    if run > 0 {
                        self.del_items(&mut path, run).await;
                    }
                    self.release_path(&mut path).await;
                    keys.drain(..run.max(1));
                }
            }
            Batch::Inode(key) => {
                let (mut path, found) = self.search_slot(key, Intent::Update).await;
                if found {
                    self.locks.work(Work::DelayedInode).await;
                }
                self.release_path(&mut path).await;
            }
        }
    }

    /// How many of the keys follow each other in the path's leaf from its slot on.
    pub(crate) fn run_of_keys(&self, path: &Path, keys: impl Iterator<Item = Key>) -> usize {
        let tree = self.tree();
        let items = &tree.items(path.leaf())[path.slots[0]..];
        items.iter().zip(keys).take_while(|(item, key)| item.key == *key).count()
    }
}
