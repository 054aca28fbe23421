//! The free index of a node-form directory (`xfs_dir2_node.c`): of each data block the longest free run, in blocks of their own.

use super::data::DataBlock;
use super::geometry::DirGeometry;
use super::storage::{put, Storage, BEST, FREE_OFFSET, LEAF_HEADER, NO_BLOCK};
use crate::filesystems::xfs::structures::bmap::Change;
use crate::filesystems::xfs::structures::groups::NoSpace;
use crate::filesystems::xfs::structures::touch::{chunks, BlockKind, Chunks, Touches};

/// A block of the free index.
#[derive(Clone, Debug)]
struct FreeBlock {
    fsblock: u64,
    bests: Vec<u16>,
}

/// What the lookup for an insertion saw of the free index: the block that it read last, and a data block with room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    at: usize,
    pub(super) roomy: Option<usize>,
}

impl Looked {
    /// A data block counts only if its entry is in the last leaf with equal hashes.
    pub(super) fn in_an_earlier_leaf(self) -> Self {
        Self { roomy: None, ..self }
    }
}

/// Blocks of the free part of the directory by their place there.
#[derive(Clone, Debug)]
pub(super) struct FreeIndex {
    blocks: Vec<Option<FreeBlock>>,
    /// Data blocks that one of them stands for.
    most: usize,
}

impl FreeIndex {
    /// Of one block.
    pub(super) fn new(fsblock: u64, bests: Vec<u16>, sizes: DirGeometry) -> Self {
        Self { blocks: vec![Some(FreeBlock { fsblock, bests })], most: sizes.bests() }
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.iter().flatten().count()
    }

    /// Reads the block that stands for data block `db`.
    pub(super) fn touch(&self, db: usize, touches: &mut Touches) {
        touches.add(BlockKind::DirFree, self.block(db / self.most).fsblock);
    }

    /// Looks whether data block `db` has room for `size` bytes.
    pub(super) fn look(&self, db: usize, size: u16, touches: &mut Touches) -> Looked {
        self.touch(db, touches);
        let at = db / self.most;
        Looked { at, roomy: (self.block(at).bests[db % self.most] >= size).then_some(db) }
    }

    /// `xfs_dir2_node_find_freeblk`: the last data block with room. The free index block that the lookup already
    /// looked at is left out, which is why equal hashes make a directory grow.
    pub(super) fn find_data_block(&self, looked: Option<Looked>, size: u16, touches: &mut Touches) -> Option<usize> {
        if let Some(Looked { roomy: Some(db), .. }) = looked {
            return Some(db);
        }
        let skip = looked.map(|seen| seen.at);
        let blocks = self.blocks.iter().enumerate().rev().filter(|(at, _)| Some(*at) != skip);
        for (at, block) in blocks.filter_map(|(at, block)| Some((at, block.as_ref()?))) {
            touches.add(BlockKind::DirFree, block.fsblock);
            if let Some(i) = block.bests.iter().rposition(|&best| best != NO_BLOCK && best >= size) {
                return Some(at * self.most + i);
            }
        }
        None
    }

    /// `xfs_dir2_node_add_datablk`.
    pub(super) fn add_data_block(&mut self, storage: &mut Storage, change: &mut Change<'_>) -> Result<usize, NoSpace> {
        let db = storage.grow_data(change)?;
        let at = db / self.most;
        if self.blocks.get(at).is_none_or(Option::is_none) {
            let fsblock = storage.grow(FREE_OFFSET, at, change)?;
            put(&mut self.blocks, at, FreeBlock { fsblock, bests: Vec::new() });
        }
        self.touch(db, change.touches);
        Ok(db)
    }

    /// The longest free run of data block `db` is `best` now. Only what differs is logged (`xfs_dir2_free_log_bests`), and the header if there
    /// are more.
    pub(super) fn set(&mut self, db: usize, best: u16, touches: &mut Touches) {
        let (at, i) = (db / self.most, db % self.most);
        let bests = self.bests(at);
        let mut logged = Chunks::NONE;
        if i >= bests.len() {
            bests.resize(i + 1, NO_BLOCK);
            logged |= chunks(0..LEAF_HEADER);
        }
        if std::mem::replace(&mut bests[i], best) != best {
            logged |= chunks(LEAF_HEADER + BEST * i..LEAF_HEADER + BEST * (i + 1));
        }
        touches.log(BlockKind::DirFree, self.block(at).fsblock, logged);
    }

    /// `xfs_dir3_data_block_free`: the data block is gone; an unused free index block goes with it.
    pub(super) fn drop(&mut self, db: usize, storage: &mut Storage, change: &mut Change<'_>) {
        self.set(db, NO_BLOCK, change.touches);
        let at = db / self.most;
        change.touches.log(BlockKind::DirFree, self.block(at).fsblock, chunks(0..LEAF_HEADER));
        let bests = self.bests(at);
        while bests.last() == Some(&NO_BLOCK) {
            bests.pop();
        }
        if is_unused(&self.blocks[at]) {
            storage.shrink(FREE_OFFSET, at, change);
            self.blocks[at] = None;
            while self.blocks.last().is_some_and(Option::is_none) {
                self.blocks.pop();
            }
        }
    }

    /// Drops empty blocks at the end.
    pub(super) fn trim(&mut self, storage: &mut Storage, change: &mut Change<'_>) {
        while self.blocks.len() > 1 && self.blocks.last().is_some_and(is_unused) {
            if self.blocks.pop().flatten().is_some() {
                storage.shrink(FREE_OFFSET, self.blocks.len(), change);
            }
        }
    }

    /// The number of values, if there is one block.
    pub(super) fn only_block(&self) -> Option<usize> {
        match self.blocks.as_slice() {
            [Some(free)] => Some(free.bests.len()),
            _ => None,
        }
    }

    /// Takes the values of the only block.
    pub(super) fn take_only_block(&mut self) -> Vec<u16> {
        self.blocks[0].take().map(|free| free.bests).unwrap_or_default()
    }

    /// Compares it with the data blocks.
    pub(super) fn check(&self, data: &[Option<DataBlock>]) -> Result<(), String> {
        let known = |db: usize| {
            let block = self.blocks.get(db / self.most)?.as_ref()?;
            block.bests.get(db % self.most).copied().filter(|&best| best != NO_BLOCK)
        };
        let wrong = (0..data.len()).find(|&db| data[db].as_ref().map(DataBlock::longest) != known(db));
        wrong.map_or(Ok(()), |db| Err(format!("free index is wrong for data block {db}")))
    }

    fn block(&self, at: usize) -> &FreeBlock {
        self.blocks[at].as_ref().expect("a mapped free index block")
    }

    fn bests(&mut self, at: usize) -> &mut Vec<u16> {
        &mut self.blocks[at].as_mut().expect("a mapped free index block").bests
    }
}

fn is_unused(block: &Option<FreeBlock>) -> bool {
    block.as_ref().is_none_or(|free| free.bests.iter().all(|&best| best == NO_BLOCK))
}
