//! Directories: how many names they have, in which leaf a name is, and the group that their files go to.

use super::journal::Block;
use super::Ext4;
use crate::filesystems::DirId;
use crate::machine::{LineId, LockId};
use crate::waist::Machine;
use std::cell::Cell;

/// Names that fit one 4 KiB block of a linear directory before it becomes an htree: a 12-byte name takes 20 bytes of entry.
pub(super) const LINEAR_NAMES: u32 = 190;
/// Names in a leaf of an htree: blocks that split in the middle and are filled at random are ln 2 full, of 204 entries of 20 bytes.
const NAMES_PER_LEAF: u32 = 140;
/// Inodes a block group of the default `mkfs.ext4` layout (one inode for 16 KiB in 128 MiB groups).
const INODES_PER_GROUP: u64 = 8192;

pub(super) struct Directory {
    pub(super) i_rwsem: LockId,
    pub(super) line: LineId,
    pub(super) group: u32,
    pub(super) names: Cell<u32>,
}

/// A name's place among the leaves of an htree (FNV-1a; any hash that spreads names will do).
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Ext4 {
    pub(super) fn new_directory<M: Machine>(&self, m: &M, group: u32) -> DirId {
        let i_rwsem = self.sb.new_directory(m);
        let line = m.new_line(self.directory_lines);
        self.directories.borrow_mut().push(Directory { i_rwsem, line, group, names: Cell::new(0) });
        (self.directories.borrow().len() - 1) as DirId
    }

    /// Directories made in the root spread over the groups, as Orlov's allocator does with top-level directories (taken in
    /// turn here); files stay in their directory's group while it has free inodes.
    pub(super) fn group_of_new_directory(&self) -> u32 {
        (self.directories.borrow().len() % self.groups.len()) as u32
    }

    /// A directory's inode, and the leaf in which a name is.
    pub(super) fn name_blocks(&self, dir: DirId, name: &[u8]) -> [Block; 2] {
        let names = self.directories.borrow()[dir as usize].names.get();
        let leaves = if names > LINEAR_NAMES { names.div_ceil(NAMES_PER_LEAF) } else { 1 };
        [Block::Directory(dir), Block::Leaf(dir, hash(name) % leaves)]
    }

    pub(super) fn directory(&self, dir: DirId) -> (LockId, LineId, u32, u32) {
        let d = &self.directories.borrow()[dir as usize];
        (d.i_rwsem, d.line, d.group + (u64::from(d.names.get()) / INODES_PER_GROUP) as u32, d.names.get())
    }

    pub(super) fn count_names(&self, dir: DirId, change: i32) {
        let names = &self.directories.borrow()[dir as usize].names;
        names.set(names.get().saturating_add_signed(change));
    }
}
