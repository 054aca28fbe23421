//! Keys and items as they lie on disk (`struct btrfs_disk_key`, `struct btrfs_item` and the items' own structs).

use std::cmp::Ordering;

/// Bytes of a node's header (`struct btrfs_header`).
pub const HEADER: u32 = 101;
/// Bytes of a tree block.
pub const NODE_SIZE: u32 = 16 << 10;
/// Bytes of a leaf for items and their data.
pub const LEAF_DATA: u32 = NODE_SIZE - HEADER;
/// Bytes of an item's head in a leaf (`struct btrfs_item`).
pub const ITEM_HEAD: u32 = 25;
/// Pointers that a node above the leaves can hold: 33 bytes each (`struct btrfs_key_ptr`).
pub const MAX_POINTERS: usize = (LEAF_DATA / 33) as usize;
/// The first number of an inode of a subvolume, that of its root directory (`BTRFS_FIRST_FREE_OBJECTID`).
pub const FIRST_FREE_OBJECTID: u64 = 256;
/// The object of logs in the tree of log roots (`BTRFS_TREE_LOG_OBJECTID`, -6).
pub const TREE_LOG_OBJECTID: u64 = OBJECTID_MASK - 5;
/// Objects that are no inodes lie at the end of a tree (`BTRFS_ORPHAN_OBJECTID`, -5).
pub const ORPHAN_OBJECTID: u64 = OBJECTID_MASK - 4;
/// All checksums of data belong to one object (`BTRFS_EXTENT_CSUM_OBJECTID`, -10).
pub const EXTENT_CSUM_OBJECTID: u64 = OBJECTID_MASK - 9;
/// Files of free space are found by an object of the tree of roots (`BTRFS_FREE_SPACE_OBJECTID`, -11).
pub const FREE_SPACE_OBJECTID: u64 = OBJECTID_MASK - 10;

/// Object numbers are kept in 56 bits: inodes never need more, and the negative ones keep their order at the end.
const OBJECTID_MASK: u64 = (1 << 56) - 1;

/// What an item is; the numbers are those of `btrfs_tree.h`, and they order the items of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ItemKind {
    /// Which file has the free space of a block group.
    FreeSpaceHeader = 0,
    /// An inode.
    InodeItem = 1,
    /// A name of an inode, by directory.
    InodeRef = 12,
    /// An inode without a name that must be freed after a crash.
    OrphanItem = 48,
    /// The log tree's record that a range of a directory is logged.
    DirLogIndex = 72,
    /// A directory entry, by hash of its name.
    DirItem = 84,
    /// A directory entry, by order of creation.
    DirIndex = 96,
    /// An extent of a file, or its bytes themselves.
    ExtentData = 108,
    /// Checksums of a run of data blocks.
    ExtentCsum = 128,
    /// The root of a tree.
    RootItem = 132,
    /// An extent of data in use.
    ExtentItem = 168,
    /// A tree block in use.
    MetadataItem = 169,
    /// A block group.
    BlockGroupItem = 192,
    /// How the free space of a block group is kept.
    FreeSpaceInfo = 198,
    /// A free extent.
    FreeSpaceExtent = 199,
}

impl ItemKind {
    const ALL: [Self; 15] = [
        Self::FreeSpaceHeader,
        Self::InodeItem,
        Self::InodeRef,
        Self::OrphanItem,
        Self::DirLogIndex,
        Self::DirItem,
        Self::DirIndex,
        Self::ExtentData,
        Self::ExtentCsum,
        Self::RootItem,
        Self::ExtentItem,
        Self::MetadataItem,
        Self::BlockGroupItem,
        Self::FreeSpaceInfo,
        Self::FreeSpaceExtent,
    ];

    /// The name that `btrfs inspect-internal dump-tree` prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::FreeSpaceHeader => "UNTYPED",
            Self::InodeItem => "INODE_ITEM",
            Self::InodeRef => "INODE_REF",
            Self::OrphanItem => "ORPHAN_ITEM",
            Self::DirLogIndex => "DIR_LOG_INDEX",
            Self::DirItem => "DIR_ITEM",
            Self::DirIndex => "DIR_INDEX",
            Self::ExtentData => "EXTENT_DATA",
            Self::ExtentCsum => "EXTENT_CSUM",
            Self::RootItem => "ROOT_ITEM",
            Self::ExtentItem => "EXTENT_ITEM",
            Self::MetadataItem => "METADATA_ITEM",
            Self::BlockGroupItem => "BLOCK_GROUP_ITEM",
            Self::FreeSpaceInfo => "FREE_SPACE_INFO",
            Self::FreeSpaceExtent => "FREE_SPACE_EXTENT",
        }
    }
}

/// Data bytes of an item, without its head.
pub mod size {
    /// `struct btrfs_inode_item`.
    pub const INODE_ITEM: u32 = 160;
    /// `struct btrfs_file_extent_item` of an extent that is not inline.
    pub const EXTENT_DATA: u32 = 53;
    /// The same of one that is inline, without its bytes (`BTRFS_FILE_EXTENT_INLINE_DATA_START`).
    pub const INLINE_EXTENT: u32 = 21;
    /// `struct btrfs_root_item`.
    pub const ROOT_ITEM: u32 = 439;
    /// `struct btrfs_extent_item` with one inline reference of a tree block.
    pub const METADATA_ITEM: u32 = 33;
    /// `struct btrfs_extent_item` with one inline reference of a file.
    pub const EXTENT_ITEM: u32 = 53;
    /// `struct btrfs_block_group_item`.
    pub const BLOCK_GROUP_ITEM: u32 = 24;
    /// `struct btrfs_free_space_header`.
    pub const FREE_SPACE_HEADER: u32 = 41;
    /// `struct btrfs_free_space_info`.
    pub const FREE_SPACE_INFO: u32 = 8;
    /// One crc32c for each 4 KiB block.
    pub const CSUM: u32 = 4;

    /// `struct btrfs_inode_ref` and the name.
    pub fn inode_ref(name: &[u8]) -> u32 {
        10 + name.len() as u32
    }

    /// `struct btrfs_dir_item` and the name; the same for `DIR_ITEM` and `DIR_INDEX`.
    pub fn dir_item(name: &[u8]) -> u32 {
        30 + name.len() as u32
    }
}

/// A key: object, kind, offset, in this order. The first two share a word, and both words are compared as one: without a branch,
/// since in a search nobody can guess it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    object_and_kind: u64,
    offset: u64,
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    fn lt(&self, other: &Self) -> bool {
        self.number() < other.number()
    }

    fn le(&self, other: &Self) -> bool {
        self.number() <= other.number()
    }

    fn gt(&self, other: &Self) -> bool {
        self.number() > other.number()
    }

    fn ge(&self, other: &Self) -> bool {
        self.number() >= other.number()
    }
}

impl Key {
    /// The key of an item.
    pub fn new(objectid: u64, kind: ItemKind, offset: u64) -> Self {
        Self { object_and_kind: (objectid & OBJECTID_MASK) << 8 | kind as u64, offset }
    }

    /// The key behind all items of an object.
    pub fn behind(objectid: u64) -> Self {
        Self { object_and_kind: (objectid & OBJECTID_MASK) << 8 | 0xff, offset: u64::MAX }
    }

    /// A number that orders keys.
    fn number(self) -> u128 {
        u128::from(self.object_and_kind) << 64 | u128::from(self.offset)
    }

    /// The object's number.
    pub fn objectid(self) -> u64 {
        self.object_and_kind >> 8
    }

    /// The inode that the item of a subvolume is about: of an orphan's record, its offset.
    pub fn inode(self) -> u64 {
        match self.objectid() {
            ORPHAN_OBJECTID => self.offset,
            inode => inode,
        }
    }

    /// Whether both are of the same object and kind.
    pub fn is_like(self, other: Self) -> bool {
        self.object_and_kind == other.object_and_kind
    }

    /// What the item is.
    pub fn kind(self) -> ItemKind {
        let number = self.object_and_kind as u8;
        ItemKind::ALL.into_iter().find(|kind| *kind as u8 == number).expect("keys are made of kinds")
    }

    /// The last part: a hash, an index, a byte.
    pub fn offset(self) -> u64 {
        self.offset
    }
}

/// An item of a leaf: its key and how many bytes its data are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its key.
    pub key: Key,
    /// Its data's bytes.
    pub size: u16,
}

impl Item {
    /// An item with `size` bytes of data.
    pub fn new(key: Key, size: u32) -> Self {
        Self { key, size: size as u16 }
    }

    /// Bytes of head and data.
    pub fn bytes(&self) -> u32 {
        ITEM_HEAD + u32::from(self.size)
    }
}

/// `btrfs_name_hash`: crc32c (Castagnoli) of a name with seed -2 and without the final inversion, four bytes at a time.
pub fn name_hash(name: &[u8]) -> u64 {
    let (fours, rest) = name.as_chunks::<4>();
    let crc = fours.iter().fold(!1_u32, |crc, &four| {
        let [a, b, c, d] = (crc ^ u32::from_le_bytes(four)).to_le_bytes();
        CRC32C[3][usize::from(a)] ^ CRC32C[2][usize::from(b)] ^ CRC32C[1][usize::from(c)] ^ CRC32C[0][usize::from(d)]
    });
    u64::from(rest.iter().fold(crc, |crc, &byte| CRC32C[0][usize::from(crc as u8 ^ byte)] ^ (crc >> 8)))
}

/// What becomes of each byte, with so many zeros behind it.
static CRC32C: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 4 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = tables[0][before as u8 as usize] ^ (before >> 8);
            byte += 1;
        }
        zeros += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_as_the_kernel_hashes_them() {
        // From a dump of a real tree: the only directory "d000" of the root.
        assert_eq!(name_hash(b"d000"), 2_352_462_259);
        let byte_by_byte =
            |name: &[u8]| name.iter().fold(!1_u32, |crc, &byte| CRC32C[0][usize::from(crc as u8 ^ byte)] ^ (crc >> 8));
        for length in 1..20 {
            let name: Vec<u8> = (0..length).map(|place| b'a' + place * 3).collect();
            assert_eq!(name_hash(&name), u64::from(byte_by_byte(&name)));
        }
    }

    #[test]
    fn a_node_holds_493_pointers() {
        assert_eq!(MAX_POINTERS, 493);
    }

    #[test]
    fn keys_order_by_object_then_kind_then_offset() {
        let orphan = Key::new(ORPHAN_OBJECTID, ItemKind::OrphanItem, 257);
        let keys = [
            Key::new(256, ItemKind::DirIndex, u64::MAX),
            Key::new(257, ItemKind::InodeItem, 0),
            Key::new(257, ItemKind::InodeRef, 256),
            Key::new(1 << 40, ItemKind::InodeItem, 0),
            orphan,
        ];
        assert!(keys.is_sorted());
        assert_eq!((orphan.kind(), orphan.offset()), (ItemKind::OrphanItem, 257));
    }
}
