//! Inodes in memory: their hash table and lists, links and times (`fs/inode.c`).

pub mod cold;
pub(in crate::filesystems) mod hash_table;
pub mod inode_cache;
pub mod inode_list;
pub mod links;
pub mod listed;
pub(in crate::filesystems) mod super_line;
pub(in crate::filesystems) mod times;
