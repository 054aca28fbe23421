//! What is known in memory of the directories of a btrfs: what they count, and what the log has of them.

use super::mount::{Btrfs, Directory};
use super::tree::items;
use crate::filesystems::DirId;

/// What a directory counts: the next index, and how many names it has.
pub(super) struct Entries {
    pub(super) directory: Directory,
    pub(super) next_index: u64,
    pub(super) names: u32,
    /// The transaction that made it, and the one whose log has it.
    pub(super) made: u64,
    pub(super) logged: u64,
    /// The first index that its log need not have yet, and the transaction in which that was said.
    pub(super) unlogged: (u64, u64),
    /// The transaction in which it last lost the name of a file that its log did not know (`last_unlink_trans`).
    pub(super) unlinked: u64,
    /// A search has found that it has no extended attributes (`BTRFS_INODE_NO_XATTRS`).
    pub(super) no_xattrs: bool,
}

impl Entries {
    /// Of a directory without names, made by this transaction.
    pub(super) fn new(directory: Directory, made: u64) -> Self {
        Self {
            directory,
            next_index: items::DIR_START_INDEX,
            names: 0,
            made,
            logged: 0,
            unlogged: (0, 0),
            unlinked: 0,
            no_xattrs: false,
        }
    }
}

impl Btrfs {
    /// Whether a directory was made in the running transaction, and whether its log has it.
    pub(super) fn new_and_logged(&self, dir: DirId) -> (bool, bool) {
        let entries = &self.directories.borrow()[dir as usize];
        (entries.made == self.transid(), entries.logged == self.transid())
    }

    pub(super) fn set_logged(&self, dir: DirId) {
        self.directories.borrow_mut()[dir as usize].logged = self.transid();
    }

    /// The first index of a directory that its log has not: of this transaction, or since this was asked last.
    pub(super) fn take_unlogged(&self, dir: DirId) -> u64 {
        let entries = &mut self.directories.borrow_mut()[dir as usize];
        let next = (entries.next_index, self.transid());
        let (first, transid) = std::mem::replace(&mut entries.unlogged, next);
        if transid == next.1 {
            first
        } else {
            next.0
        }
    }

    /// A directory has lost the name of a file that the log does not know.
    pub(super) fn record_unlink(&self, dir: DirId) {
        self.directories.borrow_mut()[dir as usize].unlinked = self.transid();
    }

    /// The transaction in which that was last so.
    pub(super) fn last_unlink(&self, dir: DirId) -> u64 {
        self.directories.borrow()[dir as usize].unlinked
    }

    /// A search finds no extended attributes of a directory; whether that was known.
    pub(super) fn remember_no_xattrs(&self, dir: DirId) -> bool {
        std::mem::replace(&mut self.directories.borrow_mut()[dir as usize].no_xattrs, true)
    }
}
