//! btrfs: its trees (`key` to `delayed`), and what it does to them under which locks (`root` to `operations`).
//!
//! Trees are those of a filesystem made with the defaults of `mkfs.btrfs` 6.2: 16 KiB nodes, skinny metadata, no holes,
//! free space tree. The algorithms follow Linux 6.18.
//!
//! Not modelled: extended attributes, snapshots and shared blocks, compression, quota groups, several devices; the trees of
//! roots, chunks and devices; writeback without fsync.

mod balance;
mod commit;
mod csums;
mod direct;
#[cfg(test)]
mod interleaving;
mod data;
pub mod delayed;
pub mod delayed_refs;
pub mod extents;
mod free_space;
mod grown;
pub mod items;
pub mod key;
mod leaf_room;
pub mod path;
pub mod report;
pub mod search;
pub mod space;
pub mod subvolume;
pub mod tree;

mod fsync;
mod log;
pub mod mount;
mod operations;
mod ordered;
mod reclaim;
mod reservations;
mod root;
mod transaction;
mod worker;
