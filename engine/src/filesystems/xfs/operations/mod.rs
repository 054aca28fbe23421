//! XFS as the VFS calls it: operations on names (`names.rs`) and on open files (`file.rs`), and the transactions in them.
//!
//! Order and times are those of function traces of a 6.18 kernel.

mod attributes;
mod buffers;
pub mod bulkstat;
mod costs;
mod data_blocks;
mod debug;
mod enospc;
mod file;
pub mod file_io;
pub mod fsync;
pub mod inactive;
pub mod inodegc;
mod links;
mod names;
pub mod parents;
pub mod preallocate;
mod readdir;
pub mod release;
mod transactions;
pub mod walk;

pub(super) use costs::OperationCosts;
pub(super) use debug::Debug;
