//! The data blocks of a directory with more than its inode, where they are, and what all forms of its index have in common.

use super::data::DataBlock;
use super::geometry::DirGeometry;
use crate::filesystems::xfs::structures::bmap::{BlockMap, Change};
use crate::filesystems::xfs::structures::groups::NoSpace;
use crate::filesystems::xfs::structures::touch::{chunks, BlockKind, Chunks, Touches};
use std::ops::Range;

/// File offsets, in blocks, of the three parts of a directory (`XFS_DIR2_SPACE_SIZE`, 32 GiB each).
pub(super) const LEAF_OFFSET: u32 = 8_388_608;
pub(super) const FREE_OFFSET: u32 = 2 * LEAF_OFFSET;
/// Header of a hash index block.
pub(super) const LEAF_HEADER: usize = 64;
/// Bytes of a hash entry.
pub(super) const HASH_ENTRY: usize = 8;
/// Bytes of a free space value.
pub(super) const BEST: usize = 2;
/// A data block that does not exist (`NULLDATAOFF`).
pub(super) const NO_BLOCK: u16 = u16::MAX;

/// The directory's data blocks and where they are.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) sizes: DirGeometry,
    pub(super) inode_block: u64,
    pub(super) map: BlockMap,
    pub(super) data: Vec<Option<DataBlock>>,
}

impl Storage {
    /// `xfs_dir2_grow_inode` for the data part: a block in the first hole.
    pub(super) fn grow_data(&mut self, change: &mut Change<'_>) -> Result<usize, NoSpace> {
        let db = first_hole(&self.data);
        let fsblock = self.grow(0, db, change)?;
        let bytes = self.sizes.bytes();
        put(&mut self.data, db, DataBlock::new(fsblock, bytes, bytes));
        Ok(db)
    }

    /// The `nth` block of the part that begins at `part` (`xfs_da_grow_inode_int`).
    pub(super) fn grow(&mut self, part: u32, nth: usize, change: &mut Change<'_>) -> Result<u64, NoSpace> {
        self.map.grow(self.inode_block, self.sizes.offset(part, nth), self.sizes.blocks, change)
    }

    /// It is given back.
    pub(super) fn shrink(&mut self, part: u32, nth: usize, change: &mut Change<'_>) {
        self.map.shrink(self.sizes.offset(part, nth), self.sizes.blocks, change);
    }

    /// `xfs_dir2_shrink_inode` for the data part.
    pub(super) fn shrink_data(&mut self, db: usize, change: &mut Change<'_>) {
        self.shrink(0, db, change);
        self.data[db] = None;
        while self.data.last().is_some_and(Option::is_none) {
            self.data.pop();
        }
    }

    pub(super) fn block(&mut self, db: usize) -> &mut DataBlock {
        self.data[db].as_mut().expect("a mapped data block")
    }

    /// Puts an entry at the start of the largest free run of block `db`.
    pub(super) fn add_entry(&mut self, db: usize, name: &[u8], ino: u64, touches: &mut Touches) -> usize {
        let block = self.block(db);
        let offset = block.best()[0].offset.into();
        let chunks = block.add(offset, name, ino);
        touches.scan(block.take_scanned());
        touches.log(BlockKind::DirData, block.fsblock, chunks);
        offset
    }

    /// The inode number of the entry, if it is the one named `name`.
    pub(super) fn matches(&self, db: usize, offset: usize, name: &[u8]) -> Option<u64> {
        let (found, ino) = self.data[db].as_ref()?.entry(offset);
        (found == name).then_some(ino)
    }

    pub(super) fn fsblock(&self, db: usize) -> u64 {
        self.data[db].as_ref().map_or(0, |block| block.fsblock)
    }
}

/// What is logged of the header of an index block, and of these entries.
pub(super) fn index_chunks(entries: Range<usize>) -> Chunks {
    let place = |entry| LEAF_HEADER + HASH_ENTRY * entry;
    chunks(0..LEAF_HEADER) | chunks(place(entries.start)..place(entries.end))
}

pub(super) fn first_hole<T>(blocks: &[Option<T>]) -> usize {
    blocks.iter().position(Option::is_none).unwrap_or(blocks.len())
}

pub(super) fn put<T>(blocks: &mut Vec<Option<T>>, at: usize, block: T) {
    if at == blocks.len() {
        blocks.push(Some(block));
    } else {
        blocks[at] = Some(block);
    }
}
