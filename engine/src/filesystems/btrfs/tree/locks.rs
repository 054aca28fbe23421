//! The locks of a tree's blocks, as the algorithms on it ask for them.
//!
//! One text serves two ends: with a machine's locks it is what a task does; with [`NoLocks`] it is the bare structure.

use super::BlockId;
use crate::waist::{Mode, Side};
use std::future::Future;

/// Work between two locks of a descent. What it costs is for the [`TreeLocks`] to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A node was searched and its child found in memory.
    Node,
    /// An insertion has locked a leaf and sees whether it has room, and its first key.
    EnterLeaf,
    /// A leaf is searched.
    SearchLeaf,
    /// This block was copied because an earlier transaction wrote it.
    Copy(BlockId),
    /// A block was given back.
    Free,
    /// The root was locked for reading, and turned out to be what is to be written.
    ReadRoot,
    /// The read lock of the root was traded for a write lock.
    TradeRoot,
    /// So many items of this leaf got a new place.
    Shift(BlockId, usize),
    /// So many delayed items were written into a leaf.
    DelayedItems(usize),
    /// A delayed inode was written into its item.
    DelayedInode,
    /// An item of the extent tree was written or read.
    ExtentItem,
    /// An item of the free space tree was written or read.
    FreeSpaceItem,
    /// Checksums were looked for, and others are to be searched for.
    CsumLookup,
    /// Checksums were written into an item or taken out.
    CsumItem,
}

/// The locks of a tree's blocks.
pub trait TreeLocks {
    /// Locks a block of a level.
    fn lock(&self, block: BlockId, level: usize, side: Side) -> impl Future<Output = ()>;
    /// Locks a block of a level if that needs no sleep.
    fn try_lock(&self, block: BlockId, level: usize, side: Side) -> impl Future<Output = bool>;
    /// Makes a lock that is held blocking or spinning; only locks before 5.11 know the difference.
    fn convert(&self, block: BlockId, side: Side, mode: Mode) -> impl Future<Output = ()>;
    /// Looks at the items of a block that is locked, as a search does.
    fn look_into(&self, block: BlockId);
    /// Changes the items of a block that is locked.
    fn change(&self, block: BlockId);
    /// Unlocks a block.
    fn unlock(&self, block: BlockId, side: Side) -> impl Future<Output = ()>;
    /// Spends the time of a piece of work.
    fn work(&self, work: Work) -> impl Future<Output = ()>;
    /// Finds a place on disk for a block of a level (`btrfs_alloc_tree_block`).
    fn place(&self, level: usize) -> impl Future<Output = u64>;
    /// Gives the place of a block of a level back; `new`: the running transaction took it (`btrfs_free_tree_block`).
    fn give_back(&self, place: u64, level: usize, new: bool) -> impl Future<Output = ()>;
}

/// No locks and no time: what is done to the structure alone, and where its blocks lie then.
pub trait Unlocked {
    /// As [`TreeLocks::place`].
    fn place(&self, _level: usize) -> u64 {
        0
    }
    /// As [`TreeLocks::give_back`].
    fn give_back(&self, _place: u64, _level: usize) {}
    /// As [`TreeLocks::work`].
    fn work(&self, _work: Work) {}
}

impl<U: Unlocked> TreeLocks for U {
    async fn lock(&self, _: BlockId, _: usize, _: Side) {}
    async fn try_lock(&self, _: BlockId, _: usize, _: Side) -> bool {
        true
    }
    async fn convert(&self, _: BlockId, _: Side, _: Mode) {}
    fn look_into(&self, _: BlockId) {}
    fn change(&self, _: BlockId) {}
    async fn unlock(&self, _: BlockId, _: Side) {}
    async fn work(&self, work: Work) {
        Unlocked::work(self, work);
    }
    async fn place(&self, level: usize) -> u64 {
        Unlocked::place(self, level)
    }
    async fn give_back(&self, place: u64, level: usize, _: bool) {
        Unlocked::give_back(self, place, level);
    }
}

/// The bare structure, whose blocks lie nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLocks;

impl Unlocked for NoLocks {}
