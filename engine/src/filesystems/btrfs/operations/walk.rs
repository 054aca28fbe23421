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
use crate::waist::{Access, Account, Side, Time};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Leaves that a walk through a directory has read, by their place on the device; the next one finds none of them in memory.
#[derive(Default)]
pub(in crate::filesystems::btrfs) struct Walked(RefCell<BTreeMap<DirId, BTreeSet<u64>>>);

impl Btrfs {
    /// The `nth` file of a directory. The files are taken to be made one directory after the other.
    pub(super) async fn walk_to<M: Machine>(&self, m: &M, dir: DirId, nth: u32) {
        let (c, d) = (&self.costs.create, self.directory(dir));
        if nth == 0 {
            self.walked.0.borrow_mut().remove(&dir);
        }
        m.at("walk");
        m.run(Account::System, self.sb.calls.readdir_name() + c.walk).await;
        m.lock(d.i_rwsem, Side::Read).await; // lookup_slow
        m.touch(d.line, Access::Read);
        m.run(Account::System, c.lookup).await;
        self.search_cold(m, dir, items::dir_item(d.ino, &nth.to_be_bytes()).key, c.read_leaf).await; // an entry of some hash
        let ino = self.inode_of(dir, nth);
        self.storage.memory.add_inode(m, &self.storage.writeback).await;
        let step = self.sb.inodes.look_up(m, ino, c.iget).await;
        let rest = self.sb.inodes.enter(m, listed::OTHERS, Some(ino), step).await;
        let rest = self.fs_root(ino).open_inodes.enter(m, rest).await;
        self.fs_root(ino).open_inodes.look_for_delayed(m).await;
        m.run(Account::System, rest).await;
        self.search_cold(m, dir, items::inode_key(ino), c.read_leaf_again).await;
        m.unlock(d.i_rwsem, Side::Read).await;
        m.run(Account::System, self.sb.calls.enter()).await;
        self.sb.calls.dcache.unused(m).await;
    }

    async fn search_cold<M: Machine>(&self, m: &M, dir: DirId, key: Key, time: Time) {
        let (place, items) = {
            let fs_root = self.fs_root_with(key);
            let tree = fs_root.root.tree.borrow();
            let leaf = tree.leaf_of(key);
            (tree.place(leaf), tree.len(leaf))
        };
        if self.walked.0.borrow_mut().entry(dir).or_default().insert(place) {
            self.storage.read(m, NODE_SIZE).await;
            m.run(Account::System, self.blocks.check_read(items)).await;
        }
        self.read_item(m, key, time).await;
    }
}
