//! XFS: its structures on disk and in memory, its log, and its operations under the kernel's locks.
//!
//! The structures are those of a filesystem made with the defaults of `mkfs.xfs` 6.1 (4 KiB blocks, 512-byte inodes,
//! finobt, sparse inodes, reflink, ftype). Each report lists the buffers of an operation in the kernel's lock order.
//!
//! `mount` holds what all operations share, as `struct xfs_mount` does: each room adds its part of `impl Xfs`, and so refers
//! back to it.
//!
//! Not modelled: file data, extended attributes, busy extents, stripe alignment, quota, realtime.

pub mod operations;
pub mod structures;

mod audit;
mod contents;
mod inode;
mod inode_lines;
mod log;
pub mod mount;
