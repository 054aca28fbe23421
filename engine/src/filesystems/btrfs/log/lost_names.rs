//! Names that the last commit has and that have been lost since.

use crate::filesystems::btrfs::tree::key::Key;
use std::collections::{BTreeMap, BTreeSet};

/// By the key of their entry.
#[derive(Debug, Default)]
pub struct LostNames {
    owners: BTreeMap<Key, (u32, u64)>,
    /// Inodes without a name.
    gone: BTreeSet<u64>,
}

/// What became of the inode that had a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// It is in this slot, with another name.
    Renamed(u32),
    /// It is gone.
    Deleted,
}

impl LostNames {
    /// The inode in a slot loses a name.
    pub fn lose(&mut self, entry: Key, slot: u32, ino: u64) {
        self.owners.insert(entry, (slot, ino));
    }

    /// An inode goes.
    pub fn go(&mut self, ino: u64) {
        self.gone.insert(ino);
    }

    /// Who had a name.
    pub fn other(&self, entry: Key) -> Option<Other> {
        let &(slot, ino) = self.owners.get(&entry)?;
        Some(if self.gone.contains(&ino) { Other::Deleted } else { Other::Renamed(slot) })
    }
}
