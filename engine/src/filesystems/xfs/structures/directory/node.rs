//! The index of a node-form directory (`xfs_dir2_node.c`, `xfs_da_btree.c`): a hash tree, and beside it the free index.

use crate::filesystems::xfs::structures::bmap::Change;
use super::data::{entry_size, DataBlock, DIR_BLOCK};
use super::free::{FreeIndex, Looked};
use super::hash::{HashEntries, HashEntry};
use super::storage::{first_hole, put, Storage, HASH_ENTRY, LEAF_HEADER, LEAF_OFFSET};
use crate::filesystems::xfs::structures::groups::NoSpace;
use crate::filesystems::xfs::structures::touch::{BlockKind, Touches};

/// Hash entries in a leaf, and children of a node (`leaf_max_ents`, `node_ents`).
const ENTRIES_MAX: usize = (DIR_BLOCK - LEAF_HEADER) / HASH_ENTRY;
/// A leaf with fewer bytes in use is tried to be joined (`magicpct`, 37 %).
const JOIN_BYTES: usize = DIR_BLOCK * 37 / 100;
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
        if self.level == 0 { self.leaf.last_hash() } else { self.node.last().map_or(0, |child| child.0) }
    }

    fn touch(&self, touches: &mut Touches) {
        let kind = if self.level == 0 { BlockKind::DirLeafN } else { BlockKind::DaNode };
        touches.add(kind, self.fsblock);
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
    place: (usize, usize),
}

/// Hash tree and free index.
#[derive(Clone, Debug)]
pub(crate) struct NodeIndex {
    /// Blocks of the leaf part of the directory by their place there; the root is the first.
    tree: Vec<Option<DaBlock>>,
    free: FreeIndex,
}

impl NodeIndex {
    pub(super) fn new(fsblock: u64, leaf: HashEntries, free: u64, bests: Vec<u16>) -> Self {
        let root = DaBlock { leaf, ..DaBlock::new(fsblock, 0) };
        Self { tree: vec![Some(root)], free: FreeIndex::new(free, bests) }
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
        self.free.set(db, storage.block(db).longest());
        let entry = HashEntry::new(hash, db, offset);
        let (slot, index) = path.leaf();
        if self.leaf_insert(slot, index, entry) {
            self.fix_hash_path(&path, path.active);
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
        let bytes = LEAF_HEADER + HASH_ENTRY * leaf.live();
        let block = storage.block(db);
        let before = block.longest();
        block.remove(offset);
        let (longest, empty) = (block.longest(), block.is_empty());
        if longest > before {
            self.free.touch(db, change.touches);
            if empty {
                storage.shrink_data(db, change);
                self.free.drop(db, storage, change);
            } else {
                self.free.set(db, longest);
            }
        }
        self.fix_hash_path(&path, path.active);
        if bytes < JOIN_BYTES && path.active > 1 {
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
                if block.leaf.len().max(block.node.len()) > ENTRIES_MAX || block.level > 0 && block.node.is_empty() {
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
            if forward { index + 1 < self.da(slot).node.len() } else { index > 0 }
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
    fn fix_hash_path(&mut self, path: &Path, active: usize) {
        let mut last = self.da(path.at[active - 1].0).last_hash();
        for &(slot, index) in path.at[..active - 1].iter().rev() {
            let block = self.da_mut(slot);
            if block.node[index].0 == last {
                break;
            }
            block.node[index].0 = last;
            last = block.last_hash();
        }
    }

    /// `xfs_dir2_leafn_add`; false when the leaf is full.
    fn leaf_insert(&mut self, slot: u32, mut index: usize, entry: HashEntry) -> bool {
        let leaf = &mut self.da_mut(slot).leaf;
        if leaf.len() == ENTRIES_MAX {
            match leaf.stale() {
                0 => return false,
                1 => {}
                _ => index = leaf.compact_but_one(index),
            }
        }
        leaf.insert(index, entry);
        true
    }

    fn grow(&mut self, level: usize, storage: &mut Storage, change: &mut Change<'_>) -> Result<u32, NoSpace> {
        let slot = first_hole(&self.tree);
        let fsblock = storage.map.grow(storage.inode_block, LEAF_OFFSET + slot as u32, change)?;
        let block = DaBlock::new(fsblock, level);
        block.touch(change.touches);
        put(&mut self.tree, slot, block);
        Ok(slot as u32)
    }

    /// `xfs_da3_split`: splits the leaf and as many nodes above as are full.
    fn split(
        &mut self,
        path: &mut Path,
        entry: HashEntry,
        storage: &mut Storage,
        change: &mut Change<'_>,
    ) -> Result<(), NoSpace> {
        let mut added = self.split_leaf(path.leaf(), entry, storage, change)?;
        self.fix_hash_path(path, path.active);
        for depth in (0..path.active - 1).rev() {
            let next = self.add_child(&mut path.at[depth], added, storage, change)?;
            self.fix_hash_path(path, depth + 1);
            match next {
                Some(slot) => added = slot,
                None => return Ok(()),
            }
        }
        self.split_root(added, storage, change)
    }

    /// `xfs_dir2_leafn_split` and `xfs_dir2_leafn_rebalance`: half of the entries go to a new leaf.
    fn split_leaf(
        &mut self,
        (old, index): (u32, usize),
        entry: HashEntry,
        storage: &mut Storage,
        change: &mut Change<'_>,
    ) -> Result<u32, NoSpace> {
        let new = self.grow(0, storage, change)?;
        let leaf = &mut self.da_mut(old).leaf;
        let keep = leaf.len() / 2;
        let moved = leaf.split_off(keep);
        self.da_mut(new).leaf = moved;
        self.link_after(old, new);
        let (slot, index) = if index <= keep { (old, index) } else { (new, index - keep) };
        self.leaf_insert(slot, index, entry);
        Ok(new)
    }

    /// `xfs_da3_node_split`: puts a child behind the cursor; the new right half if the node was full.
    fn add_child(
        &mut self,
        at: &mut (u32, usize),
        child: u32,
        storage: &mut Storage,
        change: &mut Change<'_>,
    ) -> Result<Option<u32>, NoSpace> {
        let mut new = None;
        if self.da(at.0).node.len() == ENTRIES_MAX {
            let right = self.grow(self.da(at.0).level, storage, change)?;
            let keep = ENTRIES_MAX - ENTRIES_MAX / 2;
            let moved = self.da_mut(at.0).node.split_off(keep);
            self.da_mut(right).node = moved;
            self.link_after(at.0, right);
            new = Some(right);
        }
        at.1 += 1;
        let hash = self.da(child).last_hash();
        let keep = self.da(at.0).node.len();
        match new {
            Some(right) if at.1 > keep => self.da_mut(right).node.insert(at.1 - keep, (hash, child)),
            _ => self.da_mut(at.0).node.insert(at.1, (hash, child)),
        }
        Ok(new)
    }

    /// `xfs_da3_root_split`: the root moves to a new block and becomes a node over it and its new right half.
    fn split_root(&mut self, right: u32, storage: &mut Storage, change: &mut Change<'_>) -> Result<(), NoSpace> {
        let level = self.da(0).level;
        let left = self.grow(level, storage, change)?;
        let fsblock = self.da(0).fsblock;
        let root = std::mem::replace(self.da_mut(0), DaBlock::new(fsblock, level + 1));
        let fsblock = self.da(left).fsblock;
        *self.da_mut(left) = DaBlock { fsblock, ..root };
        self.da_mut(right).back = left;
        self.da_mut(0).node = [left, right].map(|slot| (self.da(slot).last_hash(), slot)).to_vec();
        change.touches.add(BlockKind::DaNode, self.da(0).fsblock);
        Ok(())
    }

    /// `xfs_da3_blk_link`.
    fn link_after(&mut self, old: u32, new: u32) {
        let forw = std::mem::replace(&mut self.da_mut(old).forw, new);
        (self.da_mut(new).back, self.da_mut(new).forw) = (old, forw);
        if forw != NIL {
            self.da_mut(forw).back = new;
        }
    }

    /// `xfs_da3_join`: joins the leaf, and nodes above it, with a sibling where both are small enough.
    fn join(&mut self, path: &mut Path, storage: &mut Storage, change: &mut Change<'_>) {
        while path.active > 1 {
            let depth = path.active - 1;
            if self.da(path.at[depth].0).level > 0 {
                self.remove_child(path, depth);
            }
            let Some(keep) = self.to_join(path, change.touches) else { return };
            let (drop, save) = (path.at[depth].0, keep.at[depth].0);
            let dropped = self.unlink(drop);
            let block = self.da_mut(save);
            if block.level == 0 {
                let mut leaf = dropped.leaf;
                leaf.compact();
                block.leaf.compact();
                block.leaf.absorb(leaf);
            } else {
                let mut node = dropped.node;
                if node.first().zip(block.node.first()).is_some_and(|(a, b)| a.0 < b.0) {
                    std::mem::swap(&mut node, &mut block.node);
                }
                block.node.append(&mut node);
            }
            self.fix_hash_path(&keep, path.active);
            self.shrink(drop, storage, change);
            path.active -= 1;
        }
        self.remove_child(path, 0);
        self.join_root(storage, change);
    }

    fn remove_child(&mut self, path: &mut Path, depth: usize) {
        let (slot, index) = path.at[depth];
        let node = &mut self.da_mut(slot).node;
        node.remove(index);
        if index > 0 && index == node.len() {
            path.at[depth].1 -= 1;
        }
        if !self.da(slot).node.is_empty() {
            self.fix_hash_path(path, depth + 1);
        }
    }

    /// `xfs_dir2_leafn_toosmall`, `xfs_da3_node_toosmall`: the path to the block to keep; `path` is then that to the
    /// block to drop.
    fn to_join(&self, path: &mut Path, touches: &mut Touches) -> Option<Path> {
        let slot = path.at[path.active - 1].0;
        let block = self.da(slot);
        let (count, most, sum) = match block.level {
            0 => {
                let half = (DIR_BLOCK / 2 - LEAF_HEADER) / HASH_ENTRY;
                (block.leaf.live(), half, (DIR_BLOCK - DIR_BLOCK / 4) / HASH_ENTRY)
            }
            _ => (block.node.len(), ENTRIES_MAX / 2, ENTRIES_MAX - ENTRIES_MAX / 4),
        };
        if count > most {
            return None;
        }
        let mut keep = *path;
        if count == 0 {
            return self.shift(&mut keep, block.forw != NIL).then_some(keep);
        }
        let rank = |sibling: u32| sibling.wrapping_add(1);
        let forward = rank(block.forw) < rank(block.back);
        for forward in [forward, !forward] {
            let sibling = if forward { block.forw } else { block.back };
            if sibling == NIL {
                continue;
            }
            let other = self.da(sibling);
            other.touch(touches);
            if count + other.leaf.live() + other.node.len() <= sum {
                let moved = if sibling < slot { &mut keep } else { &mut *path };
                return self.shift(moved, forward).then_some(keep);
            }
        }
        None
    }

    /// `xfs_da3_blk_unlink`.
    fn unlink(&mut self, slot: u32) -> DaBlock {
        let fsblock = self.da(slot).fsblock;
        let block = std::mem::replace(self.da_mut(slot), DaBlock::new(fsblock, 0));
        if block.back != NIL {
            self.da_mut(block.back).forw = block.forw;
        }
        if block.forw != NIL {
            self.da_mut(block.forw).back = block.back;
        }
        block
    }

    /// `xfs_da3_root_join`: an only child becomes the root.
    fn join_root(&mut self, storage: &mut Storage, change: &mut Change<'_>) {
        let &[(_, child)] = self.da(0).node.as_slice() else { return };
        let fsblock = self.da(0).fsblock;
        let only = self.unlink(child);
        *self.da_mut(0) = DaBlock { fsblock, ..only };
        self.shrink(child, storage, change);
    }

    fn shrink(&mut self, slot: u32, storage: &mut Storage, change: &mut Change<'_>) {
        storage.map.shrink(LEAF_OFFSET + slot, change);
        self.tree[slot as usize] = None;
        while self.tree.last().is_some_and(Option::is_none) {
            self.tree.pop();
        }
    }
}
