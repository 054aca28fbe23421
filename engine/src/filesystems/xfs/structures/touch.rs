//! What an operation touched: buffers in the order the kernel locks them.

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

/// Buffers in the order of their first lock, each once: a transaction that has a buffer gets it again for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touches {
    packed: [u64; CAPACITY],
    len: u8,
}

impl Touches {
    /// Adds a buffer, by kind and filesystem block number. Headers of a group share its block 0.
    pub fn add(&mut self, kind: BlockKind, fsblock: u64) {
        let packed = (kind as u64) << KIND_SHIFT | fsblock;
        let len = usize::from(self.len);
        if len < CAPACITY && !self.packed[..len].contains(&packed) {
            self.packed[len] = packed;
            self.len += 1;
        }
    }

    /// Kind and filesystem block number of each buffer.
    pub fn iter(&self) -> impl Iterator<Item = (BlockKind, u64)> + '_ {
        self.packed[..usize::from(self.len)]
            .iter()
            .map(|packed| (KINDS[(packed >> KIND_SHIFT) as usize], packed & ((1 << KIND_SHIFT) - 1)))
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
