//! Room that is reserved and given back under the spinlock of a `struct btrfs_space_info` (`fs/btrfs/space-info.c`, `block-rsv.c`): one
//! for metadata, which transactions, delayed items and writes need, one for data.
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
    /// No metadata is reserved; the error names a cost that is missing.
    pub fn of_metadata<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Self::new(m, costs, "space_reserve", costs.number("btrfs_space_info.shared")? as u32)
    }

    /// No data is reserved: room that is not overcommitted is found by adding up, as it is given back, and there is no block reserve.
    pub fn of_data<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        Self::new(m, costs, "space_release", 1)
    }

    fn new<M: Machine>(m: &M, costs: &Costs<'_>, reserve: &str, lines: u32) -> Result<Self, String> {
        Ok(Self {
            lock: m.new_lock(m.class("btrfs.space_info", "btrfs.space_info")),
            line: m.new_line(lines),
            reserve_time: costs.sum(&[reserve])?,
            release_time: costs.sum(&["space_release"])?,
        })
    }

    /// `btrfs_reserve_metadata_bytes` or `btrfs_reserve_data_bytes`, which finds room.
    pub async fn reserve<M: Machine>(&self, m: &M) {
        self.under_lock(m, self.reserve_time).await;
    }

    /// `btrfs_block_rsv_release`, `btrfs_free_reserved_data_space_noquota`.
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
