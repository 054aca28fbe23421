//! Room for metadata that transactions and delayed items reserve and give back, under the one spinlock of the metadata's
//! `struct btrfs_space_info` (`fs/btrfs/space-info.c`, `block-rsv.c`).
//!
//! The spinlocks of the block reserves are as global and are taken in the same calls: the space_info's stands for them, too.

use crate::filesystems::costs::Costs;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};

/// The space_info's spinlock and what is done under it.
pub struct Reservations {
    lock: LockId,
    line: LineId,
    /// Time under the lock of a reservation (`__reserve_bytes`).
    pub reserve_time: Time,
    /// And of giving back (`btrfs_block_rsv_release`).
    pub release_time: Time,
}

impl Reservations {
    /// Nothing is reserved; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            lock: m.new_lock(m.class("btrfs.space_info", "btrfs.space_info")),
            line: m.new_line(costs.number("btrfs_space_info.shared")? as u32),
            reserve_time: costs.sum(&["space_reserve"])?,
            release_time: costs.sum(&["space_release"])?,
        })
    }

    /// `btrfs_reserve_metadata_bytes`, which finds room.
    pub async fn reserve<M: Machine>(&self, m: &M) {
        self.under_lock(m, self.reserve_time).await;
    }

    /// `btrfs_block_rsv_release`.
    pub async fn release<M: Machine>(&self, m: &M) {
        self.under_lock(m, self.release_time).await;
    }

    async fn under_lock<M: Machine>(&self, m: &M, time: Time) {
        m.lock(self.lock, Side::Write).await;
        m.touch(self.line, Access::Write);
        m.run(Account::System, time).await;
        m.unlock(self.lock, Side::Write).await;
    }
}
