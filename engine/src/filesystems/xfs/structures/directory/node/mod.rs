//! The index of a node-form directory (`xfs_dir2_node.c`, `xfs_da_btree.c`): a hash tree, and beside it the free index.

mod balance;

use super::data::{entry_size, DataBlock};
use super::free::{FreeIndex, Looked};
use super::geometry::DirGeometry;
use super::hash::{HashEntries, HashEntry};
use super::storage::{index_chunks, Storage, HASH_ENTRY, LEAF_HEADER};
use crate::filesystems::xfs::structures::bmap::Change;
use crate::filesystems::xfs::structures::groups::NoSpace;
use crate::filesystems::xfs::structures::touch::{BlockKind, Touches};
use std::ops::Range;

const NIL: u32 = u32::MAX;
/// `XFS_DA_NODE_MAXDEPTH`.
const MAX_DEPTH: usize = 5;

/// A block of the hash tree; `level` 0 is a leaf.
#[derive(Clone, Debug)]
struct DaBlock {
    fsblock: u64,
    level: usize,
    leaf: HashEntries,
    /// Greatest hash and number of each child.
    node: Vec<(u32, u32)>,
    forw: u32,
    back: u32,
}

impl DaBlock {
    fn new(fsblock: u64, level: usize) -> Self {
        Self { fsblock, level, leaf: HashEntries::default(), node: Vec::new(), forw: NIL, back: NIL }
    }

    fn last_hash(&self) -> u32 {
        if self.level == 0 {
            self.leaf.last_hash()
        } else {
            self.node.last().map_or(0, |child| child.0)
        }
    }

    fn touch(&self, touches: &mut Touches) {
        touches.add(self.kind(), self.fsblock);
    }

    /// A transaction logs the header and these entries or children.
    fn log(&self, entries: Range<usize>, touches: &mut Touches) {
        touches.log(self.kind(), self.fsblock, index_chunks(entries));
    }

    /// All of them.
    fn log_all(&self, touches: &mut Touches) {
        self.log(0..self.leaf.len() + self.node.len(), touches);
    }

    fn kind(&self) -> BlockKind {
        if self.level == 0 {
            BlockKind::DirLeafN
        } else {
            BlockKind::DaNode
        }
    }
}

/// A cursor in the hash tree (`xfs_da_state_path`), root first.
#[derive(Clone, Copy)]
struct Path {
    at: [(u32, usize); MAX_DEPTH],
    active: usize,
}

impl Path {
    fn leaf(&self) -> (u32, usize) {
        self.at[self.active - 1]
    }
}

/// A name that was found.
pub(super) struct Found {
    pub(super) ino: u64,
    path: Path,
    pub(super) place: (usize, usize),
}

/// Hash tree and free index.
#[derive(Clone, Debug)]
pub(crate) struct NodeIndex {
    /// Blocks of the leaf part of the directory by their place there; the root is the first.
    tree: Vec<Option<DaBlock>>,
    free: FreeIndex,
    sizes: DirGeometry,
}

impl NodeIndex {
    pub(super) fn new(fsblock: u64, leaf: HashEntries, free: u64, bests: Vec<u16>, sizes: DirGeometry) -> Self {
        let root = DaBlock { leaf, ..DaBlock::new(fsblock, 0) };
        Self { tree: vec![Some(root)], free: FreeIndex::new(free, bests, sizes), sizes }
    }

    pub(super) fn index_blocks(&self) -> usize {
        self.tree.iter().flatten().count()
    }

    pub(super) fn free_blocks(&self) -> usize {
        self.free.blocks()
    }

    /// All hash entries in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &HashEntry> {
        let mut slot = 0;
        while let Some(&(_, child)) = self.da(slot).node.first() {
            slot = child;
        }
        std::iter::successors(Some(self.da(slot)), |block| (block.forw != NIL).then(|| self.da(block.forw)))
            .flat_map(|block| block.leaf.all())
    }

    /// Finds a name (`xfs_da3_node_lookup_int` and `xfs_dir2_leafn_lookup_for_entry`).
    pub(super) fn lookup(&self, name: &[u8], hash: u32, storage: &Storage, touches: &mut Touches) -> Option<Found> {
        let mut path = self.seek(hash, touches);
        loop {
            let (slot, index) = path.leaf();
            let block = self.da(slot);
            for (at, db, offset) in block.leaf.same_hash(index, hash) {
                touches.add(BlockKind::DirData, storage.fsblock(db));
                if let Some(ino) = storage.matches(db, offset, name) {
                    path.at[path.active - 1].1 = at;
                    return Some(Found { ino, path, place: (db, offset) });
                }
            }
            if block.last_hash() != hash || !self.shift(&mut path, true) {
                return None;
            }
            self.da(path.leaf().0).touch(touches);
        }
    }

    /// `xfs_dir2_node_addname`.
    pub(super) fn add(
        &mut self,
        name: &[u8],
        hash: u32,
        ino: u64,
        storage: &mut Storage,
        change: &mut Change<'_>,
    ) -> Result<(), NoSpace> {
        let size = entry_size(name.len()) as u16;
        let (mut path, looked) = self.seek_for_add(hash, size, change.touches);
        let db = match self.free.find_data_block(looked, size, change.touches) {
            Some(db) => db,
            None => self.free.add_data_block(storage, change)?,
        };
        let offset = storage.add_entry(db, name, ino, change.touches);
        self.free.set(db, storage.block(db).longest(), change.touches);
        let entry = HashEntry::new(hash, db, offset);
        let (slot, index) = path.leaf();
        if self.leaf_insert(slot, index, entry, change.touches) {
            self.fix_hash_path(&path, path.active, change.touches);
            return Ok(());
        }
        self.split(&mut path, entry, storage, change)
    }

    /// `xfs_dir2_node_removename`, without the step back to leaf form.
    pub(super) fn remove(
        &mut self,
        name: &[u8],
        hash: u32,
        storage: &mut Storage,
        change: &mut Change<'_>,
    ) -> Option<u64> {
        let Found { ino, mut path, place: (db, offset) } = self.lookup(name, hash, storage, change.touches)?;
        let (slot, index) = path.leaf();
        let leaf = &mut self.da_mut(slot).leaf;
        leaf.kill(index);
        let live = leaf.live();
        let bytes = LEAF_HEADER + HASH_ENTRY * live;
        self.da(slot).log(index..index + 1, change.touches);
        let block = storage.block(db);
        let before = block.longest();
        let removed = block.remove(offset);
        change.touches.scan(block.take_scanned());
        change.touches.log(BlockKind::DirData, block.fsblock, removed);
        let (longest, empty) = (block.longest(), block.is_empty());
        if longest > before {
            self.free.touch(db, change.touches);
            if empty {
                storage.shrink_data(db, change);
                self.free.drop(db, storage, change);
            } else {
                self.free.set(db, longest, change.touches);
            }
        }
        self.fix_hash_path(&path, path.active, change.touches);
        if bytes < self.sizes.join_bytes() && path.active > 1 {
            self.join(&mut path, storage, change);
        }
        Some(ino)
    }

    /// `xfs_dir2_node_trim_free`: drops empty free index blocks at the end.
    pub(super) fn trim_free(&mut self, storage: &mut Storage, change: &mut Change<'_>) {
        self.free.trim(storage, change);
    }

    /// Live hash entries and free values, if there is one block of each.
    pub(super) fn only_blocks(&self) -> Option<(usize, usize)> {
        match self.tree.as_slice() {
            [Some(root)] => Some((root.leaf.live(), self.free.only_block()?)),
            _ => None,
        }
    }

    /// Takes the only hash index block, without stale entries, and the only free index block apart.
    pub(super) fn take_only_blocks(&mut self) -> (u64, HashEntries, Vec<u16>) {
        let fsblock = self.da(0).fsblock;
        let mut index = std::mem::take(&mut self.da_mut(0).leaf);
        index.compact();
        (fsblock, index, self.free.take_only_block())
    }

    /// Checks levels, order, sibling links and the hashes in the nodes.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut row = vec![0];
        loop {
            let mut below = Vec::new();
            for (i, &slot) in row.iter().enumerate() {
                let block = self.da(slot);
                let (back, forw) = (if i == 0 { NIL } else { row[i - 1] }, row.get(i + 1).copied().unwrap_or(NIL));
                if (block.back, block.forw) != (back, forw) {
                    return Err(format!("hash block {slot}: wrong sibling links"));
                }
                if block.leaf.len().max(block.node.len()) > self.sizes.entries()
                    || block.level > 0 && block.node.is_empty()
                {
                    return Err(format!("hash block {slot}: wrong number of entries"));
                }
                for &(hash, child) in &block.node {
                    if self.da(child).last_hash() != hash || self.da(child).level + 1 != block.level {
                        return Err(format!("hash block {slot}: wrong entry for child {child}"));
                    }
                    below.push(child);
                }
            }
            if below.is_empty() {
                return Ok(());
            }
            row = below;
        }
    }

    /// Checks the free index against the data blocks.
    pub(super) fn check_bests(&self, data: &[Option<DataBlock>]) -> Result<(), String> {
        self.free.check(data)
    }

    fn da(&self, slot: u32) -> &DaBlock {
        self.tree[slot as usize].as_ref().expect("a mapped hash block")
    }

    fn da_mut(&mut self, slot: u32) -> &mut DaBlock {
        self.tree[slot as usize].as_mut().expect("a mapped hash block")
    }

    /// `xfs_dir2_leafn_lookup_for_addname`: where the entry goes, and what was seen of the free index on the way.
    fn seek_for_add(&self, hash: u32, size: u16, touches: &mut Touches) -> (Path, Option<Looked>) {
        let mut path = self.seek(hash, touches);
        let mut looked = None;
        loop {
            let (slot, index) = path.leaf();
            let leaf = &self.da(slot).leaf;
            let behind = leaf.all()[index..].iter().take_while(|entry| entry.hash == hash).count();
            path.at[path.active - 1].1 = index + behind;
            looked = looked.map(Looked::in_an_earlier_leaf);
            for (at, db, _) in leaf.same_hash(index, hash) {
                let seen = self.free.look(db, size, touches);
                looked = Some(seen);
                if seen.roomy.is_some() {
                    path.at[path.active - 1].1 = at;
                    break;
                }
            }
            if self.da(slot).last_hash() != hash || !self.shift(&mut path, true) {
                return (path, looked);
            }
            self.da(path.leaf().0).touch(touches);
        }
    }

    /// Goes down to the first leaf that may hold `hash`.
    fn seek(&self, hash: u32, touches: &mut Touches) -> Path {
        let mut path = Path { at: [(0, 0); MAX_DEPTH], active: 0 };
        let mut slot = 0;
        loop {
            let block = self.da(slot);
            block.touch(touches);
            let index = match block.level {
                0 => block.leaf.search(hash),
                _ => block.node.partition_point(|child| child.0 < hash).min(block.node.len() - 1),
            };
            path.at[path.active] = (slot, index);
            path.active += 1;
            if block.level == 0 {
                return path;
            }
            slot = block.node[index].1;
        }
    }

    /// `xfs_da3_path_shift`: to the next or previous block of the lowest level; false at the end.
    fn shift(&self, path: &mut Path, forward: bool) -> bool {
        let movable = |&(slot, index): &(u32, usize)| {
            if forward {
                index + 1 < self.da(slot).node.len()
            } else {
                index > 0
            }
        };
        let Some(above) = path.at[..path.active - 1].iter().rposition(movable) else { return false };
        path.at[above].1 = if forward { path.at[above].1 + 1 } else { path.at[above].1 - 1 };
        for depth in above + 1..path.active {
            let (slot, index) = path.at[depth - 1];
            let child = self.da(slot).node[index].1;
            let last = self.da(child).node.len().saturating_sub(1);
            path.at[depth] = (child, if forward { 0 } else { last });
        }
        true
    }

    /// `xfs_da3_fixhashpath`: the greatest hash of the block at depth `active` changed.
    fn fix_hash_path(&mut self, path: &Path, active: usize, touches: &mut Touches) {
        let mut last = self.da(path.at[active - 1].0).last_hash();
        for &(slot, index) in path.at[..active - 1].iter().rev() {
            let block = self.da_mut(slot);
            if block.node[index].0 == last {
                break;
            }
            block.node[index].0 = last;
            block.log(index..index + 1, touches);
            last = block.last_hash();
        }
    }

    /// `xfs_dir2_leafn_add`; false when the leaf is full.
    fn leaf_insert(&mut self, slot: u32, mut index: usize, entry: HashEntry, touches: &mut Touches) -> bool {
        let most = self.sizes.entries();
        let block = self.da_mut(slot);
        let leaf = &mut block.leaf;
        let compacts = leaf.len() == most && leaf.stale() > 1;
        if compacts {
            index = leaf.compact_but_one(index);
        } else if leaf.len() == most && leaf.stale() == 0 {
            return false;
        }
        let moved = leaf.insert(index, entry);
        touches.shift(moved.len());
        block.log(moved, touches);
        if compacts {
            block.log_all(touches);
        }
        true
    }
}
