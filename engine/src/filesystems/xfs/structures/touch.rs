//! What an operation touched: buffers in the order the kernel locks them.

use crate::structures::btree::Touch;

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

/// New blocks that one report can hold: of data, the free index, and a leaf and a node for each half of a split.
const NEW: usize = 8;

/// Buffers in the order of their first lock, each once: a transaction that has a buffer gets it again for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touches {
    packed: [u64; CAPACITY],
    /// What a transaction logs of each, where that is told: of directories' blocks.
    logged: [Chunks; CAPACITY],
    len: u8,
    /// Blocks of a directory that are new, and how many there are.
    new: [u64; NEW],
    news: u8,
    /// What tables of free runs were made anew from.
    scanned: Scanned,
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

/// Chunks of a block of 4 KiB that a transaction logs (`xfs_buf_item_log`), a bit for each.
pub type Chunks = u32;

/// The chunks of these bytes of a block.
pub fn chunks(bytes: std::ops::Range<usize>) -> Chunks {
    let (first, end) = (bytes.start / usize::from(CHUNK), bytes.end.div_ceil(CHUNK.into()));
    (first..end.min(Chunks::BITS as usize)).fold(0, |map, chunk| map | 1 << chunk)
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
        let at = self.iter().position(|touched| touched == (kind, fsblock));
        at.into_iter().for_each(|at| self.logged[at] |= chunks);
    }

    /// A block of a directory was gone through.
    pub fn scan(&mut self, Scanned { names, runs }: Scanned) {
        self.scanned.names += names;
        self.scanned.runs += runs;
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

    /// Kind and filesystem block number of each buffer, and what is logged of it.
    pub fn logged(&self) -> impl Iterator<Item = (BlockKind, u64, Chunks)> + '_ {
        self.iter().zip(self.logged).map(|((kind, fsblock), chunks)| (kind, fsblock, chunks))
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
