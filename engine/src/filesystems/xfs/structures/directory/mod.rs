//! A directory (`xfs_dir2*.c`): shortform in the inode, then one block, then blocks with one hash index block
//! ("leaf"), then blocks with a hash tree and a free space index ("node"); and back when it empties.

pub mod checked;
pub mod data;
mod forms;
mod free;
pub mod geometry;
pub mod hash;
mod node;
mod short;
mod storage;

use super::bmap::{BlockMap, Change, DATA_FORK_SIZE, ROOT_FORK_SIZE};
use super::groups::{Groups, NoSpace};
use super::touch::{BlockKind, Touches};
use data::DataBlock;
use forms::{block_add, block_chunks, find_in};
use geometry::DirGeometry;
use hash::{name_hash, HashEntries, HashEntry};
use node::NodeIndex;
use short::ShortForm;
use storage::Storage;

/// Bytes of a shortform entry with a name of one letter; spares the count of a block that cannot fit the inode.
const SHORTEST_ENTRY: usize = 9;

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
    /// All blocks of the filesystem (`core.nblocks`).
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
    Leaf {
        fsblock: u64,
        index: HashEntries,
        bests: Vec<u16>,
    },
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
    /// Links to it: its name, its `.`, and the `..` of each directory in it.
    pub(super) links: u32,
}

impl Directory {
    /// An empty directory in inode `ino`, which is in filesystem block `inode_block` and has a data fork of
    /// `fork_size` bytes.
    pub fn new(ino: u64, parent: u64, inode_block: u64, fork_size: usize, sizes: DirGeometry) -> Self {
        let storage = Storage { sizes, inode_block, map: BlockMap::new(fork_size), data: Vec::new() };
        Self { ino, storage, body: Body::Short(ShortForm::new(parent)), names: 0, links: 2 }
    }

    /// How many names it has.
    pub fn names(&self) -> u32 {
        self.names
    }

    /// How many links to it there are (`di_nlink`).
    pub fn links(&self) -> u32 {
        self.links
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

    /// How many names a search for this one passes by in the inode (`xfs_dir2_sf_lookup`): those before it, or all. In other forms none.
    pub fn passed_by(&self, name: &[u8]) -> u32 {
        match &self.body {
            Body::Short(short) => short.entries().take_while(|(_, other, _)| *other != name).count() as u32,
            _ => 0,
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

    /// Each data block, and how many names it has besides `.` and `..`.
    pub fn names_by_block(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let is_name = |block: &DataBlock, at: usize| !matches!(block.entry(at).0, b"." | b"..");
        self.storage
            .data
            .iter()
            .flatten()
            .map(move |block| (block.fsblock, block.entries().filter(|&at| is_name(block, at)).count() as u32))
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
            _ => (self.storage.data.len() * self.storage.sizes.bytes()) as u64,
        };
        let extents = self.storage.map.extents();
        let blocks = (data + index + free) * self.storage.sizes.blocks as usize + map;
        DirBlocks { size, blocks, data, index, free, extents, map }
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
        self.change(groups, |dir, change| dir.add_name(name, name_hash(name), ino, change)).map(|((), touch)| {
            self.names += 1;
            touch
        })
    }

    /// Removes a name (`xfs_dir_removename`): the inode it stood for, if it was there.
    pub fn remove(&mut self, name: &[u8], groups: &mut Groups) -> Option<(u64, DirTouch)> {
        let removed =
            self.change(groups, |dir, change| dir.remove_name(name, name_hash(name), change).ok_or(NoSpace)).ok();
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
        if indexed.into_iter().eq(present) {
            Ok(())
        } else {
            Err(place("index and entries differ".into()))
        }
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
            total: self.storage.sizes.enter_blocks(),
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
            if short.add(name, ino, self.storage.map.fork_size(), self.storage.sizes.bytes()) {
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
                let block = self.storage.block(0);
                let removed = block.remove(offset.1);
                change.touches.scan(block.take_scanned());
                index.kill(at);
                let logged = removed | block_chunks(index, at..at + 1, self.storage.sizes);
                change.touches.log(BlockKind::DirBlock, self.storage.fsblock(0), logged);
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
}
