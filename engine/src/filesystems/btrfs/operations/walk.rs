//! A walk through directories whose files are not in memory: `getdents` and, for each name, a `stat` that searches its entry
//! (`btrfs_lookup`) and its inode (`btrfs_read_locked_inode`). A leaf is read from the device, without a lock, by the first search that
//! comes to it (`read_block_for_search`), and its items are checked (`btrfs_validate_extent_buffer`), here by the reader and not by a
//! worker; nodes are in memory.

use super::super::mount::Btrfs;
use super::super::tree::items;
use super::super::tree::key::{Key, NODE_SIZE};
use crate::filesystems::inodes::listed;
use crate::filesystems::DirId;
use crate::waist::Machine;
use crate::waist::{Access, Account, LockId, Side, Time};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Leaves that walks have read, by their place on the device. Walks through directories whose files were made at the same time come to the
/// same leaves of inodes. The next walk through a directory finds none in memory.
#[derive(Default)]
pub(in crate::filesystems::btrfs) struct Walked {
    /// How often walks through a directory have begun.
    begun: RefCell<BTreeMap<DirId, u32>>,
    leaves: RefCell<BTreeSet<(u32, u64)>>,
}

impl Walked {
    fn begin(&self, dir: DirId) {
        *self.begun.borrow_mut().entry(dir).or_default() += 1;
    }

    /// Whether a walk through a directory is the first to come to a leaf.
    fn comes_to(&self, dir: DirId, leaf: u64) -> bool {
        let walk = self.begun.borrow().get(&dir).copied().unwrap_or_default();
        self.leaves.borrow_mut().insert((walk, leaf))
    }
}

/// Leaves that are being read, and who waits for each (`EXTENT_BUFFER_READING`; before 6.5 the locks of its pages).
#[derive(Default)]
pub(in crate::filesystems::btrfs) struct Reading(RefCell<BTreeMap<u64, Vec<LockId>>>);

impl Reading {
    fn begin(&self, leaf: u64) {
        self.0.borrow_mut().entry(leaf).or_default();
    }

    async fn end<M: Machine>(&self, m: &M, leaf: u64) {
        let waiting = self.0.borrow_mut().remove(&leaf).unwrap_or_default();
        for woken in waiting {
            m.complete(woken).await;
        }
    }

    async fn wait<M: Machine>(&self, m: &M, leaf: u64) {
        let woken = match self.0.borrow_mut().get_mut(&leaf) {
            None => return,
            Some(waiting) => {
                let woken = m.new_completion();
                waiting.push(woken);
                woken
            }
        };
        m.wchan("read_extent_buffer_pages");
        m.wait_for(woken).await;
        m.drop_completion(woken);
    }
}

/// Of what a search looks for.
enum Looked {
    /// A name or an inode of a walk through a directory.
    Walk(DirId),
    /// A file that has left memory.
    Cold,
}

impl Btrfs {
    /// The `nth` file of a directory.
    pub(super) async fn walk_to<M: Machine>(&self, m: &M, dir: DirId, nth: u32) {
        let (c, d) = (&self.costs.create, self.directory(dir));
        if nth == 0 {
            self.walked.begin(dir);
        }
        m.at("walk");
        m.run(Account::System, self.sb.calls.readdir_name() + c.walk).await;
        m.lock(d.i_rwsem, Side::Read).await; // lookup_slow
        m.touch(d.line, Access::Read);
        m.run(Account::System, c.lookup).await;
        let entry = items::dir_item(d.ino, &nth.to_be_bytes()).key; // of some hash
        self.search_cold(m, (entry, c.read_leaf), &Looked::Walk(dir)).await;
        let ino = self.inode_of(dir, nth);
        self.read_inode(m, ino, listed::OTHERS, &Looked::Walk(dir)).await;
        m.unlock(d.i_rwsem, Side::Read).await;
        m.run(Account::System, self.sb.calls.enter()).await;
        self.sb.calls.dcache.unused(m).await;
    }

    /// A walk has come so far when the run begins.
    pub(super) fn walked_before(&self, dir: DirId, nth: u32) {
        let d = self.directory(dir);
        for before in 0..nth {
            let entry = items::dir_item(d.ino, &before.to_be_bytes()).key;
            for key in [entry, items::inode_key(self.inode_of(dir, before))] {
                let fs_root = self.fs_root_with(key);
                let tree = fs_root.root.tree.borrow();
                self.walked.comes_to(dir, tree.place(tree.leaf_of(key)));
            }
        }
    }

    /// `btrfs_lookup` of a name whose file is not in memory.
    pub(super) async fn look_up_cold<M: Machine>(&self, m: &M, dir: DirId, name: &[u8], slot: u32) {
        let (c, d, ino) = (&self.costs.create, self.directory(dir), self.file(slot).ino);
        m.touch(d.line, Access::Read);
        m.run(Account::System, c.lookup).await;
        let entry = items::dir_item(d.ino, name).key;
        self.search_cold(m, (entry, c.read_leaf), &Looked::Cold).await;
        self.read_inode(m, ino, self.listed(ino), &Looked::Cold).await;
    }

    /// `btrfs_iget`, by its entry in the list.
    async fn read_inode<M: Machine>(&self, m: &M, ino: u64, entry: listed::Entry, looked: &Looked) {
        let c = &self.costs.create;
        self.storage.memory.add_inode(m, &self.storage.writeback).await;
        let step = self.sb.inodes.look_up(m, ino, c.iget).await;
        let rest = self.sb.inodes.enter(m, entry, Some(ino), step).await;
        let rest = self.fs_root(ino).open_inodes.enter(m, rest).await;
        self.fs_root(ino).open_inodes.look_for_delayed(m).await;
        m.run(Account::System, rest).await;
        self.search_cold(m, (items::inode_key(ino), c.read_leaf_again), looked).await;
    }

    async fn search_cold<M: Machine>(&self, m: &M, (key, time): (Key, Time), looked: &Looked) {
        let (place, items) = {
            let fs_root = self.fs_root_with(key);
            let tree = fs_root.root.tree.borrow();
            let leaf = tree.leaf_of(key);
            (tree.place(leaf), tree.len(leaf))
        };
        let first = match looked {
            Looked::Walk(dir) => self.walked.comes_to(*dir, place),
            Looked::Cold => self.sb.cold.reads(place),
        };
        if first {
            self.reading.begin(place);
            self.storage.read(m, NODE_SIZE).await;
            m.run(Account::System, self.blocks.check_read(items)).await;
            self.reading.end(m, place).await;
        } else {
            self.reading.wait(m, place).await;
        }
        self.read_item(m, key, time).await;
    }
}
