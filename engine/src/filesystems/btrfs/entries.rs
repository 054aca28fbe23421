//! What is known in memory of the directories of a btrfs: what they count, and what the log has of them.

use super::mount::{Btrfs, Directory};
use super::tree::items;
use crate::filesystems::DirId;
use std::collections::BTreeSet;

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
    /// The first index that this transaction gave.
    pub(super) first_new: u64,
    /// The transaction in which it last lost the name of a file that its log did not know (`last_unlink_trans`).
    pub(super) unlinked: u64,
    /// The transaction that changed it last, and that its log lacks the change.
    pub(super) changed: (u64, bool),
    /// The log transaction that has what an fsync logged of it last.
    pub(super) logged_in: u64,
    /// Files that it got in this transaction, by slot.
    pub(super) new_names: (u64, BTreeSet<u32>),
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
            first_new: items::DIR_START_INDEX,
            unlinked: 0,
            changed: (made, made > 0),
            logged_in: 0,
            new_names: (0, BTreeSet::new()),
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

    /// Whether a directory may be in the log for all that is known in memory: if the transaction changed it, and memory has had it
    /// since it was made. `never`: not if it was in an earlier log.
    pub(super) fn directory_may_be_logged(&self, dir: DirId, never: bool) -> bool {
        let entries = &self.directories.borrow()[dir as usize];
        entries.made > 0 && entries.changed.0 == self.transid() && !(never && entries.logged > 0)
    }

    /// Whether a directory was ever in a log; from now on this is so, or known not to be.
    pub(super) fn note_directory_logged_before(&self, dir: DirId) -> bool {
        let entries = &mut self.directories.borrow_mut()[dir as usize];
        let known = entries.logged > 0;
        entries.logged = entries.logged.max(self.transid() - 1);
        known
    }

    pub(super) fn set_logged(&self, dir: DirId) {
        self.directories.borrow_mut()[dir as usize].logged = self.transid();
    }

    /// The first index of a directory that its log has not: of this transaction, or since this was asked last.
    pub(super) fn take_unlogged(&self, dir: DirId) -> u64 {
        let entries = &mut self.directories.borrow_mut()[dir as usize];
        let next = (entries.next_index, self.transid());
        let (first, transid) = std::mem::replace(&mut entries.unlogged, next);
        if transid != next.1 {
            entries.first_new = next.0;
        }
        if transid == next.1 {
            first
        } else {
            next.0
        }
    }

    /// Entries before this index are of earlier transactions.
    pub(super) fn first_new(&self, dir: DirId) -> u64 {
        let entries = &self.directories.borrow()[dir as usize];
        if entries.unlogged.1 == self.transid() {
            entries.first_new
        } else {
            entries.next_index
        }
    }

    /// It got or lost a name.
    pub(super) fn directory_changed(&self, dir: DirId) {
        self.directories.borrow_mut()[dir as usize].changed = (self.transid(), true);
    }

    /// Whether an fsync has something to do (`btrfs_inode_in_log`): a change that is not committed, and that the log that is on disk, up to
    /// log transaction `synced`, lacks.
    pub(super) fn directory_needs_log(&self, dir: DirId, committed: u64, synced: u64) -> bool {
        let entries = &self.directories.borrow()[dir as usize];
        let in_log = !entries.changed.1 && entries.logged == self.transid() && entries.logged_in <= synced;
        entries.changed.0 > committed && !in_log
    }

    /// A log transaction has all of it.
    pub(super) fn directory_is_logged(&self, dir: DirId, number: u64) {
        let entries = &mut self.directories.borrow_mut()[dir as usize];
        (entries.changed.1, entries.logged_in) = (false, number);
    }

    /// The file in a slot has a new name there.
    pub(super) fn note_new_name(&self, dir: DirId, slot: u32) {
        let (transid, entries) = (self.transid(), &mut self.directories.borrow_mut()[dir as usize]);
        if entries.new_names.0 != transid {
            entries.new_names = (transid, BTreeSet::new());
        }
        entries.new_names.1.insert(slot);
    }

    /// The name of a file is gone, or all are.
    pub(super) fn forget_new_name(&self, dir: DirId, slot: u32) {
        self.directories.borrow_mut()[dir as usize].new_names.1.remove(&slot);
    }

    /// One of the files that got names there in the running transaction and that was not asked for.
    pub(super) fn take_new_name(&self, dir: DirId) -> Option<u32> {
        let (transid, entries) = (self.transid(), &mut self.directories.borrow_mut()[dir as usize]);
        let (since, new) = &mut entries.new_names;
        (*since == transid).then(|| new.pop_first()).flatten()
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
