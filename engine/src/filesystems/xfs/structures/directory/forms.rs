//! The forms that are smaller than a tree of index blocks, and how one becomes another (`xfs_dir2_sf.c`, `xfs_dir2_block.c`,
//! `xfs_dir2_leaf.c`).

use super::data::{entry_size, DataBlock, FreeRun, DATA_HEADER};
use super::geometry::DirGeometry;
use super::hash::{name_hash, HashEntries, HashEntry};
use super::node::NodeIndex;
use super::short::ShortForm;
use super::storage::{index_chunks, Storage, BEST, FREE_OFFSET, HASH_ENTRY, LEAF_HEADER, LEAF_OFFSET, NO_BLOCK};
use super::{Body, Directory};
use crate::filesystems::xfs::structures::bmap::Change;
use crate::filesystems::xfs::structures::groups::NoSpace;
use crate::filesystems::xfs::structures::touch::{chunks, BlockKind, Chunks, Touches};
use std::ops::Range;

/// Count and stale count behind the hash entries of a block-form directory.
const BLOCK_TAIL: usize = 8;
/// Count of free space values at the end of a leaf-form index block.
const LEAF_TAIL: usize = 4;

impl Directory {
    // Shortform and block form

    /// `xfs_dir2_sf_to_block`: entries keep the offsets that they had reserved.
    pub(super) fn short_to_block(&mut self, change: &mut Change<'_>) -> Result<(), NoSpace> {
        let Body::Short(short) = &self.body else { unreachable!() };
        let db = self.storage.grow_data(change)?;
        let bytes = self.storage.sizes.bytes();
        let end = bytes - BLOCK_TAIL - HASH_ENTRY * (short.count() + 2);
        let fsblock = self.storage.fsblock(db);
        let mut block = DataBlock::new(fsblock, bytes, end);
        let mut index = HashEntries::default();
        let mut at = DATA_HEADER;
        let dots = [(DATA_HEADER, b".".as_slice(), self.ino), (DATA_HEADER + 16, b"..", short.parent())];
        for (offset, name, ino) in dots.into_iter().chain(short.entries()) {
            block.build(at, offset, name, ino);
            index.sort_in(HashEntry::new(name_hash(name), 0, offset));
            at = offset + entry_size(name.len());
        }
        block.finish_building(at);
        change.touches.log(BlockKind::DirBlock, fsblock, chunks(0..at + 4) | chunks(end..bytes));
        self.storage.data[db] = Some(block);
        self.body = Body::Block(index);
        Ok(())
    }

    /// `xfs_dir2_block_to_sf`, if the entries fit into the inode.
    pub(super) fn block_to_short(&mut self, change: &mut Change<'_>) {
        let fork_size = self.storage.map.fork_size();
        let block = self.storage.block(0);
        let named = || block.entries().map(|offset| (offset, block.entry(offset))).filter(|(_, e)| !is_dot(e.0));
        let parent = block.entry(DATA_HEADER + 16).1;
        let mut short = ShortForm::new(parent);
        if ShortForm::size_of(parent, named().map(|(_, (name, ino))| (name.len(), ino))) > fork_size {
            return;
        }
        for (offset, (name, ino)) in named() {
            short.append(offset, name, ino);
        }
        self.storage.shrink_data(0, change);
        self.body = Body::Short(short);
    }

    // Leaf form

    /// `xfs_dir2_block_to_leaf`.
    pub(super) fn block_to_leaf(&mut self, change: &mut Change<'_>) -> Result<(), NoSpace> {
        let Body::Block(index) = &mut self.body else { unreachable!() };
        let fsblock = self.storage.grow(LEAF_OFFSET, 0, change)?;
        let sizes = self.storage.sizes;
        change.touches.log(BlockKind::DirLeaf, fsblock, leaf_chunks(0..index.len(), sizes));
        let block = self.storage.data[0].as_mut().expect("a block-form directory has one block");
        let freed = chunks(block.end()..block.end() + 4) | chunks(sizes.bytes() - 2..sizes.bytes());
        change.touches.log(BlockKind::DirBlock, block.fsblock, chunks(0..DATA_HEADER) | freed);
        block.move_end(sizes.bytes());
        let bests = vec![block.longest()];
        self.body = Body::Leaf { fsblock, index: std::mem::take(index), bests };
        Ok(())
    }

    /// `xfs_dir2_leaf_addname`; false when the index block is full.
    pub(super) fn leaf_add(
        &mut self,
        name: &[u8],
        hash: u32,
        ino: u64,
        change: &mut Change<'_>,
    ) -> Result<bool, NoSpace> {
        let sizes = self.storage.sizes;
        let Body::Leaf { fsblock, index, bests } = &mut self.body else { unreachable!() };
        change.touches.add(BlockKind::DirLeaf, *fsblock);
        let mut at = index.search(hash);
        let size = entry_size(name.len()) as u16;
        let candidate = leaf_choose(index, bests, at, hash, size);
        let found = candidate.filter(|&db| bests[db] != NO_BLOCK);
        let need = if index.stale() == 0 { HASH_ENTRY } else { 0 } + if candidate.is_none() { BEST } else { 0 };
        if sizes.bytes() - leaf_size(index.len(), bests.len()) < need {
            if index.stale() <= 1 {
                return Ok(false);
            }
            at = index.compact_but_one(at);
        }
        let db = match found {
            Some(db) => db,
            None => {
                let db = self.storage.grow_data(change)?;
                if db >= bests.len() {
                    bests.push(0);
                }
                db
            }
        };
        let offset = self.storage.add_entry(db, name, ino, change.touches);
        bests[db] = self.storage.block(db).longest();
        let moved = index.insert(at, HashEntry::new(hash, db, offset));
        change.touches.shift(moved.len());
        change.touches.log(BlockKind::DirLeaf, *fsblock, leaf_chunks(moved, sizes));
        Ok(true)
    }

    /// `xfs_dir2_leaf_removename`.
    pub(super) fn leaf_remove(&mut self, name: &[u8], hash: u32, change: &mut Change<'_>) -> Option<u64> {
        let Body::Leaf { fsblock, index, bests } = &mut self.body else { unreachable!() };
        change.touches.add(BlockKind::DirLeaf, *fsblock);
        for (_, db, _) in index.same_hash(index.search(hash), hash) {
            change.touches.add(BlockKind::DirData, self.storage.fsblock(db));
        }
        let (at, (db, offset), ino) = find_in(index, &self.storage, name, hash)?;
        index.kill(at);
        change.touches.log(BlockKind::DirLeaf, *fsblock, leaf_chunks(at..at + 1, self.storage.sizes));
        let block = self.storage.block(db);
        let removed = block.remove(offset);
        change.touches.scan(block.take_scanned());
        change.touches.log(BlockKind::DirData, block.fsblock, removed);
        bests[db] = block.longest();
        if block.is_empty() {
            self.storage.shrink_data(db, change);
            bests[db] = NO_BLOCK;
            while bests.last() == Some(&NO_BLOCK) {
                bests.pop();
            }
        }
        self.leaf_to_block(change);
        Some(ino)
    }

    /// `xfs_dir2_leaf_to_block`, if one block is left and has room for the index.
    pub(super) fn leaf_to_block(&mut self, change: &mut Change<'_>) {
        let Body::Leaf { index, .. } = &mut self.body else { unreachable!() };
        let need = BLOCK_TAIL + HASH_ENTRY * index.live();
        let [Some(block)] = self.storage.data.as_mut_slice() else { return };
        if block.tail().is_none_or(|tail| usize::from(tail.len) < need) {
            return;
        }
        block.move_end(self.storage.sizes.bytes() - need);
        index.compact();
        let index = std::mem::take(index);
        let logged = chunks(0..DATA_HEADER) | block_chunks(&index, 0..index.len(), self.storage.sizes);
        change.touches.log(BlockKind::DirData, block.fsblock, logged);
        self.storage.shrink(LEAF_OFFSET, 0, change);
        self.body = Body::Block(index);
        self.block_to_short(change);
    }

    // Node form

    /// `xfs_dir2_leaf_to_node`.
    pub(super) fn leaf_to_node(&mut self, change: &mut Change<'_>) -> Result<(), NoSpace> {
        let Body::Leaf { fsblock, index, bests } = &mut self.body else { unreachable!() };
        let free = self.storage.grow(FREE_OFFSET, 0, change)?;
        change.touches.log(BlockKind::DirFree, free, chunks(0..LEAF_HEADER + BEST * bests.len()));
        let (index, bests) = (std::mem::take(index), std::mem::take(bests));
        self.body = Body::Node(NodeIndex::new(*fsblock, index, free, bests, self.storage.sizes));
        Ok(())
    }

    /// `xfs_dir2_node_to_leaf`, if one index block is left and has room for the free space values.
    pub(super) fn node_to_leaf(&mut self, change: &mut Change<'_>) {
        let Body::Node(node) = &mut self.body else { unreachable!() };
        node.trim_free(&mut self.storage, change);
        let Some((live, bests)) = node.only_blocks() else { return };
        if leaf_size(live, bests) > self.storage.sizes.bytes() {
            return;
        }
        let (fsblock, index, bests) = node.take_only_blocks();
        self.storage.shrink(FREE_OFFSET, 0, change);
        change.touches.log(BlockKind::DirLeaf, fsblock, leaf_chunks(0..index.len(), self.storage.sizes));
        self.body = Body::Leaf { fsblock, index, bests };
        self.leaf_to_block(change);
    }
}

fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// `xfs_dir3_leaf_size`.
fn leaf_size(entries: usize, bests: usize) -> usize {
    LEAF_HEADER + HASH_ENTRY * entries + BEST * bests + LEAF_TAIL
}

/// Index in the hash index, place and inode number of a name.
pub(super) fn find_in(
    index: &HashEntries,
    storage: &Storage,
    name: &[u8],
    hash: u32,
) -> Option<(usize, (usize, usize), u64)> {
    index
        .same_hash(index.search(hash), hash)
        .find_map(|(at, db, offset)| storage.matches(db, offset, name).map(|ino| (at, (db, offset), ino)))
}

/// The data block for a new entry in leaf form: that of a name with the same hash, else the first with room, else the
/// first missing one.
fn leaf_choose(index: &HashEntries, bests: &[u16], at: usize, hash: u32, size: u16) -> Option<usize> {
    let roomy = |&db: &usize| bests[db] != NO_BLOCK && bests[db] >= size;
    let same = index.same_hash(at, hash).map(|(_, db, _)| db).find(roomy);
    let missing = || bests.iter().position(|&best| best == NO_BLOCK);
    same.or_else(|| (0..bests.len()).find(roomy)).or_else(missing)
}

/// `xfs_dir2_block_addname`; false when the block has no room for entry and index entry.
pub(super) fn block_add(
    storage: &mut Storage,
    index: &mut HashEntries,
    name: &[u8],
    hash: u32,
    ino: u64,
    touches: &mut Touches,
) -> bool {
    let sizes = storage.sizes;
    let block = storage.block(0);
    touches.add(BlockKind::DirBlock, block.fsblock);
    let size = entry_size(name.len());
    let mut at = index.search(hash);
    let Some(need) = block_need_space(block, index, size) else { return false };
    match need {
        BlockSpace::Compact(_) => {
            at = index.compact_but_one(at);
            block.move_end(sizes.bytes() - BLOCK_TAIL - HASH_ENTRY * index.len());
        }
        BlockSpace::Free(_) if index.stale() == 0 => block.move_end(block.end() - HASH_ENTRY),
        BlockSpace::Free(_) => {}
    }
    let (BlockSpace::Free(offset) | BlockSpace::Compact(offset)) = need;
    let added = block.add(offset, name, ino);
    touches.scan(block.take_scanned());
    let stale = index.stale() > 0;
    let moved = index.insert(at, HashEntry::new(hash, 0, offset));
    let changed = if stale { moved } else { 0..at + 1 };
    touches.shift(changed.len());
    let entries = block_chunks(index, changed, sizes);
    touches.log(BlockKind::DirBlock, block.fsblock, added | entries);
    true
}

/// What is logged of the block of a hash index: its header, these entries, and the longest runs at its end.
fn leaf_chunks(entries: Range<usize>, sizes: DirGeometry) -> Chunks {
    index_chunks(entries) | chunks(sizes.bytes() - LEAF_TAIL..sizes.bytes())
}

/// What is logged of the index of a block-form directory, which grows downwards: these entries, and their numbers at the end.
pub(super) fn block_chunks(index: &HashEntries, entries: Range<usize>, sizes: DirGeometry) -> Chunks {
    let tail = sizes.bytes() - BLOCK_TAIL;
    let place = |entry| tail - HASH_ENTRY * (index.len() - entry);
    chunks(place(entries.start)..place(entries.end)) | chunks(tail..sizes.bytes())
}

enum BlockSpace {
    /// The free run at this offset will do.
    Free(usize),
    /// It will do after stale index entries have been dropped.
    Compact(usize),
}

/// `xfs_dir2_block_need_space`.
fn block_need_space(block: &DataBlock, index: &HashEntries, size: usize) -> Option<BlockSpace> {
    let fits = |run: &FreeRun, need: usize| (usize::from(run.len) >= need).then_some(usize::from(run.offset));
    let [best, second, _] = block.best();
    if index.stale() > 0 {
        if let Some(offset) = fits(best, size) {
            return Some(BlockSpace::Free(offset));
        }
        let dropped = HASH_ENTRY * (index.stale() - 1);
        let tail = block.tail();
        let room = dropped + tail.map_or(0, |run| run.len.into());
        let offset = tail.map_or(block.end(), |run| run.offset.into());
        return (room >= size).then_some(BlockSpace::Compact(offset));
    }
    let tail = block.tail()?;
    if *best != tail {
        return fits(best, size).map(BlockSpace::Free);
    }
    fits(best, size + HASH_ENTRY).or_else(|| fits(second, size)).map(BlockSpace::Free)
}
