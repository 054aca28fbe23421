//! A directory (`xfs_dir2*.c`): shortform in the inode, then one block, then blocks with one hash index block
//! ("leaf"), then blocks with a hash tree and a free space index ("node"); and back when it empties.

pub mod data;
mod free;
pub mod hash;
mod node;
mod short;
mod storage;

use super::bmap::{BlockMap, Change, DATA_FORK_SIZE, ROOT_FORK_SIZE};
use data::{entry_size, DataBlock, FreeRun, DATA_HEADER, DIR_BLOCK};
use hash::{name_hash, HashEntries, HashEntry};
use node::NodeIndex;
use short::ShortForm;
use storage::{Storage, FREE_OFFSET, HASH_ENTRY, LEAF_HEADER, LEAF_OFFSET, NO_BLOCK};
use super::groups::{Groups, NoSpace};
use super::touch::{BlockKind, Touches};

/// Count and stale count behind the hash entries of a block-form directory.
const BLOCK_TAIL: usize = 8;
/// Count of free space values at the end of a leaf-form index block.
const LEAF_TAIL: usize = 4;
/// Bytes of a free space value.
const BEST: usize = 2;
/// Bytes of a shortform entry with a name of one letter; spares the count of a block that cannot fit the inode.
const SHORTEST_ENTRY: usize = 9;
/// `XFS_DIRENTER_SPACE_RES`: 7 blocks and 4 levels of map for each.
const ENTER_BLOCKS: u32 = 35;

/// The shape of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirForm {
    /// In the inode; no buffer at all.
    Short,
    /// One block with entries and hash index.
    Block,
    /// Data blocks and one hash index block.
    Leaf,
    /// Data blocks, hash tree, free space index.
    Node,
}

/// What a directory operation did.
#[derive(Clone, Copy, Debug)]
pub struct DirTouch {
    /// The form before.
    pub before: DirForm,
    /// The form after.
    pub after: DirForm,
    /// Directory, map and free space buffers in lock order.
    pub touches: Touches,
    /// Directory and map blocks allocated.
    pub new_blocks: u8,
    /// Directory and map blocks freed.
    pub freed_blocks: u8,
}

/// Counts of a directory, named as `xfs_db` and the structure tables name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirBlocks {
    /// Bytes (`core.size`).
    pub size: u64,
    /// All blocks (`core.nblocks`).
    pub blocks: usize,
    /// Data blocks.
    pub data: usize,
    /// Hash index blocks.
    pub index: usize,
    /// Free space index blocks.
    pub free: usize,
    /// Extents.
    pub extents: usize,
    /// Blocks of the extent map.
    pub map: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Short(ShortForm),
    /// Entries and hash index of the only block.
    Block(HashEntries),
    /// Hash index, and the longest free run of each data block.
    Leaf { fsblock: u64, index: HashEntries, bests: Vec<u16> },
    Node(NodeIndex),
}

/// One directory.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Its inode number.
    pub ino: u64,
    storage: Storage,
    body: Body,
    names: u32,
}

impl Directory {
    /// An empty directory in inode `ino`, which is in filesystem block `inode_block` and has a data fork of
    /// `fork_size` bytes.
    pub fn new(ino: u64, parent: u64, inode_block: u64, fork_size: usize) -> Self {
        let storage = Storage { inode_block, map: BlockMap::new(fork_size), data: Vec::new() };
        Self { ino, storage, body: Body::Short(ShortForm::new(parent)), names: 0 }
    }

    /// How many names it has.
    pub fn names(&self) -> u32 {
        self.names
    }

    /// The form of the directory.
    pub fn form(&self) -> DirForm {
        match self.body {
            Body::Short(_) => DirForm::Short,
            Body::Block(_) => DirForm::Block,
            Body::Leaf { .. } => DirForm::Leaf,
            Body::Node(_) => DirForm::Node,
        }
    }

    /// Filesystem block of the directory's inode.
    pub fn inode_block(&self) -> u64 {
        self.storage.inode_block
    }

    /// Where its blocks are.
    pub fn map(&self) -> &BlockMap {
        &self.storage.map
    }

    /// Block counts.
    pub fn blocks(&self) -> DirBlocks {
        let data = self.storage.data.iter().flatten().count();
        let (index, free) = match &self.body {
            Body::Short(_) | Body::Block(_) => (0, 0),
            Body::Leaf { .. } => (1, 0),
            Body::Node(node) => (node.index_blocks(), node.free_blocks()),
        };
        let map = self.storage.map.tree_blocks();
        let size = match &self.body {
            Body::Short(short) => short.size() as u64,
            _ => (self.storage.data.len() * DIR_BLOCK) as u64,
        };
        let extents = self.storage.map.extents();
        DirBlocks { size, blocks: data + index + free + map, data, index, free, extents, map }
    }

    /// `di_format`: 1 local, 2 extents, 3 B-tree.
    pub fn inode_format(&self) -> u8 {
        match self.body {
            Body::Short(_) => 1,
            _ if self.storage.map.is_tree() => 3,
            _ => 2,
        }
    }

    /// Finds a name (`xfs_dir_lookup`): its inode number, and the buffers read.
    pub fn lookup(&self, name: &[u8]) -> (Option<u64>, Touches) {
        let mut touches = Touches::default();
        let found = self.find(name, &mut touches);
        (found, touches)
    }

    /// Adds a name that is not there (`xfs_dir_createname`).
    pub fn add(&mut self, name: &[u8], ino: u64, groups: &mut Groups) -> Result<DirTouch, NoSpace> {
        self.change(groups, |dir, change| dir.add_name(name, name_hash(name), ino, change))
            .map(|((), touch)| {
                self.names += 1;
                touch
            })
    }

    /// Removes a name (`xfs_dir_removename`): the inode it stood for, if it was there.
    pub fn remove(&mut self, name: &[u8], groups: &mut Groups) -> Option<(u64, DirTouch)> {
        let removed = self.change(groups, |dir, change| dir.remove_name(name, name_hash(name), change).ok_or(NoSpace)).ok();
        self.names -= u32::from(removed.is_some());
        removed
    }

    /// Checks all blocks and that the hash index and the entries agree.
    pub fn check(&self) -> Result<(), String> {
        let place = |e: String| format!("directory {}: {e}", self.ino);
        self.storage.map.check().map_err(place)?;
        for block in self.storage.data.iter().flatten() {
            block.check().map_err(place)?;
        }
        let mut indexed: Vec<HashEntry> = match &self.body {
            Body::Short(_) => return Ok(()),
            Body::Block(index) | Body::Leaf { index, .. } => index.all().to_vec(),
            Body::Node(node) => {
                node.check().map_err(place)?;
                node.check_bests(&self.storage.data).map_err(place)?;
                node.entries().copied().collect()
            }
        };
        if indexed.windows(2).any(|pair| pair[0].hash > pair[1].hash) {
            return Err(place("hash index is not in order".into()));
        }
        indexed.retain(|entry| entry.place().is_some());
        indexed.sort_unstable_by_key(|entry| entry.address);
        let entries = self.storage.data.iter().enumerate().filter_map(|(db, block)| Some((db, block.as_ref()?)));
        let present = entries.flat_map(|(db, block)| {
            block.entries().map(move |offset| HashEntry::new(name_hash(block.entry(offset).0), db, offset))
        });
        if indexed.into_iter().eq(present) { Ok(()) } else { Err(place("index and entries differ".into())) }
    }

    fn change<T>(
        &mut self,
        groups: &mut Groups,
        operation: impl FnOnce(&mut Self, &mut Change<'_>) -> Result<T, NoSpace>,
    ) -> Result<(T, DirTouch), NoSpace> {
        let before = self.form();
        let mut touches = Touches::default();
        let mut change = Change {
            groups,
            touches: &mut touches,
            total: ENTER_BLOCKS,
            highest_agno: 0,
            new_blocks: 0,
            freed_blocks: 0,
        };
        let result = operation(self, &mut change)?;
        let (new_blocks, freed_blocks) = (change.new_blocks, change.freed_blocks);
        Ok((result, DirTouch { before, after: self.form(), touches, new_blocks, freed_blocks }))
    }

    fn find(&self, name: &[u8], touches: &mut Touches) -> Option<u64> {
        let hash = name_hash(name);
        match &self.body {
            Body::Short(short) => short.lookup(name),
            Body::Block(index) => {
                touches.add(BlockKind::DirBlock, self.storage.fsblock(0));
                let same = index.same_hash(index.search(hash), hash);
                same.into_iter().find_map(|(_, db, offset)| self.storage.matches(db, offset, name))
            }
            Body::Leaf { fsblock, index, .. } => {
                touches.add(BlockKind::DirLeaf, *fsblock);
                index.same_hash(index.search(hash), hash).find_map(|(_, db, offset)| {
                    touches.add(BlockKind::DirData, self.storage.fsblock(db));
                    self.storage.matches(db, offset, name)
                })
            }
            Body::Node(node) => node.lookup(name, hash, &self.storage, touches).map(|found| found.ino),
        }
    }

    fn add_name(&mut self, name: &[u8], hash: u32, ino: u64, change: &mut Change<'_>) -> Result<(), NoSpace> {
        if let Body::Short(short) = &mut self.body {
            if short.add(name, ino, self.storage.map.fork_size()) {
                return Ok(());
            }
            self.short_to_block(change)?;
        }
        if let Body::Block(index) = &mut self.body {
            if block_add(&mut self.storage, index, name, hash, ino, change.touches) {
                return Ok(());
            }
            self.block_to_leaf(change)?;
        }
        if matches!(self.body, Body::Leaf { .. }) {
            if self.leaf_add(name, hash, ino, change)? {
                return Ok(());
            }
            self.leaf_to_node(change)?;
        }
        let Body::Node(node) = &mut self.body else { unreachable!("all smaller forms were tried") };
        node.add(name, hash, ino, &mut self.storage, change)
    }

    fn remove_name(&mut self, name: &[u8], hash: u32, change: &mut Change<'_>) -> Option<u64> {
        match &mut self.body {
            Body::Short(short) => short.remove(name),
            Body::Block(index) => {
                change.touches.add(BlockKind::DirBlock, self.storage.fsblock(0));
                let (at, offset, ino) = find_in(index, &self.storage, name, hash)?;
                self.storage.block(0).remove(offset.1);
                index.kill(at);
                if SHORTEST_ENTRY * (index.live() - 2) < DATA_FORK_SIZE.max(ROOT_FORK_SIZE) {
                    self.block_to_short(change);
                }
                Some(ino)
            }
            Body::Leaf { .. } => self.leaf_remove(name, hash, change),
            Body::Node(node) => {
                let ino = node.remove(name, hash, &mut self.storage, change)?;
                self.node_to_leaf(change);
                Some(ino)
            }
        }
    }

    // Shortform and block form

    /// `xfs_dir2_sf_to_block`: entries keep the offsets that they had reserved.
    fn short_to_block(&mut self, change: &mut Change<'_>) -> Result<(), NoSpace> {
        let Body::Short(short) = &self.body else { unreachable!() };
        let db = self.storage.grow_data(change)?;
        let end = DIR_BLOCK - BLOCK_TAIL - HASH_ENTRY * (short.count() + 2);
        let fsblock = self.storage.fsblock(db);
        change.touches.add(BlockKind::DirBlock, fsblock);
        let mut block = DataBlock::new(fsblock, end);
        let mut index = HashEntries::default();
        let mut at = DATA_HEADER;
        let dots = [(DATA_HEADER, b".".as_slice(), self.ino), (DATA_HEADER + 16, b"..", short.parent())];
        for (offset, name, ino) in dots.into_iter().chain(short.entries()) {
            block.build(at, offset, name, ino);
            index.sort_in(HashEntry::new(name_hash(name), 0, offset));
            at = offset + entry_size(name.len());
        }
        block.finish_building(at);
        self.storage.data[db] = Some(block);
        self.body = Body::Block(index);
        Ok(())
    }

    /// `xfs_dir2_block_to_sf`, if the entries fit into the inode.
    fn block_to_short(&mut self, change: &mut Change<'_>) {
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
    fn block_to_leaf(&mut self, change: &mut Change<'_>) -> Result<(), NoSpace> {
        let Body::Block(index) = &mut self.body else { unreachable!() };
        let fsblock = self.storage.map.grow(self.storage.inode_block, LEAF_OFFSET, change)?;
        change.touches.add(BlockKind::DirLeaf, fsblock);
        let block = self.storage.data[0].as_mut().expect("a block-form directory has one block");
        block.move_end(DIR_BLOCK);
        let bests = vec![block.longest()];
        self.body = Body::Leaf { fsblock, index: std::mem::take(index), bests };
        Ok(())
    }

    /// `xfs_dir2_leaf_addname`; false when the index block is full.
    fn leaf_add(&mut self, name: &[u8], hash: u32, ino: u64, change: &mut Change<'_>) -> Result<bool, NoSpace> {
        let Body::Leaf { fsblock, index, bests } = &mut self.body else { unreachable!() };
        change.touches.add(BlockKind::DirLeaf, *fsblock);
        let mut at = index.search(hash);
        let size = entry_size(name.len()) as u16;
        let candidate = leaf_choose(index, bests, at, hash, size);
        let found = candidate.filter(|&db| bests[db] != NO_BLOCK);
        let need = if index.stale() == 0 { HASH_ENTRY } else { 0 } + if candidate.is_none() { BEST } else { 0 };
        if DIR_BLOCK - leaf_size(index.len(), bests.len()) < need {
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
        index.insert(at, HashEntry::new(hash, db, offset));
        Ok(true)
    }

    /// `xfs_dir2_leaf_removename`.
    fn leaf_remove(&mut self, name: &[u8], hash: u32, change: &mut Change<'_>) -> Option<u64> {
        let Body::Leaf { fsblock, index, bests } = &mut self.body else { unreachable!() };
        change.touches.add(BlockKind::DirLeaf, *fsblock);
        for (_, db, _) in index.same_hash(index.search(hash), hash) {
            change.touches.add(BlockKind::DirData, self.storage.fsblock(db));
        }
        let (at, (db, offset), ino) = find_in(index, &self.storage, name, hash)?;
        index.kill(at);
        let block = self.storage.block(db);
        block.remove(offset);
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
    fn leaf_to_block(&mut self, change: &mut Change<'_>) {
        let Body::Leaf { index, .. } = &mut self.body else { unreachable!() };
        let need = BLOCK_TAIL + HASH_ENTRY * index.live();
        let [Some(block)] = self.storage.data.as_mut_slice() else { return };
        if block.tail().is_none_or(|tail| usize::from(tail.len) < need) {
            return;
        }
        change.touches.add(BlockKind::DirData, block.fsblock);
        block.move_end(DIR_BLOCK - need);
        index.compact();
        let index = std::mem::take(index);
        self.storage.map.shrink(LEAF_OFFSET, change);
        self.body = Body::Block(index);
        self.block_to_short(change);
    }

    // Node form

    /// `xfs_dir2_leaf_to_node`.
    fn leaf_to_node(&mut self, change: &mut Change<'_>) -> Result<(), NoSpace> {
        let Body::Leaf { fsblock, index, bests } = &mut self.body else { unreachable!() };
        let free = self.storage.map.grow(self.storage.inode_block, FREE_OFFSET, change)?;
        change.touches.add(BlockKind::DirFree, free);
        let (index, bests) = (std::mem::take(index), std::mem::take(bests));
        self.body = Body::Node(NodeIndex::new(*fsblock, index, free, bests));
        Ok(())
    }

    /// `xfs_dir2_node_to_leaf`, if one index block is left and has room for the free space values.
    fn node_to_leaf(&mut self, change: &mut Change<'_>) {
        let Body::Node(node) = &mut self.body else { unreachable!() };
        node.trim_free(&mut self.storage, change);
        let Some((live, bests)) = node.only_blocks() else { return };
        if leaf_size(live, bests) > DIR_BLOCK {
            return;
        }
        let (fsblock, index, bests) = node.take_only_blocks();
        self.storage.map.shrink(FREE_OFFSET, change);
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
fn find_in(index: &HashEntries, storage: &Storage, name: &[u8], hash: u32) -> Option<(usize, (usize, usize), u64)> {
    index.same_hash(index.search(hash), hash).find_map(|(at, db, offset)| {
        storage.matches(db, offset, name).map(|ino| (at, (db, offset), ino))
    })
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
fn block_add(
    storage: &mut Storage,
    index: &mut HashEntries,
    name: &[u8],
    hash: u32,
    ino: u64,
    touches: &mut Touches,
) -> bool {
    let block = storage.block(0);
    touches.add(BlockKind::DirBlock, block.fsblock);
    let size = entry_size(name.len());
    let mut at = index.search(hash);
    let Some(need) = block_need_space(block, index, size) else { return false };
    match need {
        BlockSpace::Compact(_) => {
            at = index.compact_but_one(at);
            block.move_end(DIR_BLOCK - BLOCK_TAIL - HASH_ENTRY * index.len());
        }
        BlockSpace::Free(_) if index.stale() == 0 => block.move_end(block.end() - HASH_ENTRY),
        BlockSpace::Free(_) => {}
    }
    let (BlockSpace::Free(offset) | BlockSpace::Compact(offset)) = need;
    block.add(offset, name, ino);
    index.insert(at, HashEntry::new(hash, 0, offset));
    true
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
