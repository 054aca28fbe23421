//! XFS: its structures on disk and in memory, its log, and its operations under the kernel's locks.
//!
//! The structures are those of a filesystem made with the defaults of `mkfs.xfs` 6.1 (4 KiB blocks, 512-byte inodes,
//! finobt, sparse inodes, reflink, ftype). Each report lists the buffers of an operation in the kernel's lock order.
//!
//! `mount` holds what all operations share, as `struct xfs_mount` does: each room adds its part of `impl Xfs`, and so refers
//! back to it. Six operations whose costs or state are a part of the mount are in a circle through it; the structures and the log know
//! nothing of it, but for the programs of the log's threads (`push`).
//!
//! Not modelled: file data, extended attributes, busy extents, stripe alignment, quota, realtime.

pub mod operations;
pub mod structures;

mod audit;
pub mod buffer_hash;
mod by_block;
mod contents;
mod directory_buffers;
mod inode;
mod inode_lines;
mod log;
pub mod mount;
