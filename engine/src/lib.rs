//! The engine of simfs: the native machine and all built-in programs.

#[cfg(feature = "filesystems")]
pub mod block;
mod chain_report;
#[cfg(feature = "filesystems")]
pub mod costs;
#[cfg(feature = "filesystems")]
mod devices;
pub mod draw;
#[cfg(feature = "filesystems")]
pub mod filesystems;
mod fx;
mod gathered;
pub mod hdr;
pub mod kernel;
#[cfg(feature = "filesystems")]
mod lru;
pub mod machine;
#[cfg(feature = "filesystems")]
mod memory;
pub mod nearest;
#[cfg(feature = "filesystems")]
pub mod page_cache;
pub mod population;
pub mod random;
pub mod range_locks;
pub mod report;
pub mod run;
#[cfg(feature = "filesystems")]
mod softirq;
pub mod spec;
pub mod stop;
pub mod structures;
#[cfg(feature = "filesystems")]
pub mod vocabulary;
pub mod waist;
pub mod workloads;
#[cfg(feature = "filesystems")]
pub mod workqueue;
#[cfg(feature = "filesystems")]
mod writeback;

/// Names what the engine was built from: stored results of one source are not taken for those of another.
pub const SOURCE: &str = env!("SIMFS_ENGINE_SOURCE");

/// That of simfs.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

// As unit tests: a program of their own would have the whole engine compiled once more.
#[cfg(test)]
extern crate self as simfs_engine;
#[cfg(test)]
#[path = "../tests/engine/main.rs"]
mod from_outside;
