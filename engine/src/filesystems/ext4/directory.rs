//! Directories: how many names they have, in which leaf a name is, and where their files go.

use super::dirhash::half_md4;
use super::ialloc::{Home, INODES_PER_BLOCK};
use super::journal::Block;
use super::linear::{record_bytes, Entries};
use super::mballoc::Extent;
use super::Ext4;
use crate::filesystems::cached::used_ago;
use crate::filesystems::{DirId, BLOCK, ROOT};
use crate::waist::Machine;
use crate::waist::{Access, CachedId, ContentsId, LineId, LockId};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Room for entries in the block of a linear directory, besides `.`, `..` and the checksum, before it becomes an htree.
pub(super) const LINEAR_BYTES: u32 = BLOCK - 2 * 12 - 12;
/// Bytes of entries in a leaf of an htree: blocks that split in the middle and are filled at random are ln 2 full.
const LEAF_BYTES: u64 = (BLOCK as u64 - 12) * 693 / 1000;
/// Cache lines of a leaf.
pub(super) const LEAF_LINES: u32 = 64;
/// The most links that a directory counts; with more it has one, and counts no more (`EXT4_LINK_MAX`, `ext4_inc_count`).
const LINK_MAX: u32 = 65_000;

pub(super) struct Directory {
    pub(super) i_rwsem: LockId,
    pub(super) line: LineId,
    /// Where its inode is, and its files go.
    pub(super) home: Home,
    pub(super) names: Cell<u32>,
    /// Bytes of their entries.
    bytes: Cell<u64>,
    /// Blocks that have names: one, or the leaves of an htree, which never become fewer nor one block again.
    blocks: Cell<u32>,
    /// Where its names are, while it is one block.
    pub(super) entries: RefCell<Entries>,
    /// It is dirty for the VFS (`I_DIRTY_SYNC`).
    dirty: Cell<bool>,
    /// The transaction that changed it last (`i_sync_tid`).
    pub(super) transaction: Cell<u64>,
    /// That in which it got a block last, or was made (`i_datasync_tid`).
    grew: Cell<u64>,
    /// `i_nlink`.
    links: Cell<u32>,
    /// Leaves that somebody has searched, and how many there were before the run.
    leaves: RefCell<Vec<Option<Leaf>>>,
    filled: Cell<u32>,
    /// Its number, and its first block; the root's are those of `mkfs`.
    pub(super) made: Option<Made>,
}

impl Directory {
    /// Its number, or some of its block for the root.
    fn inode(&self) -> u32 {
        self.made.map_or(0, |made| made.inode)
    }

    /// The transaction that an `fsync` waits for, or an `fdatasync`.
    pub(super) fn synced_by(&self, data_only: bool) -> u64 {
        if data_only { &self.grew } else { &self.transaction }.get()
    }

    pub(super) fn is_htree(&self) -> bool {
        self.blocks.get() > 1
    }

    fn enter(&self, name: &[u8]) {
        self.names.set(self.names.get() + 1);
        self.bytes.set(self.bytes.get() + u64::from(record_bytes(name)));
        if self.is_htree() || !self.entries.borrow_mut().enter(name) {
            let leaves = self.bytes.get().div_ceil(LEAF_BYTES) as u32;
            self.blocks.set(self.blocks.get().max(leaves).max(2));
        }
    }
}

/// The inode and the first block of a directory that was made.
#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) inode: u32,
    pub(super) block: Extent,
}

/// A block of names.
#[derive(Clone, Copy)]
struct Leaf {
    memory: CachedId,
    names: ContentsId,
}

/// All directories, and the numbers of those that were removed.
#[derive(Default)]
pub(super) struct Directories {
    all: Vec<Directory>,
    free: Vec<DirId>,
}

impl Directories {
    pub(super) fn of(&self, dir: DirId) -> &Directory {
        &self.all[dir as usize]
    }

    /// How many there are below the root.
    pub fn made(&self) -> u32 {
        self.all.iter().filter(|d| d.made.is_some()).count() as u32
    }
}

impl Ext4 {
    /// A directory without names. Who was removed leaves its lock to the next.
    pub(super) fn add_directory<M: Machine>(&self, m: &M, home: Home, made: Option<Made>) -> DirId {
        let mut directories = self.directories.borrow_mut();
        let Directories { all, free } = &mut *directories;
        let reused = free.pop();
        let (i_rwsem, line, leaves) = match reused {
            Some(dir) => {
                let left = &mut all[dir as usize];
                (left.i_rwsem, left.line, std::mem::take(&mut left.leaves))
            }
            None => (self.sb.new_directory(m), m.new_line("ext4.directory", self.directory_lines), RefCell::default()),
        };
        let directory = Directory {
            i_rwsem,
            line,
            home,
            names: Cell::new(0),
            bytes: Cell::new(0),
            blocks: Cell::new(1),
            entries: RefCell::default(),
            dirty: Cell::new(false),
            transaction: Cell::new(0),
            grew: Cell::new(self.journal.running()),
            links: Cell::new(2),
            leaves,
            filled: Cell::new(0),
            made,
        };
        if let Some(dir) = reused {
            all[dir as usize] = directory;
            return dir;
        }
        all.push(directory);
        (all.len() - 1) as DirId
    }

    /// A directory that was removed is gone.
    pub(super) fn drop_directory(&self, dir: DirId) {
        let mut directories = self.directories.borrow_mut();
        directories.all[dir as usize].made = None;
        self.unjournaled.take(dir);
        directories.free.push(dir);
    }

    /// `__mark_inode_dirty` of a directory.
    pub(super) fn dirtied_directory(&self, dir: DirId) {
        self.directories.borrow().all[dir as usize].dirty.set(true);
    }

    /// A directory is no longer dirty; its number if it was.
    pub(super) fn clean_directory(&self, dir: DirId) -> Option<u32> {
        let directories = self.directories.borrow();
        let d = directories.of(dir);
        d.dirty.take().then(|| d.inode())
    }

    /// The number of a directory's inode.
    pub(super) fn directory_inode(&self, dir: DirId) -> u32 {
        self.directories.borrow().of(dir).inode()
    }

    /// The inode and the block of a directory that was made.
    pub(super) fn made(&self, dir: DirId) -> Made {
        self.directories.borrow().all[dir as usize].made.expect("it is not the root")
    }

    /// Where an inode for a new file of a directory is looked for.
    pub(super) fn group_of_new_file(&self, dir: DirId) -> Option<u32> {
        self.ialloc.group_of_new_file(&self.directories.borrow().all[dir as usize].home)
    }

    /// The same for a new directory.
    pub(super) fn group_of_new_directory(&self, parent: DirId, name: &[u8]) -> Option<u32> {
        let directories = self.directories.borrow();
        match &self.below {
            Some(below) if parent == ROOT => self.ialloc.group_of_new_directory(below, None),
            _ => {
                let spread = (parent == ROOT).then(|| half_md4(self.seed, name));
                self.ialloc.group_of_new_directory(&directories.all[parent as usize].home, spread)
            }
        }
    }

    /// A directory's inode, and the leaf in which a name is.
    pub(super) fn name_blocks(&self, dir: DirId, name: &[u8]) -> [Block; 2] {
        let leaf = self.leaf_of(&self.directories.borrow().all[dir as usize], name);
        [self.inode_block(dir), Block::Leaf(dir, leaf)]
    }

    /// The block of the inode table that has a directory's inode, with those of up to 15 others that were made beside it.
    pub(super) fn inode_block(&self, dir: DirId) -> Block {
        let made = self.directories.borrow().of(dir).made;
        Block::Directory(made.map_or(0, |made| made.inode / INODES_PER_BLOCK))
    }

    /// The leaf in which a name of a directory is.
    pub(super) fn leaf_with(&self, dir: DirId, name: &[u8]) -> u32 {
        self.leaf_of(self.directories.borrow().of(dir), name)
    }

    /// Each leaf has a range of hashes (`dx_probe`).
    fn leaf_of(&self, d: &Directory, name: &[u8]) -> u32 {
        match d.blocks.get() {
            1 => 0,
            leaves => ((u64::from(half_md4(self.seed, name)) * u64::from(leaves)) >> 32) as u32,
        }
    }

    /// A directory as it is now was there before the run.
    pub(super) fn was_filled(&self, dir: DirId) {
        let d = &self.directories.borrow().all[dir as usize];
        d.filled.set(d.blocks.get());
    }

    /// `search_dirblock`, `add_dirent_to_buf`: goes through the leaf of a name.
    pub(super) fn search_leaf<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) {
        let d = &self.directories.borrow().all[dir as usize];
        let Leaf { memory, names } = self.leaf(m, d, name);
        self.leaf.of(m, memory);
        m.touch_contents(names, 0..self.line_of(d, name) + 1, Access::Read);
    }

    /// `add_dirent_to_buf`.
    pub(super) fn write_entry<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) {
        let d = &self.directories.borrow().all[dir as usize];
        let line = self.line_of(d, name);
        self.dirty_leaf(m, d, name, line..line + 1);
    }

    /// `ext4_generic_delete_entry`, which wipes the whole record since 5.13.
    pub(super) fn delete_entry<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) {
        let d = &self.directories.borrow().all[dir as usize];
        let line = self.line_of(d, name);
        let wipes = self.wipes_entries && d.blocks.get() == 1;
        let last = if wipes { d.entries.borrow().end_of(name) } else { line };
        self.dirty_leaf(m, d, name, line..last + 1);
    }

    /// `ext4_handle_dirty_dirblock`: lines were written, and then the checksum of the whole block (`ext4_dirblock_csum_set`).
    fn dirty_leaf<M: Machine>(&self, m: &M, d: &Directory, name: &[u8], written: Range<u32>) {
        let names = self.leaf(m, d, name).names;
        m.touch_contents(names, written, Access::Write);
        m.touch_contents(names, 0..LEAF_LINES, Access::Read);
        m.touch_contents(names, LEAF_LINES - 1..LEAF_LINES, Access::Write);
    }

    fn leaf<M: Machine>(&self, m: &M, d: &Directory, name: &[u8]) -> Leaf {
        let (leaf, filled) = (self.leaf_of(d, name), d.filled.get());
        let mut leaves = d.leaves.borrow_mut();
        if leaves.len() <= leaf as usize {
            leaves.resize(leaf as usize + 1, None);
        }
        let ago = (leaf < filled).then(|| used_ago(u64::from(leaf), u64::from(filled), self.leaf.bytes()));
        *leaves[leaf as usize].get_or_insert_with(|| Leaf { memory: m.new_block(0..0, ago), names: m.new_contents() })
    }

    /// The line of its block that a name is in or comes into; in an htree any.
    fn line_of(&self, d: &Directory, name: &[u8]) -> u32 {
        match d.blocks.get() {
            1 => d.entries.borrow().line_of(name),
            leaves => {
                ((u64::from(half_md4(self.seed, name).wrapping_mul(leaves)) * u64::from(LEAF_LINES)) >> 32) as u32
            }
        }
    }

    /// `ext4_find_entry`: `dx_probe` asks where the root and the leaf of a name are, and the leaf is searched.
    pub(super) async fn find_leaf<M: Machine>(&self, m: &M, dir: DirId, name: &[u8]) {
        self.info.count_lookup(m);
        let leaves = self.directories.borrow().all[dir as usize].blocks.get();
        self.info.find_leaf(m, leaves).await;
        self.search_leaf(m, dir, name);
    }

    /// Its lock, its lines, and how many names it has.
    pub(super) fn directory(&self, dir: DirId) -> (LockId, LineId, u32) {
        let d = &self.directories.borrow().all[dir as usize];
        (d.i_rwsem, d.line, d.names.get())
    }

    /// How many blocks with names it has.
    pub(super) fn leaves(&self, dir: DirId) -> u32 {
        self.directories.borrow().all[dir as usize].blocks.get()
    }

    /// A name enters it.
    pub(super) fn enter_name(&self, dir: DirId, name: &[u8]) {
        let directories = self.directories.borrow();
        let (d, before) = (directories.of(dir), directories.of(dir).blocks.get());
        d.enter(name);
        if d.blocks.get() > before {
            d.grew.set(self.journal.running());
        }
    }

    /// A name leaves it.
    pub(super) fn leave_name(&self, dir: DirId, name: &[u8]) {
        let d = &self.directories.borrow().all[dir as usize];
        d.names.set(d.names.get().saturating_sub(1));
        d.bytes.set(d.bytes.get().saturating_sub(u64::from(record_bytes(name))));
        d.entries.borrow_mut().leave(name);
    }

    /// `i_nlink`; 1 says that they are not counted.
    pub(super) fn links(&self, dir: DirId) -> u32 {
        self.directories.borrow().all[dir as usize].links.get()
    }

    /// `ext4_inc_count`: another directory is in this one.
    pub(super) fn inc_count(&self, dir: DirId) {
        let d = &self.directories.borrow().all[dir as usize];
        let links = d.links.get() + 1;
        d.links.set(if d.is_htree() && (links > LINK_MAX || links == 2) { 1 } else { links });
    }

    /// `ext4_dec_count`.
    pub(super) fn dec_count(&self, dir: DirId) {
        let links = &self.directories.borrow().all[dir as usize].links;
        links.set(if links.get() > 2 { links.get() - 1 } else { links.get() });
    }
}
