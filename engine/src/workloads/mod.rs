//! The workloads: what the tasks do, as programs over the waist.

#[cfg(feature = "filesystems")]
pub mod acts;
pub mod arrivals;
pub mod binding;
#[cfg(feature = "filesystems")]
pub mod compile;
#[cfg(feature = "filesystems")]
pub mod dbench;
#[cfg(feature = "filesystems")]
pub mod fio;
#[cfg(feature = "filesystems")]
pub mod format;
#[cfg(feature = "filesystems")]
pub mod fs_mark;
pub mod kernel_threads;
pub mod lock_cycle;
#[cfg(feature = "filesystems")]
pub mod metadata;
#[cfg(feature = "filesystems")]
pub mod mix;
#[cfg(feature = "filesystems")]
pub mod process;
#[cfg(feature = "filesystems")]
mod progress;
pub mod range_lock;

pub use crate::draw;
