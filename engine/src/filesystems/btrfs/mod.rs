//! btrfs: its trees (`key` to `delayed`) and what it does to them.
//!
//! Trees are those of a filesystem made with the defaults of `mkfs.btrfs` 6.2: 16 KiB nodes, skinny metadata, no holes,
//! free space tree. The algorithms follow Linux 6.18.
//!
//! Not modelled: extended attributes, snapshots and shared blocks, compression, quota groups, several devices.

mod balance;
pub mod delayed;
pub mod items;
pub mod key;
mod leaf_room;
pub mod path;
pub mod report;
pub mod search;
pub mod tree;
