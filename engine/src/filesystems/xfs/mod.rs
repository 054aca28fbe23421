//! XFS: what it does to its structures (`geometry` to `layout`) and under which locks (`mount`, `operations`,
//! `inactive`).
//!
//! The structures are those of a filesystem made with the defaults of `mkfs.xfs` 6.1 (4 KiB blocks, 512-byte inodes,
//! finobt, sparse inodes, reflink, ftype). Each report lists the buffers of an operation in the kernel's lock order.
//!
//! Not modelled: file data, extended attributes, busy extents, stripe alignment, quota, realtime.

pub mod ag;
pub mod bmap;
pub mod dir_data;
mod dir_free;
pub mod dir_hash;
mod dir_node;
mod dir_short;
mod dir_storage;
pub mod directory;
mod ail;
mod checkpoint;
pub mod free_space;
pub mod geometry;
pub mod groups;
pub mod inode_alloc;
pub mod layout;
pub mod report;
pub mod touch;

mod buffer;
mod clusters;
mod file_extents;
pub mod file_io;
mod fsync;
mod iclog;
mod inactive;
mod inode;
mod inode_lines;
pub mod inodegc;
pub mod iext;
mod grant;
mod log;
#[cfg(test)]
mod log_tests;
pub mod mount;
mod walk;
mod xfsaild;
mod operations;
