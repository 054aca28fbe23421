//! A subvolume with a single task on it, for which no time goes by: what its tree looks like. The worker of delayed items is done
//! before the task's next call.

use super::transaction::delayed::{Batch, DelayedRoot, Prepared, BACKGROUND, BATCH};
use super::tree::items;
use super::tree::key::{Item, Key, FIRST_FREE_OBJECTID};
use super::tree::locks::NoLocks;
use super::tree::search::{TreeOps, DEFAULT_RULES};
use super::tree::Tree;
use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A directory: its inode, and the index of its next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dir {
    /// Its inode's number.
    pub ino: u64,
    /// The index of its next entry.
    pub next_index: u64,
}

/// A subvolume. Copies share the blocks of their trees that neither has changed since.
#[derive(Clone, Debug)]
pub struct Subvolume {
    tree: RefCell<Tree>,
    delayed: DelayedRoot,
    /// Its directories; the first is its root.
    pub dirs: Vec<Dir>,
    /// The number of the next inode.
    pub next_ino: u64,
}

impl Default for Subvolume {
    fn default() -> Self {
        Self::new()
    }
}

impl Subvolume {
    /// A new subvolume with its root directory.
    pub fn new() -> Self {
        let root = Dir { ino: FIRST_FREE_OBJECTID, next_index: items::DIR_START_INDEX };
        let subvolume = Self::of(Tree::new(), vec![root], FIRST_FREE_OBJECTID + 1);
        subvolume.insert(&items::root_directory(FIRST_FREE_OBJECTID));
        subvolume
    }

    /// A subvolume that exists, with nothing delayed.
    pub fn of(tree: Tree, dirs: Vec<Dir>, next_ino: u64) -> Self {
        let mut delayed = DelayedRoot::default();
        for dir in &dirs {
            delayed.add_directory(dir.ino);
        }
        Self { tree: RefCell::new(tree), delayed, dirs, next_ino }
    }

    /// Its tree.
    pub fn tree(&self) -> std::cell::Ref<'_, Tree> {
        self.tree.borrow()
    }

    /// Its tree, with all that was delayed.
    pub fn into_tree(mut self) -> Tree {
        self.run_delayed_items();
        self.tree.into_inner()
    }

    /// Makes a directory in the root; its inode's number.
    pub fn mkdir(&mut self, name: &[u8]) -> u64 {
        let (ino, _) = self.create(0, name);
        self.delayed.add_directory(ino);
        self.dirs.push(Dir { ino, next_index: items::DIR_START_INDEX });
        ino
    }

    /// `btrfs_create_new_inode`: inode and reference, the entry by hash, and later the entry by index. The inode's number, and its
    /// index in the directory.
    pub fn create(&mut self, dir: u32, name: &[u8]) -> (u64, u64) {
        let ino = self.next_ino;
        self.next_ino += 1;
        let parent = &mut self.dirs[dir as usize];
        let Dir { ino: dir_ino, next_index: index } = *parent;
        parent.next_index += 1;
        self.insert(&[items::inode(ino), items::inode_ref(ino, dir_ino, name)]);
        self.insert_or_extend(items::dir_item(dir_ino, name));
        self.delayed.insert_index(dir, items::dir_index(dir_ino, index, name));
        self.delayed.update_inode(dir);
        self.balance_delayed_items();
        (ino, index)
    }

    /// Loads what files that will be created change.
    pub fn load_for(&self, files: &[(u32, Vec<u8>)]) {
        let keys = files.iter().map(|(dir, name)| items::dir_item(self.dirs[*dir as usize].ino, name).key);
        self.tree.borrow().load_leaves(keys);
    }

    /// `btrfs_unlink` and `btrfs_evict_inode` of a file with this inode and index.
    pub fn unlink(&mut self, dir: u32, name: &[u8], ino: u64, index: u64) {
        let dir_ino = self.dirs[dir as usize].ino;
        now(self.ops().delete_dir_item(items::dir_item(dir_ino, name)));
        self.delayed.delete_index(dir, items::dir_index(dir_ino, index, name).key);
        self.delayed.update_inode(dir);
        self.insert(&[items::orphan(ino)]);
        self.balance_delayed_items();
        self.delete(items::inode_ref(ino, dir_ino, b"").key);
        self.delete(items::inode_key(ino));
        self.delete(items::orphan(ino).key);
    }

    /// Commits the transaction.
    pub fn commit(&mut self) {
        self.run_delayed_items();
        self.tree.get_mut().end_transaction();
    }

    fn ops(&self) -> TreeOps<'_, NoLocks> {
        TreeOps::new(&self.tree, &NoLocks, DEFAULT_RULES)
    }

    fn insert(&self, new: &[Item]) {
        if self.tree.borrow_mut().insert_in_place(new) {
            return;
        }
        now(async {
            let ops = self.ops();
            let (mut path, _) = ops.insert_items(new).await;
            ops.release_path(&mut path).await;
        });
    }

    fn insert_or_extend(&self, item: Item) {
        if self.tree.borrow_mut().insert_in_place(&[item]) {
            return;
        }
        now(async {
            let ops = self.ops();
            let mut path = ops.insert_or_extend(item).await;
            ops.release_path(&mut path).await;
        });
    }

    fn delete(&self, key: Key) {
        now(self.ops().delete_key(key));
    }

    /// `btrfs_balance_delayed_items`.
    fn balance_delayed_items(&mut self) {
        if self.delayed.items() < BACKGROUND {
            return;
        }
        let mut more = BATCH;
        while self.delayed.worker_goes_on(more) {
            self.commit_next();
            more -= 1;
        }
    }

    fn run_delayed_items(&mut self) {
        while self.commit_next() {}
    }

    fn commit_next(&mut self) -> bool {
        let Some(Prepared::Directory(dir)) = self.delayed.next_prepared() else { return false };
        while let Some(batch) = self.delayed.next_batch(dir) {
            let count = batch.len();
            match batch {
                Batch::Insert(items) if self.tree.borrow_mut().insert_in_place(&items) => {}
                batch => now(self.ops().commit_batch(batch)),
            }
            self.delayed.finish(count);
        }
        true
    }
}

/// The result of a future that never waits.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing waits without locks"),
    }
}
