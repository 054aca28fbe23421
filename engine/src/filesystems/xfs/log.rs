//! The log as transactions meet it: the reservation heads, and the commit into the CIL under `xc_ctx_lock` held shared.
//!
//! The CIL is per CPU since 5.14, so a commit writes few shared lines besides the context lock's.

use crate::filesystems::costs::Costs;
use crate::machine::{Access, LineId, LockId, Side};
use crate::waist::Machine;

/// The log of one mount.
pub struct Log {
    /// `l_reserve_head` and `l_write_head`: atomics that every reservation moves.
    grant_heads: LineId,
    /// Space accounting of the CIL context.
    cil: LineId,
    ctx_lock: LockId,
}

impl Log {
    /// Makes the log's lines and locks.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let ctx = m.class("xfs.xc_ctx_lock", "xfs.cil_ctx");
        Ok(Self {
            grant_heads: m.new_line(costs.number("xfs_log.grant_heads")? as u32),
            cil: m.new_line(costs.number("xfs_cil.shared")? as u32),
            ctx_lock: m.new_lock(ctx),
        })
    }

    /// `xfs_log_reserve`: enough space, no waiting; the heads move to this CPU.
    pub fn reserve<M: Machine>(&self, m: &M) {
        m.touch(self.grant_heads, Access::Write);
    }

    /// `xlog_cil_commit` up to the point where the items' locks are dropped. The caller runs the time of it, drops the locks
    /// and calls [`Log::committed`].
    pub async fn commit<M: Machine>(&self, m: &M) {
        m.lock(self.ctx_lock, Side::Read).await;
        m.touch(self.cil, Access::Write);
    }

    /// The end of `xlog_cil_commit`, after the items' locks are dropped.
    pub async fn committed<M: Machine>(&self, m: &M) {
        m.unlock(self.ctx_lock, Side::Read).await;
        m.touch(self.grant_heads, Access::Write); // the unused part of the reservation goes back
    }
}
