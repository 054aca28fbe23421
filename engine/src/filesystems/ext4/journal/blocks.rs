//! The blocks that transactions change (`struct journal_head`): to which transaction each belongs, and in the checkpoint list of
//! which it is.

use crate::fx::FxMap;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// A block of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::filesystems::ext4) enum Block {
    /// The superblock, with the head of the list of orphans.
    Superblock,
    /// A block of the orphan file.
    Orphans(u32),
    /// The bitmap of a group's inodes.
    Bitmap(u32),
    /// The bitmap of a group's blocks.
    Allocated(u32),
    /// Group descriptors.
    Descriptors(u32),
    /// Part of the inode table.
    Inodes(u32),
    /// A block of the inode table that has directories.
    Directory(u32),
    /// A leaf of a directory.
    Leaf(u32, u32),
    /// The block with the extents of a file, by inode.
    Extents(u32),
    /// The first block of a directory that a task has made, by group and place.
    NewDirectory(u32, u32),
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    /// The transaction that changed it last, and the how manieth it is there.
    pub transaction: u64,
    pub order: u32,
    /// The transaction in whose checkpoint list it is: that one's log is needed until it is written; 0 for none.
    checkpoint: u64,
}

/// A committed transaction whose log is needed.
#[derive(Debug)]
struct Checkpoint {
    transaction: u64,
    /// Blocks of the log.
    log: u32,
    /// Blocks on its list, or that were.
    list: Vec<Block>,
    /// How many are still on it, or are being written.
    left: u32,
}

/// All blocks that were ever changed, and transactions that wait to be checkpointed, oldest first.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    heads: RefCell<FxMap<Block, Head>>,
    joined: RefCell<Vec<Block>>,
    checkpoints: RefCell<VecDeque<Checkpoint>>,
    /// Blocks that a checkpoint has submitted, and not waited for.
    under_way: Cell<u32>,
    /// Blocks that who syncs has submitted, and not waited for.
    synced: Cell<u32>,
}

impl Blocks {
    /// What is known of a block.
    pub fn head(&self, block: Block) -> Head {
        self.heads.borrow().get(&block).copied().unwrap_or_default()
    }

    /// Says that the running transaction changes a block for the first time.
    pub fn join(&self, block: Block, transaction: u64) {
        let (mut heads, mut joined) = (self.heads.borrow_mut(), self.joined.borrow_mut());
        let head = heads.entry(block).or_default();
        (head.transaction, head.order) = (transaction, joined.len() as u32);
        joined.push(block);
    }

    /// A block that the running transaction has changed is freed: unless an older one needs it in the log, nobody does.
    pub fn forget(&self, block: Block, transaction: u64) -> bool {
        let (mut heads, mut joined) = (self.heads.borrow_mut(), self.joined.borrow_mut());
        let Some(head) = heads.get(&block).filter(|h| h.transaction == transaction && h.checkpoint == 0) else {
            return false;
        };
        let place = head.order as usize;
        heads.remove(&block);
        joined.swap_remove(place);
        if let Some(moved) = joined.get(place) {
            heads.get_mut(moved).expect("it has joined").order = place as u32;
        }
        true
    }

    /// The blocks of the running transaction, which ends.
    pub fn take(&self) -> Vec<Block> {
        self.joined.take()
    }

    /// A transaction is on disk: its blocks go from older checkpoint lists to its own (`__jbd2_journal_insert_checkpoint`).
    pub fn committed(&self, transaction: u64, list: Vec<Block>, log: u32) {
        let (mut heads, mut checkpoints) = (self.heads.borrow_mut(), self.checkpoints.borrow_mut());
        for block in &list {
            let head = heads.get_mut(block).expect("it has joined");
            let before = std::mem::replace(&mut head.checkpoint, transaction);
            if let Some(old) = checkpoints.iter_mut().find(|c| before > 0 && c.transaction == before) {
                old.left -= 1;
            }
        }
        let left = list.len() as u32;
        checkpoints.push_back(Checkpoint { transaction, log, list, left });
    }

    /// The oldest transaction whose log is needed.
    pub fn oldest(&self) -> Option<u64> {
        self.checkpoints.borrow().front().map(|c| c.transaction)
    }

    /// How many blocks are on the list of the oldest transaction.
    pub fn on_oldest_list(&self) -> u32 {
        self.checkpoints.borrow().front().map_or(0, |c| c.left)
    }

    /// The next block of the oldest transaction's list, if that is this one; it stays on the list.
    pub fn next_of(&self, transaction: u64) -> Option<Block> {
        let (heads, mut checkpoints) = (self.heads.borrow(), self.checkpoints.borrow_mut());
        let oldest = checkpoints.front_mut().filter(|c| c.transaction == transaction)?;
        while oldest.list.last().is_some_and(|block| heads[block].checkpoint != transaction) {
            oldest.list.pop();
        }
        oldest.list.last().copied()
    }

    /// The block of [`Blocks::next_of`] is being written, and leaves the list.
    pub fn written(&self, block: Block) {
        let mut checkpoints = self.checkpoints.borrow_mut();
        let oldest = checkpoints.front_mut().expect("a block of its list is written");
        oldest.list.pop();
        oldest.left -= 1;
        self.heads.borrow_mut().get_mut(&block).expect("it has joined").checkpoint = 0;
        self.under_way.set(self.under_way.get() + 1);
    }

    /// What was being written is on the disk.
    pub fn waited_for(&self) {
        self.under_way.set(0);
    }

    /// Blocks of all lists that no transaction after `committed` has changed again are being written, by who syncs: how many these are.
    pub fn begin_write(&self, committed: u64) -> u32 {
        let (mut heads, mut checkpoints, mut count) = (self.heads.borrow_mut(), self.checkpoints.borrow_mut(), 0);
        for checkpoint in checkpoints.iter_mut() {
            let transaction = checkpoint.transaction;
            checkpoint.list.retain(|block| {
                let Some(head) = heads.get_mut(block).filter(|head| head.checkpoint == transaction) else {
                    return false;
                };
                let written = head.transaction <= committed;
                if written {
                    head.checkpoint = 0;
                    (checkpoint.left, count) = (checkpoint.left - 1, count + 1);
                }
                !written
            });
        }
        self.synced.set(self.synced.get() + count);
        count
    }

    /// They are on the disk.
    pub fn end_write(&self, blocks: u32) {
        self.synced.set(self.synced.get() - blocks);
    }

    /// Forgets the oldest transactions of which nothing is left, and returns how many blocks of the log they had.
    pub fn clean(&self) -> u32 {
        let mut checkpoints = self.checkpoints.borrow_mut();
        let mut freed = 0;
        while self.under_way.get() + self.synced.get() == 0 && checkpoints.front().is_some_and(|c| c.left == 0) {
            freed += checkpoints.pop_front().map_or(0, |c| c.log);
        }
        freed
    }
}
