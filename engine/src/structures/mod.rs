//! The structures that filesystems are made of: executable, with real capacities, checked.
//!
//! Nothing here knows time or locks. A structure does what the real one does and reports which blocks it touched;
//! the programs in `filesystems` charge time and take locks for that.

pub mod btree;
