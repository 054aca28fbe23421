//! A subvolume as a mounted filesystem has it (`struct btrfs_root`): its tree, its log, and its inodes that are in memory or have dirty pages.
//!
//! Inodes are numbered in each subvolume from 256 on. Here the subvolume's own number stands before that of the inode, so that a key says
//! in which tree it is. Left out: the items of subvolumes in the tree of roots, which a commit changes (`commit_fs_roots`).

use super::log::LogTree;
use super::mount::Btrfs;
use super::open_inodes::OpenInodes;
use super::root::Root;
use super::root_times::RootTimes;
use super::space::delalloc::Delalloc;
use super::tree::items;
use super::tree::key::{Key, FIRST_FREE_OBJECTID};
use super::tree::Tree;
use crate::filesystems::DirId;
use crate::waist::{Access, LineId, LockId, Machine, Side};
use std::cell::Cell;
use std::rc::Rc;

/// Bits of an inode's number within its subvolume.
const INODE_BITS: u32 = 40;

/// A subvolume.
pub struct FsRoot {
    /// Its tree.
    pub root: Root,
    /// Its log.
    pub log: LogTree,
    /// Its inodes in memory.
    pub open_inodes: OpenInodes,
    /// Those with dirty pages.
    pub delalloc: Delalloc,
    /// When it changed last.
    pub times: RootTimes,
    objectid_mutex: LockId,
    objectid: LineId,
    /// The number of its next inode.
    pub next_ino: Cell<u64>,
}

impl FsRoot {
    /// One with a root directory and no other inode.
    pub fn new<M: Machine>(
        m: &M,
        number: u64,
        root: Root,
        log: LogTree,
        ((open_inodes, delalloc), times): ((OpenInodes, Delalloc), RootTimes),
    ) -> Self {
        Self {
            root,
            log,
            open_inodes,
            delalloc,
            times,
            objectid_mutex: m.new_lock(m.class("btrfs.objectid_mutex", "btrfs.objectid_mutex")),
            objectid: m.new_line("btrfs.free_objectid", 1),
            next_ino: Cell::new(root_directory_of(number) + 1),
        }
    }

    /// `btrfs_get_free_objectid`, under the root's `objectid_mutex`: numbers only grow.
    pub async fn take_ino<M: Machine>(&self, m: &M) -> u64 {
        m.lock(self.objectid_mutex, Side::Write).await;
        m.touch(self.objectid, Access::Write);
        let ino = self.next_ino.replace(self.next_ino.get() + 1);
        m.unlock(self.objectid_mutex, Side::Write).await;
        ino
    }
}

/// The inode of the root directory of a subvolume.
fn root_directory_of(subvolume: u64) -> u64 {
    subvolume << INODE_BITS | FIRST_FREE_OBJECTID
}

/// The number of an inode's subvolume.
pub fn subvolume_of(ino: u64) -> u64 {
    ino >> INODE_BITS
}

/// Whether an inode is the root directory of a subvolume.
pub fn is_root_directory(ino: u64) -> bool {
    ino == root_directory_of(subvolume_of(ino))
}

impl Btrfs {
    /// The subvolume of an inode.
    pub(super) fn fs_root(&self, ino: u64) -> Rc<FsRoot> {
        self.fs_roots.borrow()[subvolume_of(ino) as usize].clone()
    }

    /// The subvolume that an item is in.
    pub(super) fn fs_root_with(&self, key: Key) -> Rc<FsRoot> {
        self.fs_root(key.inode())
    }

    /// What the superblock's list calls an inode: a small number of its own. No subvolume is made while there are inodes on the list.
    pub(super) fn listed(&self, ino: u64) -> u64 {
        let within = ino & ((1 << INODE_BITS) - 1);
        within * self.fs_roots.borrow().len() as u64 + subvolume_of(ino)
    }

    /// `btrfs subvolume create` before the tasks start: a new subvolume, its root directory, and the name of that in a directory.
    pub(super) async fn create_subvolume<M: Machine>(&self, m: &M, parent: DirId, name: &[u8]) -> DirId {
        let number = self.fs_roots.borrow().len() as u64;
        let first = self.fs_root(0);
        let mut tree = Tree::new();
        let ino = root_directory_of(number);
        tree.insert_items(tree.root(), 0, &items::root_directory(ino));
        tree.was_written();
        tree.transid = self.transid();
        self.extents.lay_out(&mut tree);
        let inodes = (first.open_inodes.another(m), first.delalloc.another(m));
        let made = FsRoot::new(
            m,
            number,
            first.root.another(tree),
            first.log.another(m, number),
            (inodes, first.times.another(m)),
        );
        self.fs_roots.borrow_mut().push(Rc::new(made));
        let index = self.insert_dir_item(m, parent, self.directory(parent), name, 0).await;
        self.add_directory(m, ino, index)
    }
}
