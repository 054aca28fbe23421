//! What one checkpoint is made of (`struct xfs_cil_ctx`).

use super::ail::{ItemId, Lsn};

/// What one checkpoint is made of.
#[derive(Debug, Default)]
pub struct Context {
    /// Its number.
    pub sequence: u32,
    /// What it logs.
    pub items: Vec<ItemId>,
    /// How long that is.
    pub bytes: u64,
    /// Where it begins in the log.
    pub start: Lsn,
    /// Where it ends.
    pub end: Lsn,
}
