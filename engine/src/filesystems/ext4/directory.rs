//! Directories: how many names they have, in which leaf a name is, and where their files go.

use super::ialloc::Home;
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
pub(super) struct Directory {
    pub(super) i_rwsem: LockId,
    pub(super) line: LineId,
    /// Where its inode is, and its files go.
    pub(super) home: Home,
    pub(super) names: Cell<u32>,
}

/// A name's place among the leaves of an htree and the flex groups (FNV-1a, mixed as in MurmurHash3 so that names that differ in
/// a digit do not lie beside each other; ext4 has half of MD4).
pub(super) fn hash(name: &[u8]) -> u32 {
    let fnv = name.iter().fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mixed = (fnv ^ (fnv >> 16)).wrapping_mul(0x85eb_ca6b);
    let mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    mixed ^ (mixed >> 16)
}

impl Ext4 {
    pub(super) fn add_directory<M: Machine>(&self, m: &M, home: Home) -> DirId {
        let i_rwsem = self.sb.new_directory(m);
        let line = m.new_line(self.directory_lines);
        self.directories.borrow_mut().push(Directory { i_rwsem, line, home, names: Cell::new(0) });
        (self.directories.borrow().len() - 1) as DirId
    }

    /// Where an inode for a new file of a directory is looked for.
    pub(super) fn group_of_new_file(&self, dir: DirId) -> Option<u32> {
        self.ialloc.group_of_new_file(&self.directories.borrow()[dir as usize].home)
    }

    /// A directory's inode, and the leaf in which a name is.
    pub(super) fn name_blocks(&self, dir: DirId, name: &[u8]) -> [Block; 2] {
        let names = self.directories.borrow()[dir as usize].names.get();
        let leaves = if names > LINEAR_NAMES { names.div_ceil(NAMES_PER_LEAF) } else { 1 };
        [Block::Directory(dir), Block::Leaf(dir, hash(name) % leaves)]
    }

    /// Its lock, its lines, and how many names it has.
    pub(super) fn directory(&self, dir: DirId) -> (LockId, LineId, u32) {
        let d = &self.directories.borrow()[dir as usize];
        (d.i_rwsem, d.line, d.names.get())
    }

    pub(super) fn count_names(&self, dir: DirId, change: i32) {
        let names = &self.directories.borrow()[dir as usize].names;
        names.set(names.get().saturating_add_signed(change));
    }
}
