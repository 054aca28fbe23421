//! The structures that filesystems are made of: executable, with real capacities, checked.
//!
//! Nothing here knows time or locks. A structure does what the real one does and reports which blocks or nodes it
//! touched; the programs in `filesystems` and `range_locks` charge time and take locks for that.
use crate::waist::Access;

pub mod btree;
pub mod interval_tree;
pub mod range_btree;

/// A node of a structure in memory.
pub type NodeId = u32;

/// Is told of every node that an operation reads or changes, in the order in which it does.
pub trait Touch: FnMut(NodeId, Access) {}
impl<F: FnMut(NodeId, Access)> Touch for F {}
