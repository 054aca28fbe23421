//! What creations in all directories write of `struct ext4_sb_info` and of the device's buffers, besides the groups.
//!
//! It is a few stores each, which the traced steps around them have: holds are those of the lines.

use super::known_buffers::{Buffer, KnownBuffers};
use crate::filesystems::costs::Costs;
use crate::kernel::ext4::EsStats;
use crate::waist::Machine;
use crate::waist::{Access, LineId, LockId, Side};
use std::cell::Cell;

/// Buffers of other blocks that a creation uses, of the 16 that each CPU knows (`bh_lrus`): two of the inode table, a bitmap, the
/// root of the directory.
const OTHERS: u32 = 4;
const KNOWN: u32 = 16;

/// A count of lookups.
enum LookupCount {
    Nowhere,
    Shared(LineId),
    PerCpu(PerCpuCounter),
}

impl LookupCount {
    fn new<M: Machine>(m: &M, design: EsStats) -> Self {
        match design {
            EsStats::Nowhere => Self::Nowhere,
            EsStats::Shared => Self::Shared(m.new_line("ext4.es_stats_cache_hits", 1)),
            EsStats::PerCpu => Self::PerCpu(PerCpuCounter::new(m)),
        }
    }

    fn add<M: Machine>(&self, m: &M) {
        match self {
            Self::Nowhere => (),
            Self::Shared(line) => m.touch(*line, Access::Write),
            Self::PerCpu(counter) => counter.add(m),
        }
    }
}

/// `struct percpu_counter`: each CPU counts for itself, and adds a batch to the count of all under its lock. The pointer to
/// the CPUs' counts lies in the line of that count, so whoever counts reads it (`percpu_counter_add_batch`).
struct PerCpuCounter {
    line: LineId,
    batch: u32,
    counts: Vec<Cell<u32>>,
}

impl PerCpuCounter {
    fn new<M: Machine>(m: &M) -> Self {
        let cpus = m.cpus();
        let batch = (2 * cpus).max(32); // compute_batch_value
        Self {
            line: m.new_line("ext4.es_stats_cache_hits", 1),
            batch,
            counts: (0..cpus).map(|_| Cell::new(0)).collect(),
        }
    }

    fn add<M: Machine>(&self, m: &M) {
        let count = &self.counts[m.cpu() as usize];
        count.set((count.get() + 1) % self.batch);
        m.touch(self.line, if count.get() == 0 { Access::Atomic } else { Access::Read });
    }
}

/// Their locks and lines.
pub(super) struct SbInfo {
    /// `s_next_gen_lock` and the number beside it (until 4.14).
    next_generation: Option<LockId>,
    /// Who lost an inode to another looks for the next one under the group's lock.
    pub(super) locked_search: bool,
    /// `es_stats_cache_hits` (since 3.18).
    es_stats: LookupCount,
    /// `private_lock` of the device's page cache, and whether who looks for a buffer takes it (until 6.14).
    private_lock: LockId,
    finds_locked: bool,
    /// The buffers that walks have used, and a line for those of each CPU.
    known: KnownBuffers,
    counts: Vec<LineId>,
}

impl SbInfo {
    /// Of an empty filesystem.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Self {
        let rules = costs.rules();
        let next_generation = || m.new_lock(m.class("ext4.s_next_gen_lock", "ext4.next_generation"));
        Self {
            next_generation: rules.next_generation.then(next_generation),
            locked_search: rules.locked_inode_search,
            es_stats: LookupCount::new(m, rules.es_stats),
            private_lock: m.new_lock(m.class("block.private_lock", "block.private_lock")),
            finds_locked: rules.private_lock,
            known: KnownBuffers::new(m.cpus()),
            counts: (0..m.cpus()).map(|_| m.new_line("ext4.bh_lrus", 1)).collect(),
        }
    }

    /// The generation of a new inode.
    pub async fn next_generation<M: Machine>(&self, m: &M) {
        if let Some(lock) = self.next_generation {
            m.lock(lock, Side::Write).await;
            m.unlock(lock, Side::Write).await;
        }
    }

    /// `ext4_es_lookup_extent` finds where a block is, and counts that.
    pub fn count_lookup<M: Machine>(&self, m: &M) {
        self.es_stats.add(m);
    }

    /// `__find_get_block`: a CPU that knows the buffers of all leaves of a directory looks for none in the page cache.
    pub async fn find_leaf<M: Machine>(&self, m: &M, leaves: u32) {
        if leaves > KNOWN - OTHERS {
            self.find_buffer(m).await;
        }
    }

    /// `__find_get_block` of a walk's: unless this CPU knows the buffer it is looked for, and gets a reference under the lock (`get_bh`).
    pub async fn get_block<M: Machine>(&self, m: &M, buffer: Buffer) {
        if self.known.knew(m.cpu(), buffer) || !self.finds_locked {
            return;
        }
        m.lock(self.private_lock, Side::Write).await;
        m.touch(self.counts[m.cpu() as usize], Access::Atomic);
        m.settle().await;
        m.unlock(self.private_lock, Side::Write).await;
    }

    /// `__find_get_block_slow`.
    pub async fn find_buffer<M: Machine>(&self, m: &M) {
        if self.finds_locked {
            self.lists_buffer(m).await;
        }
    }

    /// `private_lock` is taken to put a buffer onto an inode's list, or to take it off (`mark_buffer_dirty_inode`, `fsync_buffers_list`).
    pub async fn lists_buffer<M: Machine>(&self, m: &M) {
        m.lock(self.private_lock, Side::Write).await;
        m.unlock(self.private_lock, Side::Write).await;
    }
}
