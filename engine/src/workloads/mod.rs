//! The workloads: what the tasks do, as programs over the waist.

pub mod acts;
pub mod arrivals;
pub mod binding;
pub mod compile;
pub mod dbench;
pub mod fio;
pub mod format;
pub mod fs_mark;
pub mod kernel_threads;
pub mod lock_cycle;
pub mod metadata;
pub mod mix;
pub mod process;
mod progress;
pub mod range_lock;

pub use crate::draw;
