//! The workloads: what the tasks do, as programs over the waist.

pub mod compile;
pub mod draw;
pub mod lock_cycle;
pub mod metadata;
pub mod range_lock;
