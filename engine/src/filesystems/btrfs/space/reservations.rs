//! Room that transactions, delayed items and writes through the page cache reserve and give back, under the spinlocks of the metadata's and
//! the data's `struct btrfs_space_info` (`fs/btrfs/space-info.c`, `block-rsv.c`, `delalloc-space.c`).
//!
//! The spinlocks of the block reserves are as global and are taken in the same calls: the space_info's stands for them, too. Only that of
//! the global reserve is apart where each reservation takes it inside (`btrfs_block_rsv_reserved`).

use crate::filesystems::costs::Costs;
use crate::kernel::btrfs::SpaceInfoLine;
use crate::waist::Machine;
use crate::waist::{Access, Account, LineId, LockId, Side, Time};

/// The spinlocks and what is done under them.
pub struct Reservations {
    metadata: SpaceInfo,
    data: SpaceInfo,
    delalloc: Option<SummedCounters>,
    /// The lock of `global_block_rsv`, and whether each reservation reads its size under it.
    global_reserve: LockId,
    reserve_locks: bool,
    /// Time under the lock of a reservation (`__reserve_bytes`).
    pub reserve_time: Time,
    /// And of giving back (`btrfs_block_rsv_release`).
    pub release_time: Time,
}

impl Reservations {
    /// Nothing is reserved; the error names a cost that is missing.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let sum_time = costs.sum(&["space_sum_cpu"])?;
        let line = costs.rules().space_info_line;
        Ok(Self {
            metadata: SpaceInfo::new(m, costs.number("btrfs_space_info.shared")? as u32, line),
            data: SpaceInfo::new(m, 1, line), // without a block reserve
            delalloc: costs.rules().preempt_sums.then(|| SummedCounters::new(m, sum_time)),
            global_reserve: m.new_lock(m.class("btrfs.block_rsv", "btrfs.block_rsv")),
            reserve_locks: costs.rules().reserve_locks,
            reserve_time: costs.sum(&["space_reserve"])?,
            release_time: costs.sum(&["space_release"])?,
        })
    }

    /// `btrfs_reserve_metadata_bytes`, which finds room, and asks whether to reclaim some (`need_preemptive_reclaim`).
    pub async fn reserve<M: Machine>(&self, m: &M) {
        self.metadata.lock(m).await;
        if self.reserve_locks {
            self.look_at_global_reserve(m).await;
        }
        let sums = self.delalloc.as_ref().map_or(0, |counters| counters.sum(m));
        m.run(Account::System, self.reserve_time + sums).await;
        self.metadata.unlock(m).await;
    }

    /// The size of `global_block_rsv` is read under its lock.
    pub async fn look_at_global_reserve<M: Machine>(&self, m: &M) {
        m.lock(self.global_reserve, Side::Write).await;
        m.unlock(self.global_reserve, Side::Write).await;
    }

    /// `btrfs_block_rsv_release`.
    pub async fn release<M: Machine>(&self, m: &M) {
        self.metadata.lock(m).await;
        m.run(Account::System, self.release_time).await;
        self.metadata.unlock(m).await;
    }

    /// `btrfs_reserve_data_bytes`, or `btrfs_free_reserved_data_space_noquota`: data are not overcommitted, so a sum says whether there is
    /// room, which takes what giving back takes.
    pub async fn change_data<M: Machine>(&self, m: &M) {
        self.data.lock(m).await;
        m.run(Account::System, self.release_time).await;
        self.data.unlock(m).await;
    }

    /// A CPU's `delalloc_bytes` change.
    pub fn count_delalloc<M: Machine>(&self, m: &M) {
        self.delalloc.iter().for_each(|counters| counters.add(m));
    }
}

/// One kind of room.
struct SpaceInfo {
    lock: LockId,
    line: SpaceInfoLine,
    /// What is written besides in lines of its own.
    others: Option<LineId>,
}

impl SpaceInfo {
    /// What is written in it takes so many lines, that of `bytes_may_use` among them, which may be the lock's.
    fn new<M: Machine>(m: &M, lines: u32, line: SpaceInfoLine) -> Self {
        let others = lines - u32::from(line == SpaceInfoLine::WithUse);
        let lock = m.new_lock(m.class("btrfs.space_info", "btrfs.space_info"));
        Self { lock, line, others: (others > 0).then(|| m.new_line("btrfs.space_info counts", others)) }
    }

    async fn lock<M: Machine>(&self, m: &M) {
        m.lock(self.lock, Side::Write).await;
        if self.line == SpaceInfoLine::WithUse {
            m.touch_beside(self.lock, Access::Write);
        }
        if let Some(line) = self.others {
            m.touch(line, Access::Write);
        }
    }

    async fn unlock<M: Machine>(&self, m: &M) {
        m.unlock(self.lock, Side::Write).await;
    }
}

/// `delalloc_bytes` and `ordered_bytes`, each CPU's counts on a line of its own, where both are summed over all CPUs
/// (`percpu_counter_sum_positive`).
struct SummedCounters {
    cpus: Vec<LineId>,
    /// To add up both.
    time: Time,
}

impl SummedCounters {
    /// With the time to add one CPU's counts.
    fn new<M: Machine>(m: &M, each: Time) -> Self {
        let cpus: Vec<_> = (0..m.cpus()).map(|_| m.new_line("btrfs.percpu counters", 1)).collect();
        let time = 2 * cpus.len() as Time * each;
        Self { cpus, time }
    }

    /// A write adds to its CPU's.
    fn add<M: Machine>(&self, m: &M) {
        m.touch(self.cpus[m.cpu() as usize], Access::Write);
    }

    fn sum<M: Machine>(&self, m: &M) -> Time {
        for line in &self.cpus {
            m.touch(*line, Access::Read);
        }
        self.time
    }
}
