//! Inodes of an allocation group (`xfs_ialloc.c`): chunks of 64 in the inobt, those with a free one also in the finobt.

use super::ag::AllocGroup;
use super::free_space::{Extent, FreeSpace, Request};
use super::geometry::{BLOCKS_PER_CHUNK, BLOCKS_PER_CLUSTER, INODES_PER_CHUNK, INODE_ALIGNMENT, INOPBLOG};
use super::touch::{BlockKind, Touches};
use crate::structures::btree::{BTree, BlockId, BlockSource, Limits, Record, Touch};

/// Capacities of inobt and finobt blocks: 16-byte records, 4-byte keys and pointers.
pub const INOBT: Limits = Limits::from_sizes(4096, 56, 16, 4, 4);
/// Inodes that one bit of a holemask stands for (`XFS_INODES_PER_HOLEMASK_BIT`).
const INODES_PER_HOLEMASK_BIT: u32 = 4;
const ALL_FREE: u64 = u64::MAX;

/// A record of the inobt: 64 inodes, or a part of them where the rest is a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeChunk {
    /// First inode in the group, a multiple of 64.
    pub startino: u32,
    /// One bit for each four inodes that do not exist.
    pub holemask: u16,
    /// Inodes that exist.
    pub count: u8,
    /// Inodes that exist and are not in use.
    pub freecount: u8,
    /// One bit for each inode not in use; holes count as not in use.
    pub free: u64,
    /// One bit for each inode that was ever in use. Not on disk: the inode cache knows such inodes.
    pub used: u64,
}

impl Record for InodeChunk {
    type Key = u32;
    fn key(&self) -> u32 {
        self.startino
    }
}

impl InodeChunk {
    /// A whole free chunk.
    pub fn whole(startino: u32) -> Self {
        let count = INODES_PER_CHUNK as u8;
        Self { startino, holemask: 0, count, freecount: count, free: ALL_FREE, used: 0 }
    }

    /// One free cluster whose first block is `agbno` (`xfs_align_sparse_ino`).
    fn cluster(agbno: u32) -> Self {
        let offset = (agbno % INODE_ALIGNMENT) << INOPBLOG;
        let count = BLOCKS_PER_CLUSTER << INOPBLOG;
        let bits = ((1u32 << (count / INODES_PER_HOLEMASK_BIT)) - 1) << (offset / INODES_PER_HOLEMASK_BIT);
        let (holemask, count) = (!(bits as u16), count as u8);
        Self { startino: (agbno << INOPBLOG) - offset, holemask, count, freecount: count, free: ALL_FREE, used: 0 }
    }

    /// Joins two parts of the same chunk (`__xfs_inobt_rec_merge`).
    fn merged(self, other: Self) -> Self {
        Self {
            holemask: self.holemask & other.holemask,
            count: self.count + other.count,
            freecount: self.freecount + other.freecount,
            free: self.free & other.free,
            ..self
        }
    }

    /// Inodes that exist, as bits (`xfs_inobt_irec_to_allocmask`).
    pub fn existing(&self) -> u64 {
        (0..16).filter(|bit| self.holemask >> bit & 1 == 0).map(|bit| 0xf << (4 * bit)).sum()
    }

    /// `xfs_inobt_first_free_inode`.
    fn first_free(&self) -> u32 {
        let holes = if self.holemask == 0 { 0 } else { !self.existing() };
        (self.free & !holes).trailing_zeros()
    }

    /// Runs of blocks of the chunk, without holes (`xfs_difree_inode_chunk`).
    pub fn extents(&self) -> impl Iterator<Item = Extent> {
        let agbno = self.startino >> INOPBLOG;
        let mask = self.existing();
        let per_cluster = BLOCKS_PER_CLUSTER << INOPBLOG;
        let whole = (self.holemask == 0).then_some(Extent { start: agbno, len: BLOCKS_PER_CHUNK });
        let parts = (0..INODES_PER_CHUNK / per_cluster)
            .filter(move |part| whole.is_none() && mask >> (part * per_cluster) & 1 == 1)
            .map(move |part| Extent { start: agbno + part * BLOCKS_PER_CLUSTER, len: BLOCKS_PER_CLUSTER });
        whole.into_iter().chain(parts)
    }
}

/// The blocks of an inode tree: next to the block that is split, anywhere in the group.
struct TreeBlocks<'a> {
    space: &'a mut FreeSpace,
    touches: &'a mut Touches,
    metadata: bool,
}

impl BlockSource for TreeBlocks<'_> {
    fn alloc(&mut self, near: BlockId) -> BlockId {
        let request = Request { metadata: self.metadata, ..Request::of(1) };
        let block = self.space.alloc_near(near as u32, &request, self.touches).expect("minleft was kept free");
        if self.metadata {
            self.space.use_reservation(true);
        }
        block.into()
    }

    fn free(&mut self, block: BlockId) {
        self.space.free(Extent { start: block as u32, len: 1 }, self.touches);
        if self.metadata {
            self.space.use_reservation(false);
        }
    }
}

/// An inode taken from a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) agino: u32,
    pub(super) recycled: bool,
}

impl AllocGroup {
    /// `xfs_dialloc_good_ag`: whether the group has a free inode or may get a chunk. `strict` is the first pass.
    pub(super) fn good_for_inode(&self, strict: bool, ok_alloc: bool) -> bool {
        if self.freecount > 0 || !ok_alloc {
            return self.freecount > 0;
        }
        let need = BLOCKS_PER_CLUSTER + if strict { INODE_ALIGNMENT } else { 0 };
        let longest = match self.space.longest() {
            0 => u32::from(self.space.agfl_count() > 0),
            longest => longest,
        };
        self.space.free_blocks() > need && longest >= need
    }

    /// `xfs_ialloc_ag_alloc`: a chunk behind the last one, else near the inobt root, else a sparse one.
    pub(super) fn alloc_chunk(&mut self, touches: &mut Touches) -> bool {
        let Some(chunk) = self.alloc_whole_chunk(touches).or_else(|| self.alloc_cluster(touches)) else {
            return false;
        };
        self.add_chunk(chunk, touches);
        true
    }

    /// `xfs_dialloc_ag`: the lowest free inode of the chunk nearest to `parent`, an inode of this group, else of the
    /// newest chunk.
    pub(super) fn dialloc(&mut self, parent: Option<u32>, touches: &mut Touches) -> Taken {
        let chunk = match parent {
            Some(agino) => self.nearest_free_chunk(agino),
            None => self.newest_free_chunk(),
        };
        self.take_inode(chunk.startino, touches)
    }

    /// `xfs_difree`: marks an inode free; a chunk with no inode in use is given back. True if that happened.
    pub(super) fn difree(&mut self, agino: u32, touches: &mut Touches) -> bool {
        let old = self.inobt.floor(&agino).expect("an inode in use is in a chunk");
        let bit = 1 << (agino - old.startino);
        debug_assert!(old.free & bit == 0, "AG {} inode {agino} freed twice", self.agno);
        let chunk = InodeChunk { free: old.free | bit, freecount: old.freecount + 1, ..old };
        if chunk.free == ALL_FREE {
            self.remove_chunk(&old, touches);
            return true;
        }
        touches.add_tree(BlockKind::Inobt, self.base, &self.inobt.update(&chunk.startino, chunk));
        self.freecount += 1;
        if old.freecount > 0 {
            touches.add_tree(BlockKind::Finobt, self.base, &self.finobt.update(&chunk.startino, chunk));
        } else {
            self.change_tree(true, touches, |tree, blocks| tree.insert(chunk, blocks));
        }
        false
    }

    /// Takes the blocks of the root chunk in a fresh group.
    pub(super) fn take_root_blocks(&mut self, blocks: Extent, touches: &mut Touches) {
        let taken = self.space.alloc_exact(blocks.start, &Request::of(blocks.len), touches);
        debug_assert!(taken, "a fresh group has room for the root chunk");
    }

    /// Enters a new chunk into both trees, joined with the other part if there is one.
    pub(super) fn add_chunk(&mut self, chunk: InodeChunk, touches: &mut Touches) {
        let startino = chunk.startino;
        let joined = match self.inobt.get(&startino) {
            Some(old) => {
                let joined = old.merged(chunk);
                touches.add_tree(BlockKind::Inobt, self.base, &self.inobt.update(&startino, joined));
                joined
            }
            None => {
                self.change_tree(false, touches, |tree, blocks| tree.insert(chunk, blocks));
                chunk
            }
        };
        if self.finobt.get(&startino).is_some() {
            touches.add_tree(BlockKind::Finobt, self.base, &self.finobt.update(&startino, joined));
        } else {
            self.change_tree(true, touches, |tree, blocks| tree.insert(joined, blocks));
        }
        self.count += u64::from(chunk.count);
        self.freecount += u64::from(chunk.count);
        self.newino = Some(startino);
    }

    /// Takes the lowest free inode of a chunk.
    pub(super) fn take_inode(&mut self, startino: u32, touches: &mut Touches) -> Taken {
        let old = self.inobt.get(&startino).expect("every finobt record is in the inobt");
        let bit = old.first_free();
        let mask = 1u64 << bit;
        let chunk = InodeChunk { free: old.free & !mask, freecount: old.freecount - 1, used: old.used | mask, ..old };
        if chunk.freecount > 0 {
            touches.add_tree(BlockKind::Finobt, self.base, &self.finobt.update(&startino, chunk));
        } else {
            self.change_tree(true, touches, |tree, blocks| tree.delete(&startino, blocks));
        }
        touches.add_tree(BlockKind::Inobt, self.base, &self.inobt.update(&startino, chunk));
        self.freecount -= 1;
        Taken { agino: startino + bit, recycled: old.used & mask != 0 }
    }

    pub(super) fn check_inodes(&self) -> Result<(), String> {
        self.inobt.check().map_err(|e| format!("inobt: {e}"))?;
        self.finobt.check().map_err(|e| format!("finobt: {e}"))?;
        let free = self.inobt.iter().filter(|chunk| chunk.freecount > 0);
        if !free.map(|c| (c.startino, c.free)).eq(self.finobt.iter().map(|c| (c.startino, c.free))) {
            return Err("finobt does not hold the chunks with a free inode".into());
        }
        for chunk in self.inobt.iter() {
            let free = (chunk.free & chunk.existing()).count_ones();
            if free != u32::from(chunk.freecount) || chunk.existing().count_ones() != u32::from(chunk.count) {
                return Err(format!("inode chunk {}: counts do not fit the masks", chunk.startino));
            }
        }
        let sum = |f: fn(&InodeChunk) -> u8| self.inobt.iter().map(|c| u64::from(f(c))).sum::<u64>();
        if (sum(|c| c.count), sum(|c| c.freecount)) != (self.count, self.freecount) {
            return Err("inode counts of the AGI are wrong".into());
        }
        Ok(())
    }

    fn alloc_whole_chunk(&mut self, touches: &mut Touches) -> Option<InodeChunk> {
        let exact = Request {
            minalignslop: INODE_ALIGNMENT - 1,
            minleft: self.inobt_maxlevels,
            ..Request::of(BLOCKS_PER_CHUNK)
        };
        if let Some(behind) = self.newino.map(|newino| (newino >> INOPBLOG) + BLOCKS_PER_CHUNK) {
            if behind < self.length && self.space.alloc_exact(behind, &exact, touches) {
                return Some(InodeChunk::whole(behind << INOPBLOG));
            }
        }
        let aligned = Request { alignment: INODE_ALIGNMENT, minalignslop: 0, ..exact };
        let agbno = self.space.alloc_near(self.inobt.root() as u32, &aligned, touches)?;
        Some(InodeChunk::whole(agbno << INOPBLOG))
    }

    fn alloc_cluster(&mut self, touches: &mut Touches) -> Option<InodeChunk> {
        let request = Request {
            alignment: BLOCKS_PER_CLUSTER,
            minleft: self.inobt_maxlevels,
            range: (INODE_ALIGNMENT, self.last_chunk),
            ..Request::of(BLOCKS_PER_CLUSTER)
        };
        let agbno = self.space.alloc_near(self.inobt.root() as u32, &request, touches)?;
        Some(InodeChunk::cluster(agbno))
    }

    /// `xfs_dialloc_ag_finobt_near`.
    fn nearest_free_chunk(&self, agino: u32) -> InodeChunk {
        let left = self.finobt.floor(&agino);
        let right = || self.finobt.ceil(&(agino + 1));
        match left {
            Some(left) if agino < left.startino + INODES_PER_CHUNK => left,
            Some(left) => match right() {
                Some(right) if agino - left.startino + INODES_PER_CHUNK - 1 > right.startino - agino => right,
                _ => left,
            },
            None => right().expect("the group has a free inode"),
        }
    }

    /// `xfs_dialloc_ag_finobt_newino`.
    fn newest_free_chunk(&self) -> InodeChunk {
        self.newino
            .and_then(|newino| self.finobt.get(&newino))
            .or_else(|| self.finobt.first())
            .expect("the group has a free inode")
    }

    fn remove_chunk(&mut self, old: &InodeChunk, touches: &mut Touches) {
        let startino = old.startino;
        self.change_tree(false, touches, |tree, blocks| tree.delete(&startino, blocks));
        if old.freecount > 0 {
            self.change_tree(true, touches, |tree, blocks| tree.delete(&startino, blocks));
        }
        self.count -= u64::from(old.count);
        self.freecount -= u64::from(old.freecount);
        for extent in old.extents() {
            self.space.free(extent, touches);
        }
    }

    /// Inserts into or deletes from one of the inode trees, with blocks from this group.
    fn change_tree<F>(&mut self, finobt: bool, touches: &mut Touches, change: F)
    where
        F: FnOnce(&mut BTree<InodeChunk>, &mut TreeBlocks<'_>) -> Touch,
    {
        let (tree, kind) = match finobt {
            true => (&mut self.finobt, BlockKind::Finobt),
            false => (&mut self.inobt, BlockKind::Inobt),
        };
        touches.add(kind, self.base + tree.root());
        let mut blocks = TreeBlocks { space: &mut self.space, touches, metadata: finobt };
        let touch = change(tree, &mut blocks);
        touches.add_tree(kind, self.base, &touch);
    }
}
