//! The items that make up files and directories.

use super::key::{
    name_hash, size, Item, ItemKind, Key, EXTENT_CSUM_OBJECTID, FIRST_FREE_OBJECTID, FREE_SPACE_OBJECTID,
    ORPHAN_OBJECTID, TREE_LOG_OBJECTID,
};

/// The first index of an entry of a directory (`BTRFS_DIR_START_INDEX`); 0 and 1 stand for `.` and `..`.
pub const DIR_START_INDEX: u64 = 2;

/// An inode.
pub fn inode(ino: u64) -> Item {
    Item::new(inode_key(ino), size::INODE_ITEM)
}

/// The key of an inode.
pub fn inode_key(ino: u64) -> Key {
    Key::new(ino, ItemKind::InodeItem, 0)
}

/// The name of an inode in a directory.
pub fn inode_ref(ino: u64, dir: u64, name: &[u8]) -> Item {
    Item::new(Key::new(ino, ItemKind::InodeRef, dir), size::inode_ref(name))
}

/// The entry of a name in a directory by its hash.
pub fn dir_item(dir: u64, name: &[u8]) -> Item {
    Item::new(Key::new(dir, ItemKind::DirItem, name_hash(name)), size::dir_item(name))
}

/// The entry of a name in a directory by its index.
pub fn dir_index(dir: u64, index: u64, name: &[u8]) -> Item {
    Item::new(Key::new(dir, ItemKind::DirIndex, index), size::dir_item(name))
}

/// An extent of a file, by its first byte in the file.
pub fn extent(ino: u64, offset: u64) -> Item {
    Item::new(Key::new(ino, ItemKind::ExtentData, offset), size::EXTENT_DATA)
}

/// A file of so many bytes within the tree.
pub fn inline_extent(ino: u64, bytes: u32) -> Item {
    Item::new(Key::new(ino, ItemKind::ExtentData, 0), size::INLINE_EXTENT + bytes)
}

/// The checksums of so many blocks from a byte of the disk on.
pub fn csums(first: u64, blocks: u64) -> Item {
    Item::new(Key::new(EXTENT_CSUM_OBJECTID, ItemKind::ExtentCsum, first), size::CSUM * blocks as u32)
}

/// Where the log of a subvolume is, in the tree of log roots; the first one is `BTRFS_FS_TREE_OBJECTID`, 5.
pub fn log_root(subvolume: u64) -> Item {
    let root = if subvolume == 0 { 5 } else { FIRST_FREE_OBJECTID + subvolume - 1 };
    Item::new(Key::new(TREE_LOG_OBJECTID, ItemKind::RootItem, root), size::ROOT_ITEM)
}

/// The record of an inode without a name.
pub fn orphan(ino: u64) -> Item {
    Item::new(Key::new(ORPHAN_OBJECTID, ItemKind::OrphanItem, ino), 0)
}

/// What `mkfs` puts into a subvolume: the root directory, its own parent.
pub fn root_directory(ino: u64) -> [Item; 2] {
    [inode(ino), inode_ref(ino, ino, b"..")]
}

/// A tree block in use.
pub fn metadata_item(place: u64, level: u8) -> Item {
    Item::new(Key::new(place, ItemKind::MetadataItem, u64::from(level)), size::METADATA_ITEM)
}

/// An extent of data in use.
pub fn extent_item(place: u64, bytes: u64) -> Item {
    Item::new(Key::new(place, ItemKind::ExtentItem, bytes), size::EXTENT_ITEM)
}

/// A block group.
pub fn block_group(start: u64, bytes: u64) -> Item {
    Item::new(Key::new(start, ItemKind::BlockGroupItem, bytes), size::BLOCK_GROUP_ITEM)
}

/// Where the chunk tree is.
pub const CHUNK_TREE: u64 = 21 << 20;

/// Trees that `mkfs` makes and nothing here changes, a block each: devices, subvolume numbers, data relocation.
pub const OTHER_TREES: usize = 3;

/// The chunk tree's only block and the block group that it is in, as `mkfs` makes them.
pub fn chunk_tree() -> [Item; 2] {
    [metadata_item(CHUNK_TREE, 0), block_group(CHUNK_TREE, 8 << 20)]
}

/// Which file has the free space of a block group, and how much of it is valid.
pub fn free_space_header(start: u64) -> Item {
    Item::new(Key::new(FREE_SPACE_OBJECTID, ItemKind::FreeSpaceHeader, start), size::FREE_SPACE_HEADER)
}

/// How the free space of a block group is kept.
pub fn free_space_info(start: u64, bytes: u64) -> Item {
    Item::new(Key::new(start, ItemKind::FreeSpaceInfo, bytes), size::FREE_SPACE_INFO)
}

/// A free extent.
pub fn free_space_extent(start: u64, bytes: u64) -> Item {
    Item::new(Key::new(start, ItemKind::FreeSpaceExtent, bytes), 0)
}
