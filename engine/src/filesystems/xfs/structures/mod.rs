//! What XFS has on disk and in memory, as plain data structures: no locks, no time.

pub mod ag;
mod audit;
pub mod bmap;
pub mod directory;
pub mod file_blocks;
pub mod file_extents;
mod filled;
pub mod free_space;
pub mod geometry;
pub mod groups;
pub mod iext;
pub mod inode_alloc;
pub mod layout;
pub mod report;
pub mod touch;
