//! btrfs as the VFS calls it: operations on names (`names.rs`) and on open files (`file.rs`), and what they do in a transaction
//! (`inode.rs`).
//!
//! Order and times are those of event traces of a 6.18 kernel.

mod attributes;
mod costs;
mod file;
mod inode;
mod links;
mod names;
mod readdir;
mod reflink;
pub(super) mod walk;

pub(super) use costs::OperationCosts;
