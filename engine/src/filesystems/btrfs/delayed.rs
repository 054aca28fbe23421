//! Delayed items: `DIR_INDEX` entries and inode updates that wait in memory, by directory, until a worker or the commit puts
//! them into the tree in batches (`fs/btrfs/delayed-inode.c` of Linux 6.18).

use super::items::inode_key;
use super::key::{Item, Key, LEAF_DATA};
use super::path::Path;
use super::search::{Intent, TreeLocks, TreeOps};
use std::collections::VecDeque;

/// From so many items on, the task that added one starts a worker (`BTRFS_DELAYED_BACKGROUND`).
pub const BACKGROUND: usize = 128;
/// From so many on it also waits (`BTRFS_DELAYED_WRITEBACK`).
pub const WRITEBACK: usize = 512;
/// So many directories a worker commits (`BTRFS_DELAYED_BATCH`).
pub const BATCH: usize = 16;

/// What waits for one directory (`struct btrfs_delayed_node`).
#[derive(Clone, Debug)]
pub struct DelayedNode {
    /// The directory's inode.
    pub ino: u64,
    inserts: VecDeque<Item>,
    deletes: VecDeque<Key>,
    inode_dirty: bool,
    prepared: bool,
}

/// Everything that waits (`struct btrfs_delayed_root`).
#[derive(Clone, Debug, Default)]
pub struct DelayedRoot {
    nodes: Vec<DelayedNode>,
    prepared: VecDeque<u32>,
    items: usize,
}

impl DelayedRoot {
    /// A directory with nothing that waits; its number.
    pub fn add_directory(&mut self, ino: u64) -> u32 {
        let node =
            DelayedNode { ino, inserts: VecDeque::new(), deletes: VecDeque::new(), inode_dirty: false, prepared: false };
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
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
        let at = node.deletes.partition_point(|other| *other < key);
        node.deletes.insert(at, key);
        self.items += 1;
        self.prepare(dir);
    }

    /// `btrfs_delayed_update_inode`.
    pub fn update_inode(&mut self, dir: u32) {
        if !std::mem::replace(&mut self.nodes[dir as usize].inode_dirty, true) {
            self.items += 1;
            self.prepare(dir);
        }
    }

    /// `btrfs_first_prepared_delayed_node`: the directory that waits longest, with all that waits for it.
    pub fn take_prepared(&mut self) -> Option<(u32, DelayedNode)> {
        let dir = self.prepared.pop_front()?;
        let node = &mut self.nodes[dir as usize];
        let ino = node.ino;
        let empty =
            DelayedNode { ino, inserts: VecDeque::new(), deletes: VecDeque::new(), inode_dirty: false, prepared: false };
        let taken = std::mem::replace(node, empty);
        self.items -= taken.inserts.len() + taken.deletes.len() + usize::from(taken.inode_dirty);
        Some((dir, taken))
    }

    /// Whether a worker that has committed `done` directories goes on with the next.
    pub fn worker_goes_on(&self, done: usize) -> bool {
        done < BATCH && self.items >= BACKGROUND / 2
    }

    fn prepare(&mut self, dir: u32) {
        if !std::mem::replace(&mut self.nodes[dir as usize].prepared, true) {
            self.prepared.push_back(dir);
        }
    }
}

impl DelayedNode {
    /// `__btrfs_commit_inode_delayed_items`: insertions in batches of what a leaf holds, deletions in runs, the inode itself.
    pub async fn commit<L: TreeLocks>(mut self, ops: &TreeOps<'_, L>) {
        let items = self.inserts.make_contiguous();
        let mut rest = &items[..];
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(batch_len(rest));
            let (mut path, _) = ops.insert_items(batch).await;
            ops.release_path(&mut path).await;
            rest = others;
        }
        while let Some(&key) = self.deletes.front() {
            let (mut path, found) = ops.search_slot(key, Intent::Delete).await;
            let run = if found { ops.run_of_keys(&path, self.deletes.iter()) } else { 0 };
            if run > 0 {
                ops.del_items(&mut path, run).await;
            }
            ops.release_path(&mut path).await;
            self.deletes.drain(..run.max(1));
        }
        if self.inode_dirty {
            let (mut path, _) = ops.search_slot(inode_key(self.ino), Intent::Update).await;
            ops.release_path(&mut path).await;
        }
    }
}

/// How many items one insertion takes: as many as an empty leaf holds.
fn batch_len(items: &[Item]) -> usize {
    let bytes = items.iter().scan(0, |sum, item| {
        *sum += item.bytes();
        Some(*sum)
    });
    bytes.take_while(|&bytes| bytes <= LEAF_DATA).count()
}

impl<L: TreeLocks> TreeOps<'_, L> {
    /// How many of the keys follow each other in the path's leaf from its slot on.
    fn run_of_keys<'k>(&self, path: &Path, keys: impl Iterator<Item = &'k Key>) -> usize {
        let tree = self.tree();
        let items = &tree.items(path.leaf())[path.slots[0]..];
        items.iter().zip(keys).take_while(|(item, key)| item.key == **key).count()
    }
}
