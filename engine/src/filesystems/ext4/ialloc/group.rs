//! Inodes of one block group: its bitmap.

use std::collections::BTreeSet;

/// Inodes of one group: all from `next` to `end` are free, and these before.
#[derive(Clone, Debug)]
pub struct Inodes {
    next: u32,
    end: u32,
    freed: BTreeSet<u32>,
    /// Those of them that were freed in an earlier second, where that counts (`recently_deleted`).
    avoided: BTreeSet<u32>,
}

impl Inodes {
    /// So many, of which all from `next` on are free.
    pub fn new(next: u32, end: u32) -> Self {
        Self { next, end, freed: BTreeSet::new(), avoided: BTreeSet::new() }
    }

    pub fn free(&self) -> u32 {
        self.end - self.next + self.freed.len() as u32
    }

    /// The first free one from there on that need not be avoided, else the last (`find_inode_bit`).
    pub fn find(&self, from: u32) -> Option<u32> {
        let freed = self.freed.range(from..).find(|inode| !self.avoided.contains(inode)).copied();
        let fresh = from.max(self.next);
        freed.or((fresh < self.end).then_some(fresh)).or_else(|| self.avoided.range(from..).next_back().copied())
    }

    /// Those that are passed by on the way there.
    pub fn passed(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        self.avoided.range(from..self.find(from).unwrap_or(self.end)).copied()
    }

    /// Takes the first free one from there on.
    pub fn take(&mut self, from: u32) -> Option<u32> {
        let found = self.find(from)?;
        self.avoided.remove(&found);
        if !self.freed.remove(&found) {
            self.freed.extend(self.next..found);
            self.next = found + 1;
        }
        Some(found)
    }

    pub fn uses(&self, inode: u32) -> bool {
        inode < self.next && !self.freed.contains(&inode)
    }

    /// Gives one back; false if it was free.
    pub fn give_back(&mut self, inode: u32) -> bool {
        self.freed.insert(inode)
    }

    /// A second has passed: all that were freed in it are avoided now.
    pub fn avoid_freed(&mut self) {
        self.avoided.clone_from(&self.freed);
    }
}
