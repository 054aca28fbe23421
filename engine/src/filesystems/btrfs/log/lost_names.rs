//! Names that the last commit has and that have been lost since.

use crate::filesystems::btrfs::tree::key::Key;
use std::collections::{BTreeMap, BTreeSet};

/// The names, by the key of their directory entry: the slot and the number of the inode that had each.
#[derive(Debug, Default)]
pub struct LostNames {
    owners: BTreeMap<Key, (u32, u64)>,
    /// Inodes that have lost their last name.
    deleted: BTreeSet<u64>,
}

/// What became of the inode that had a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in this slot, with another name.
    Renamed(u32),
    /// It has none left.
    Deleted,
}

impl LostNames {
    /// The inode in a slot loses a name.
    pub fn lose(&mut self, entry: Key, slot: u32, ino: u64) {
        self.owners.insert(entry, (slot, ino));
    }

    /// An inode is deleted.
    pub fn delete(&mut self, ino: u64) {
        self.deleted.insert(ino);
    }

    /// What became of the inode that had a name, if that was lost.
    pub fn fate(&self, entry: Key) -> Option<Fate> {
        let &(slot, ino) = self.owners.get(&entry)?;
        Some(if self.deleted.contains(&ino) { Fate::Deleted } else { Fate::Renamed(slot) })
    }
}
