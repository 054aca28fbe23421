//! btrfs: its trees, the space they and the data take, its transactions and log, and its operations under the kernel's locks.
//!
//! Trees are those of a filesystem made with the defaults of `mkfs.btrfs` 6.2: 16 KiB nodes, skinny metadata, no holes,
//! free space tree. The algorithms follow Linux 6.18. `mount` holds what all operations share, as `struct btrfs_fs_info`
//! does: each room adds its part of `impl Btrfs`, and so refers back to it.
//!
//! Not modelled: extended attributes, snapshots and shared blocks, compression, quota groups, several devices; the trees of
//! roots, chunks and devices; writeback without fsync.

mod audit;
mod block_io;
mod data;
mod entries;
mod fs_root;
mod grown;
mod log;
pub mod mount;
mod names;
mod open_inodes;
mod operations;
pub mod report;
mod root;
mod root_times;
pub mod space;
pub mod subvolume;
pub mod transaction;
pub mod tree;
mod workers;
