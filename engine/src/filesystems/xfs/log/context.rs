//! What one checkpoint is made of (`struct xfs_cil_ctx`).

use super::ail::ItemId;

/// What one checkpoint is made of.
#[derive(Debug, Default)]
pub struct Context {
    /// Its number.
    pub sequence: u32,
    /// What it logs.
    pub items: Vec<ItemId>,
    /// How long that is.
    pub bytes: u64,
    /// On how many CPUs it was logged.
    pub parts: u32,
    /// What it takes of the log, with its commit record and without headers of log records.
    pub space: u64,
}
