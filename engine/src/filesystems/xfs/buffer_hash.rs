//! The hash table of a group's buffers (`pag_buf_hash`, `fs/xfs/xfs_buf.c`, 4.10 to 6.19). Who puts a buffer into a table that is three
//! quarters full has a worker of this CPU make one of twice the size; one that is less than three tenths full shrinks
//! (`rht_deferred_worker`, `lib/rhashtable.c`). The old table goes to RCU, so a grace period begins.

use super::by_block::ByBlock;
use super::structures::geometry::Geometry;
use crate::waist::{Account, CpuId, Machine, Time};
use crate::workqueue::Workqueue;
use std::cell::RefCell;

/// Buckets at first, and at least (`xfs_buf_hash_params`: `min_size`, and a third more than `nelem_hint`).
const LEAST: u32 = 32;
/// The AGF and the AGI, read when the filesystem was mounted (`xfs_ag_resv_init`).
const MOUNTED: u32 = 2;

/// How long the worker's code takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prices {
    /// A bucket of the old table, with what is in it.
    pub bucket: Time,
    /// The old table, when its grace period is over.
    pub free: Time,
}

/// A group's table (`struct rhashtable`).
#[derive(Clone, Copy, Debug)]
struct Table {
    buffers: u32,
    buckets: u32,
    /// A worker was told and has not begun.
    pending: bool,
}

impl Table {
    /// How many buckets the next one has, if there is to be one (`rht_grow_above_75`, `rht_shrink_below_30`, `rhashtable_shrink`).
    fn next(&self) -> Option<u32> {
        if self.buffers > self.buckets / 4 * 3 {
            return Some(self.buckets * 2);
        }
        let fitting = (self.buffers * 3 / 2).next_power_of_two().max(LEAST);
        (self.buffers < self.buckets * 3 / 10 && fitting < self.buckets).then_some(fitting)
    }

    /// So many buffers more, or less. Whether a worker is to be told.
    fn change(&mut self, by: i32) -> bool {
        self.buffers = self.buffers.saturating_add_signed(by);
        self.next().is_some() && !std::mem::replace(&mut self.pending, true)
    }

    /// The worker begins: the next table is there, and how many buckets of the old one are to be emptied.
    fn replace(&mut self) -> Option<u32> {
        self.pending = false;
        self.next().map(|next| std::mem::replace(&mut self.buckets, next))
    }
}

/// The tables of a mount.
pub(super) struct BufferHash {
    tables: RefCell<Vec<Table>>,
    /// Which blocks have a buffer.
    cached: RefCell<ByBlock<bool>>,
    agblklog: u32,
    /// Groups whose tables are to be replaced; before 4.10 there are no tables.
    work: Option<Workqueue<usize>>,
    prices: Prices,
}

impl BufferHash {
    /// As mounted.
    pub fn new<M: Machine>(m: &M, geometry: &Geometry, grows: bool, prices: Prices) -> Self {
        let empty = Table { buffers: MOUNTED, buckets: LEAST, pending: false };
        Self {
            tables: RefCell::new(vec![empty; geometry.agcount as usize]),
            cached: RefCell::new(ByBlock::new(geometry.agblklog)),
            agblklog: geometry.agblklog,
            work: grows.then(|| Workqueue::new(m)),
            prices,
        }
    }

    /// Whether it has workers.
    pub fn grows(&self) -> bool {
        self.work.is_some()
    }

    /// The group whose table changes, if this block had no buffer, or had one.
    fn set(&self, fsblock: u64, there: bool) -> Option<usize> {
        let before = std::mem::replace(self.cached.borrow_mut().of(fsblock), there);
        (before != there).then_some((fsblock >> self.agblklog) as usize)
    }

    /// These blocks had buffers before the run, in tables that were large enough.
    pub fn fill(&self, blocks: impl Iterator<Item = u64>) {
        for group in blocks.filter_map(|block| self.set(block, true)) {
            let table = &mut self.tables.borrow_mut()[group];
            table.buffers += 1;
            table.replace();
        }
    }

    /// A block gets a buffer (`xfs_buf_find_insert`) or loses it (`xfs_buf_rele` of a stale one).
    pub async fn change<M: Machine>(&self, m: &M, fsblock: u64, there: bool) {
        let Some((work, group)) = self.work.as_ref().zip(self.set(fsblock, there)) else { return };
        let told = self.tables.borrow_mut()[group].change(if there { 1 } else { -1 });
        if told {
            work.queue(m, group).await;
        }
    }

    /// What the worker of a CPU does, for ever (`rht_deferred_worker`, of the workqueue `events`). It gives way after a few buckets, in the
    /// kernel after each.
    pub async fn replace_tables<M: Machine>(&self, m: &M, cpu: CpuId) {
        let Some(work) = &self.work else { return };
        loop {
            let group = work.next(m, cpu).await;
            let old = self.tables.borrow_mut()[group].replace();
            let Some(buckets) = old else { continue };
            for _ in 0..buckets / LEAST {
                m.run(Account::System, Time::from(LEAST) * self.prices.bucket).await;
                m.cond_resched().await;
            }
            m.call_rcu(1, self.prices.free);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(buffers: u32, buckets: u32) -> Table {
        Table { buffers, buckets, pending: false }
    }

    #[test]
    fn a_table_doubles_above_three_quarters_and_shrinks_below_three_tenths() {
        assert_eq!([24, 25].map(|buffers| table(buffers, 32).next()), [None, Some(64)]);
        assert_eq!([48, 49].map(|buffers| table(buffers, 64).next()), [None, Some(128)]);
        assert_eq!([76, 75, 20].map(|buffers| table(buffers, 256).next()), [None, Some(128), Some(32)]);
        assert_eq!(table(0, 32).next(), None, "32 buckets are the least");
    }

    #[test]
    fn a_worker_is_told_once_until_it_begins() {
        let mut table = table(23, 32);
        assert_eq!([1, 1, 1].map(|more| table.change(more)), [false, true, false]);
        assert_eq!((table.replace(), table.buckets), (Some(32), 64));
        assert_eq!(table.replace(), None, "it is large enough");
        assert!(!table.change(1) && !table.pending);
    }
}
