//! The engine of simfs: the native machine and all built-in programs.

pub mod block;
mod chain_report;
pub mod costs;
mod devices;
pub mod draw;
pub mod filesystems;
mod fx;
pub mod hdr;
pub mod kernel;
mod lru;
pub mod machine;
mod memory;
pub mod nearest;
pub mod page_cache;
pub mod population;
pub mod random;
pub mod range_locks;
pub mod report;
pub mod run;
mod softirq;
pub mod spec;
pub mod structures;
pub mod vocabulary;
pub mod waist;
pub mod workloads;
pub mod workqueue;
mod writeback;

/// Names what the engine was built from: stored results of one source are not taken for those of another.
pub const SOURCE: &str = env!("SIMFS_ENGINE_SOURCE");

/// That of simfs.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
