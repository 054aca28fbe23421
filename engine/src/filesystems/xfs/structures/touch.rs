//! What an operation touched: buffers in the order the kernel locks them.

use crate::structures::btree::Touch;
use std::ops::{BitOr, BitOrAssign};

/// The kind of a metadata buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockKind {
    /// Free space header of a group.
    Agf,
    /// Free list of a group.
    Agfl,
    /// Free extents by size.
    Cntbt,
    /// Free extents by block.
    Bnobt,
    /// Inode header of a group.
    Agi,
    /// Inode chunks.
    Inobt,
    /// Inode chunks with a free inode.
    Finobt,
    /// A block of inodes (cluster buffer).
    InodeCluster,
    /// The only block of a block-form directory.
    DirBlock,
    /// Directory entries.
    DirData,
    /// The only hash index block of a leaf-form directory.
    DirLeaf,
    /// Inner block of a node-form directory's hash tree.
    DaNode,
    /// Leaf of a node-form directory's hash tree.
    DirLeafN,
    /// Free space index of a node-form directory.
    DirFree,
    /// Block of a directory's extent map.
    Bmbt,
}

impl BlockKind {
    /// Whether it is a block of the size of a directory's.
    pub fn is_of_directory(self) -> bool {
        use BlockKind::{DaNode, DirBlock, DirData, DirFree, DirLeaf, DirLeafN};
        matches!(self, DirBlock | DirData | DirLeaf | DaNode | DirLeafN | DirFree)
    }
}

const KINDS: [BlockKind; 15] = [
    BlockKind::Agf,
    BlockKind::Agfl,
    BlockKind::Cntbt,
    BlockKind::Bnobt,
    BlockKind::Agi,
    BlockKind::Inobt,
    BlockKind::Finobt,
    BlockKind::InodeCluster,
    BlockKind::DirBlock,
    BlockKind::DirData,
    BlockKind::DirLeaf,
    BlockKind::DaNode,
    BlockKind::DirLeafN,
    BlockKind::DirFree,
    BlockKind::Bmbt,
];

/// Buffers that one report can hold; an operation with a double directory split stays below.
const CAPACITY: usize = 32;
const KIND_SHIFT: u32 = 56;
/// Above the kind is how many looks a binary search in the block takes; 0 is not told.
const LOOKS_SHIFT: u32 = 60;
/// Entries of a tree's block that are in a cache line: records and pairs of key and pointer take 8 to 16 bytes.
const ENTRIES_PER_LINE: u32 = 4;

/// Runs of chunks of directories' blocks that one report can tell to be logged: three of each that a transaction has.
const LOGGED: usize = 32;

/// New blocks that one report can hold: of data, the free index, and a leaf and a node for each half of a split.
const NEW: usize = 8;

/// Buffers in the order of their first lock, each once: a transaction that has a buffer gets it again for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touches {
    packed: [u64; CAPACITY],
    len: u8,
    /// What a transaction logs of some of them, by their place: of directories' blocks.
    logged: [(u8, Run); LOGGED],
    logs: u8,
    /// Blocks of a directory that are new, and how many there are.
    new: [u64; NEW],
    news: u8,
    /// What tables of free runs were made anew from.
    scanned: Scanned,
    /// Entries of hash indexes that gave way to a new one.
    moved: u16,
}

/// Names and free runs of a block of a directory that are gone through for its largest runs (`xfs_dir2_data_freescan`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Names.
    pub names: u16,
    /// Free runs.
    pub runs: u16,
}

/// Bytes that a transaction logs at least of a buffer (`XFS_BLF_CHUNK`).
pub const CHUNK: u16 = 128;

/// Chunks of a block of 4 KiB that a transaction logs (`xfs_buf_item_log`, `blf_data_map`), a bit for each.
pub type Map = u32;

/// Words of the map of a block of 64 KiB, the largest of a directory (`XFS_BLF_DATAMAP_SIZE`).
const WORDS: usize = (64 << 10) / CHUNK as usize / u64::BITS as usize;

/// The same of a block of a directory that is larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LargeMap([u64; WORDS]);

impl LargeMap {
    /// How many they are.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// And those of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }

    fn set(&mut self, (first, end): Run) {
        for chunk in usize::from(first)..usize::from(end) {
            self.0[chunk / 64] |= 1 << (chunk % 64);
        }
    }
}

/// Chunks of a buffer one behind the other: the first, and that behind the last.
type Run = (u16, u16);

fn contains(run: Run, other: Run) -> bool {
    run.0 <= other.0 && other.1 <= run.1
}

/// Most runs that an act on a block logs.
const RUNS: usize = 6;

/// Chunks of a buffer, in a few runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chunks {
    runs: [Run; RUNS],
    len: u8,
}

impl Chunks {
    /// No chunk.
    pub const NONE: Self = Self { runs: [(0, 0); RUNS], len: 0 };

    fn runs(&self) -> &[Run] {
        &self.runs[..usize::from(self.len)]
    }

    /// Of a block of 4 KiB.
    pub fn map(&self) -> Map {
        self.runs().iter().fold(0, |map, run| map | bits(*run))
    }

    fn add(&mut self, run: Run) {
        if self.runs().iter().any(|known| contains(*known, run)) {
            return;
        }
        debug_assert!(usize::from(self.len) < RUNS, "no act logs so many runs");
        self.runs[usize::from(self.len)] = run;
        self.len += 1;
    }
}

/// A run in the map of a block of 4 KiB.
fn bits((first, end): Run) -> Map {
    (first..end.min(Map::BITS as u16)).fold(0, |map, chunk| map | 1 << chunk)
}

impl BitOr for Chunks {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        self |= other;
        self
    }
}

impl BitOrAssign for Chunks {
    fn bitor_assign(&mut self, other: Self) {
        other.runs().iter().for_each(|run| self.add(*run));
    }
}

/// The chunks of these bytes of a buffer.
pub fn chunks(bytes: std::ops::Range<usize>) -> Chunks {
    let mut found = Chunks::NONE;
    found.add(((bytes.start / usize::from(CHUNK)) as u16, bytes.end.div_ceil(CHUNK.into()) as u16));
    found
}

impl Touches {
    /// Adds a buffer, by kind and filesystem block number. Headers of a group share its block 0.
    pub fn add(&mut self, kind: BlockKind, fsblock: u64) {
        self.add_searched(kind, fsblock, 0);
    }

    /// Adds blocks of a tree that were searched, and whose numbers begin at `base`.
    pub fn add_tree(&mut self, kind: BlockKind, base: u64, touch: &Touch) {
        for (block, entries) in touch.blocks_and_entries() {
            let lines = entries.div_ceil(ENTRIES_PER_LINE).max(1);
            self.add_searched(kind, base + block, lines.ilog2() + 1);
        }
    }

    /// Adds a buffer of which the transaction logs these chunks.
    pub fn log(&mut self, kind: BlockKind, fsblock: u64, chunks: Chunks) {
        self.add(kind, fsblock);
        let Some(at) = self.iter().position(|touched| touched == (kind, fsblock)) else { return };
        for run in chunks.runs() {
            let logs = usize::from(self.logs);
            let known = self.logged[..logs].iter().any(|(place, known)| *place == at as u8 && contains(*known, *run));
            if !known && logs < LOGGED {
                self.logged[logs] = (at as u8, *run);
                self.logs += 1;
            }
        }
    }

    /// A block of a directory was gone through.
    pub fn scan(&mut self, Scanned { names, runs }: Scanned) {
        self.scanned.names += names;
        self.scanned.runs += runs;
    }

    /// So many entries of a hash index moved (`xfs_dir3_leaf_find_entry`).
    pub fn shift(&mut self, entries: usize) {
        self.moved += entries as u16;
    }

    /// Entries of hash indexes that moved.
    pub fn shifted(&self) -> u16 {
        self.moved
    }

    /// What of directories' blocks was gone through.
    pub fn scanned(&self) -> Scanned {
        self.scanned
    }

    /// A directory has a new block.
    pub fn allocate(&mut self, fsblock: u64) {
        if let Some(new) = self.new.get_mut(usize::from(self.news)) {
            *new = fsblock;
            self.news += 1;
        }
    }

    /// Filesystem block numbers of a directory's new blocks.
    pub fn new_blocks(&self) -> &[u64] {
        &self.new[..usize::from(self.news)]
    }

    /// Kind and filesystem block number of each buffer, and what is logged of it if it is a block of 4 KiB.
    pub fn logged(&self) -> impl Iterator<Item = (BlockKind, u64, Map)> + '_ {
        self.iter()
            .zip(0..)
            .map(|((kind, fsblock), at)| (kind, fsblock, self.runs(at).fold(0, |map, run| map | bits(run))))
    }

    /// The same of larger blocks of directories, where something is logged of them.
    pub fn logged_large(&self) -> impl Iterator<Item = (BlockKind, u64, LargeMap)> + '_ {
        self.iter().zip(0..).map(|((kind, fsblock), at)| {
            let mut map = LargeMap::default();
            self.runs(at).for_each(|run| map.set(run));
            (kind, fsblock, map)
        })
    }

    fn runs(&self, at: u8) -> impl Iterator<Item = Run> + '_ {
        let logged = self.logged[..usize::from(self.logs)].iter();
        logged.filter(move |(place, _)| *place == at).map(|(_, run)| *run)
    }

    fn add_searched(&mut self, kind: BlockKind, fsblock: u64, looks: u32) {
        let packed = (kind as u64) << KIND_SHIFT | fsblock;
        let len = usize::from(self.len);
        let same = |known: &&mut u64| **known & ((1 << LOOKS_SHIFT) - 1) == packed;
        if let Some(known) = self.packed[..len].iter_mut().find(same) {
            if *known >> LOOKS_SHIFT == 0 {
                *known |= u64::from(looks) << LOOKS_SHIFT;
            }
        } else if len < CAPACITY {
            self.packed[len] = packed | u64::from(looks) << LOOKS_SHIFT;
            self.len += 1;
        }
    }

    /// Kind and filesystem block number of each buffer.
    pub fn iter(&self) -> impl Iterator<Item = (BlockKind, u64)> + '_ {
        self.searched().map(|(kind, fsblock, _)| (kind, fsblock))
    }

    /// The same, and how many cache lines one after the other a binary search in it looks at, where that was told.
    pub fn searched(&self) -> impl Iterator<Item = (BlockKind, u64, Option<u32>)> + '_ {
        self.packed[..usize::from(self.len)].iter().map(|packed| {
            let (kind, looks) = (packed >> KIND_SHIFT & 0xf, (packed >> LOOKS_SHIFT) as u32);
            (KINDS[kind as usize], packed & ((1 << KIND_SHIFT) - 1), (looks > 0).then_some(looks))
        })
    }

    /// Whether a buffer of this kind is among them.
    pub fn has(&self, kind: BlockKind) -> bool {
        self.iter().any(|(k, _)| k == kind)
    }

    /// Number of buffers.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether no buffer was touched.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_those_of_which_some_byte_is_meant() {
        let count = |bytes| {
            let mut map = LargeMap::default();
            chunks(bytes).runs().iter().for_each(|run| map.set(*run));
            map.count()
        };
        assert_eq!(
            [count(0..64), count(127..129), count(4..4), count(0..4096), count(100..65_536)],
            [1, 2, 1, 32, 512]
        );
        assert_eq!((chunks(0..128) | chunks(3968..4096) | chunks(4000..4100)).map(), 1 << 31 | 1);
        assert_eq!(Chunks::NONE.map(), 0);
    }

    #[test]
    fn what_is_logged_of_a_block_is_told_in_both_sizes() {
        let mut touches = Touches::default();
        touches.add(BlockKind::DaNode, 4);
        touches.log(BlockKind::DirLeafN, 7, chunks(0..64) | chunks(5000..9000));
        touches.log(BlockKind::DirLeafN, 7, chunks(0..1000));
        let (small, large): (Vec<_>, Vec<_>) = (touches.logged().collect(), touches.logged_large().collect());
        assert_eq!(small, [(BlockKind::DaNode, 4, 0), (BlockKind::DirLeafN, 7, 0xff)]);
        assert_eq!(large.iter().map(|(_, _, map)| map.count()).collect::<Vec<_>>(), [0, 8 + 32]);
    }
}
