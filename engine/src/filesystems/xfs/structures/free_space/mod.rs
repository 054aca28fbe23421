//! The free space of an allocation group (`xfs_alloc.c`): bnobt, cntbt, the AGFL and the reservation for metadata.

use std::collections::VecDeque;

use super::geometry::{BNOBT_ROOT, CNTBT_ROOT};
use super::touch::{BlockKind, Touches};
use crate::structures::btree::{BTree, BlockId, BlockSource, Limits, Record, Touch};

/// Capacities of bnobt and cntbt blocks: 8-byte records and keys, 4-byte pointers.
pub const ALLOCBT: Limits = Limits::from_sizes(4096, 56, 8, 8, 4);

/// A run of blocks in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block in the group.
    pub start: u32,
    /// Number of blocks.
    pub len: u32,
}

impl Extent {
    /// The first block behind it.
    pub fn end(&self) -> u32 {
        self.start + self.len
    }
}

#[derive(Clone, Copy, Debug)]
struct ByBlock(Extent);

impl Record for ByBlock {
    type Key = u32;
    fn key(&self) -> u32 {
        self.0.start
    }
}

#[derive(Clone, Copy, Debug)]
struct BySize(Extent);

impl Record for BySize {
    type Key = (u32, u32);
    fn key(&self) -> (u32, u32) {
        (self.0.len, self.0.start)
    }
}

/// The AGFL: the only place that the free space trees take blocks from and give blocks to.
#[derive(Clone, Debug, Default)]
struct FreeList(VecDeque<u32>);

impl BlockSource for FreeList {
    fn alloc(&mut self, _near: BlockId) -> BlockId {
        BlockId::from(self.0.pop_front().expect("xfs_alloc_fix_freelist filled the AGFL"))
    }
    fn free(&mut self, block: BlockId) {
        self.0.push_back(block as u32);
    }
}

/// What an allocation asks for (`struct xfs_alloc_arg`, with `minlen` equal to `maxlen`).
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Blocks wanted, in one run.
    pub len: u32,
    /// The first block must be a multiple of this.
    pub alignment: u32,
    /// Further blocks that an exact request must leave in case it has to become an aligned one.
    pub minalignslop: u32,
    /// Blocks that must stay free for what the transaction still has to allocate.
    pub minleft: u32,
    /// Blocks that the whole transaction may need.
    pub total: u32,
    /// Whether the reservation for metadata may be used (`XFS_AG_RESV_METADATA`).
    pub metadata: bool,
    /// Lowest and highest first block allowed.
    pub range: (u32, u32),
}

impl Request {
    /// `len` blocks anywhere.
    pub fn of(len: u32) -> Self {
        let range = (0, u32::MAX);
        Self { len, alignment: 1, minalignslop: 0, minleft: 0, total: 0, metadata: false, range }
    }
}

/// Free space of one group.
#[derive(Clone, Debug)]
pub struct FreeSpace {
    /// Filesystem block number of the group's block 0.
    base: u64,
    bno: BTree<ByBlock>,
    cnt: BTree<BySize>,
    agfl: FreeList,
    freeblks: u32,
    /// Blocks still reserved for finobt and refcountbt (`pag_meta_resv.ar_reserved`).
    reserved: u32,
}

impl FreeSpace {
    /// The free space of a fresh group: all blocks from `first` to `length`, with the AGFL taken from the front.
    pub fn new(base: u64, first: u32, length: u32) -> Self {
        let mut space = Self {
            base,
            bno: BTree::new(ALLOCBT, BNOBT_ROOT.into()),
            cnt: BTree::new(ALLOCBT, CNTBT_ROOT.into()),
            agfl: FreeList::default(),
            freeblks: length - first,
            reserved: 0,
        };
        if length > first {
            let all = Extent { start: first, len: length - first };
            let _ = space.bno.insert(ByBlock(all), &mut space.agfl);
            let _ = space.cnt.insert(BySize(all), &mut space.agfl);
            space.fix_freelist(&mut Touches::default());
        }
        space
    }

    /// Sets blocks aside for metadata, as a mount does (`xfs_ag_resv_init`).
    pub fn reserve(&mut self, blocks: u32) {
        self.reserved = blocks;
    }

    /// Free blocks, those on the AGFL not counted (`agf_freeblks`).
    pub fn free_blocks(&self) -> u32 {
        self.freeblks
    }

    /// Free blocks that are not reserved for metadata.
    pub fn unreserved(&self) -> u32 {
        (self.freeblks + self.agfl_count()).saturating_sub(self.reserved)
    }

    /// The longest free extent (`agf_longest`).
    pub fn longest(&self) -> u32 {
        self.cnt.last().map_or(0, |record| record.0.len)
    }

    /// Blocks on the AGFL.
    pub fn agfl_count(&self) -> u32 {
        self.agfl.0.len() as u32
    }

    /// The AGFL, first block to be used first.
    pub fn agfl(&self) -> impl Iterator<Item = u32> + '_ {
        self.agfl.0.iter().copied()
    }

    /// Blocks of both trees besides their roots (`agf_btreeblks`).
    pub fn btree_blocks(&self) -> usize {
        self.bno.blocks() + self.cnt.blocks() - 2
    }

    /// Free extents by block.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.bno.iter().map(|record| record.0)
    }

    /// The blocks of bnobt and cntbt.
    pub fn tree_block_numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.bno.block_numbers().chain(self.cnt.block_numbers()).map(|block| block as u32)
    }

    /// Levels, records and blocks of bnobt and cntbt.
    pub fn shapes(&self) -> [[usize; 3]; 2] {
        [[self.bno.levels(), self.bno.len(), self.bno.blocks()], [self.cnt.levels(), self.cnt.len(), self.cnt.blocks()]]
    }

    /// Checks both trees and that they agree.
    pub fn check(&self) -> Result<(), String> {
        self.bno.check().map_err(|e| format!("bnobt: {e}"))?;
        self.cnt.check().map_err(|e| format!("cntbt: {e}"))?;
        let mut by_size: Vec<Extent> = self.cnt.iter().map(|record| record.0).collect();
        by_size.sort_by_key(|extent| extent.start);
        if !by_size.iter().copied().eq(self.extents()) {
            return Err("bnobt and cntbt differ".into());
        }
        if let Some(pair) = by_size.windows(2).find(|pair| pair[0].end() >= pair[1].start) {
            return Err(format!("free extents {pair:?} overlap or touch"));
        }
        let sum: u32 = by_size.iter().map(|extent| extent.len).sum();
        if sum == self.freeblks {
            Ok(())
        } else {
            Err(format!("{sum} free blocks, {} counted", self.freeblks))
        }
    }

    /// `xfs_alloc_ag_vextent_exact`: block `start` or nothing.
    pub fn alloc_exact(&mut self, start: u32, request: &Request, touches: &mut Touches) -> bool {
        if !self.prepare(request, touches) {
            return false;
        }
        touches.add(BlockKind::Bnobt, self.base + self.bno.root());
        match self.bno.floor(&start) {
            Some(ByBlock(extent)) if extent.end() >= start + request.len => {
                self.take(extent, Extent { start, len: request.len }, touches);
                true
            }
            _ => false,
        }
    }

    /// `xfs_alloc_ag_vextent_near`: the run nearest to block `target`.
    pub fn alloc_near(&mut self, target: u32, request: &Request, touches: &mut Touches) -> Option<u32> {
        if !self.prepare(request, touches) {
            return None;
        }
        let left = self.nearest_left(target, request);
        let right = self.nearest_right(target, request);
        let best = match (left, right) {
            (Some(l), Some(r)) if (distance(&l, target), order(&r)) < (distance(&r, target), order(&l)) => l,
            (_, Some(r)) => r,
            (l, None) => l?,
        };
        let (extent, start) = best;
        self.take(extent, Extent { start, len: request.len }, touches);
        Some(start)
    }

    /// `xfs_alloc_ag_vextent_size`: the smallest extent that is large enough.
    pub fn alloc_by_size(&mut self, request: &Request, touches: &mut Touches) -> Option<u32> {
        if !self.prepare(request, touches) {
            return None;
        }
        let extent = self.cnt.ceil(&(request.len, 0))?.0;
        self.take(extent, Extent { len: request.len, ..extent }, touches);
        Some(extent.start)
    }

    /// `xfs_free_extent`: gives a run back and joins it with its neighbours.
    pub fn free(&mut self, extent: Extent, touches: &mut Touches) {
        self.fix_freelist(touches);
        self.put(extent, touches);
    }

    /// Takes note that a finobt block was allocated or freed (`xfs_ag_resv_alloc_extent`).
    pub fn use_reservation(&mut self, allocated: bool) {
        self.reserved = if allocated { self.reserved.saturating_sub(1) } else { self.reserved + 1 };
    }

    fn nearest_left(&self, target: u32, request: &Request) -> Option<(Extent, u32)> {
        let mut at = target;
        loop {
            let extent = self.bno.floor(&at)?.0;
            if let Some(start) = place(extent, target, request) {
                return Some((extent, start));
            }
            at = extent.start.checked_sub(1)?;
        }
    }

    fn nearest_right(&self, target: u32, request: &Request) -> Option<(Extent, u32)> {
        self.bno
            .iter_from(&(target + 1))
            .find_map(|record| place(record.0, target, request).map(|start| (record.0, start)))
    }

    /// `xfs_alloc_fix_freelist`: checks that there is enough space, then tops up the AGFL.
    fn prepare(&mut self, request: &Request, touches: &mut Touches) -> bool {
        if !self.space_available(request) {
            return false;
        }
        self.fix_freelist(touches);
        self.space_available(request)
    }

    /// `xfs_alloc_space_available`.
    fn space_available(&self, request: &Request) -> bool {
        let reservation = if request.metadata { 0 } else { self.reserved };
        let min_free = self.min_freelist();
        let wanted = request.len + (request.alignment - 1) + request.minalignslop;
        if self.longest_free_extent(min_free, reservation) < wanted {
            return false;
        }
        let free = i64::from(self.freeblks) + i64::from(self.agfl_count().min(min_free));
        let available = free - i64::from(reservation) - i64::from(min_free) - i64::from(request.minleft);
        available >= i64::from(request.total.max(wanted))
    }

    /// `xfs_alloc_longest_free_extent`.
    fn longest_free_extent(&self, need: u32, reserved: u32) -> u32 {
        let longest = self.longest();
        let elsewhere = self.freeblks - longest;
        let delta = need.saturating_sub(self.agfl_count()) + reserved.saturating_sub(elsewhere);
        if longest > delta {
            longest - delta
        } else {
            u32::from(self.agfl_count() > 0 || longest > 0)
        }
    }

    /// `xfs_alloc_min_freelist`: room for a full split of both trees.
    fn min_freelist(&self) -> u32 {
        let split = |levels: usize| 2 * (levels as u32 + 1) - 2;
        split(self.bno.levels()) + split(self.cnt.levels())
    }

    fn fix_freelist(&mut self, touches: &mut Touches) {
        touches.add(BlockKind::Agf, self.base);
        touches.add(BlockKind::Agfl, self.base);
        while self.agfl_count() > self.min_freelist() {
            let start = self.agfl.alloc(0) as u32;
            self.put(Extent { start, len: 1 }, touches);
        }
        while self.agfl_count() < self.min_freelist() {
            let need = self.min_freelist() - self.agfl_count();
            let Some(BySize(extent)) = self.cnt.ceil(&(need, 0)).or_else(|| self.cnt.last()) else { break };
            let taken = Extent { len: need.min(extent.len), ..extent };
            self.take(extent, taken, touches);
            self.agfl.0.extend(taken.start..taken.end());
        }
    }

    /// `xfs_alloc_fixup_trees`: cuts `taken` out of the free extent `from`.
    fn take(&mut self, from: Extent, taken: Extent, touches: &mut Touches) {
        let before = Extent { start: from.start, len: taken.start - from.start };
        let after = Extent { start: taken.end(), len: from.end() - taken.end() };
        let mut cnt = self.cnt.delete(&(from.len, from.start), &mut self.agfl);
        for rest in [before, after] {
            if rest.len > 0 {
                cnt.merge(&self.cnt.insert(BySize(rest), &mut self.agfl));
            }
        }
        let mut bno = match (before.len, after.len) {
            (0, 0) => self.bno.delete(&from.start, &mut self.agfl),
            (0, _) => self.bno.update(&from.start, ByBlock(after)),
            _ => self.bno.update(&from.start, ByBlock(before)),
        };
        if before.len > 0 && after.len > 0 {
            bno.merge(&self.bno.insert(ByBlock(after), &mut self.agfl));
        }
        self.freeblks -= taken.len;
        self.report(&cnt, &bno, touches);
    }

    /// `xfs_free_ag_extent`: puts a run into the trees.
    fn put(&mut self, extent: Extent, touches: &mut Touches) {
        let left = self.bno.floor(&extent.start).map(|r| r.0).filter(|l| l.end() == extent.start);
        let right = self.bno.get(&extent.end()).map(|r| r.0);
        let start = left.map_or(extent.start, |l| l.start);
        let end = right.map_or(extent.end(), |r| r.end());
        let joined = Extent { start, len: end - start };
        let mut cnt = Touch::default();
        for old in [left, right].into_iter().flatten() {
            cnt.merge(&self.cnt.delete(&(old.len, old.start), &mut self.agfl));
        }
        let bno = match (left, right) {
            (Some(l), Some(r)) => {
                let mut bno = self.bno.delete(&r.start, &mut self.agfl);
                bno.merge(&self.bno.update(&l.start, ByBlock(joined)));
                bno
            }
            (Some(old), None) | (None, Some(old)) => self.bno.update(&old.start, ByBlock(joined)),
            (None, None) => self.bno.insert(ByBlock(joined), &mut self.agfl),
        };
        cnt.merge(&self.cnt.insert(BySize(joined), &mut self.agfl));
        self.freeblks += extent.len;
        self.report(&cnt, &bno, touches);
    }

    fn report(&self, cnt: &Touch, bno: &Touch, touches: &mut Touches) {
        touches.add_tree(BlockKind::Cntbt, self.base, cnt);
        touches.add_tree(BlockKind::Bnobt, self.base, bno);
    }
}

fn distance(candidate: &(Extent, u32), target: u32) -> u32 {
    candidate.1.abs_diff(target)
}

/// Place of a candidate in the cntbt: of two equally near ones the scan keeps the later.
fn order(candidate: &(Extent, u32)) -> (u32, u32) {
    (candidate.0.len, candidate.0.start)
}

/// `xfs_alloc_compute_aligned` and `xfs_alloc_compute_diff`: the first block nearest to `target` of a run in `extent`.
fn place(extent: Extent, target: u32, request: &Request) -> Option<u32> {
    let align = request.alignment;
    let first = extent.start.next_multiple_of(align);
    if first < request.range.0 || first > request.range.1 || first + request.len > extent.end() {
        return None;
    }
    let last = (extent.end() - request.len) / align * align;
    let up = target.next_multiple_of(align);
    let down = up.saturating_sub(align);
    let near = if align > 1 && target.abs_diff(down) < target.abs_diff(up) { down } else { up };
    Some(near.clamp(first, last))
}

#[cfg(test)]
mod tests;
