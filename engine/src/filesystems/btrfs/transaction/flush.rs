//! What is done for room, and in which order (`enum btrfs_flush_state`, `flush_space` of `fs/btrfs/space-info.c`).

use super::reclaim::{Reclaimable, ITEM};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::space::outstanding::Shrink;
use crate::waist::{LockId, Machine};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    SomeItems,
    Items,
    SomeRefs,
    Refs,
    Delalloc,
    DelallocWait,
    DelallocFull,
    AllocChunk,
    AllocChunkForce,
    Commit,
}

impl Flush {
    /// Not in the first round.
    pub(super) fn is_hard(self) -> bool {
        matches!(self, Self::DelallocFull | Self::AllocChunkForce)
    }
}

/// For tickets (`RUN_DELAYED_IPUTS` has nothing to do here).
pub(super) const STEPS: [Flush; 10] = [
    Flush::SomeItems,
    Flush::Items,
    Flush::SomeRefs,
    Flush::Refs,
    Flush::Delalloc,
    Flush::DelallocWait,
    Flush::DelallocFull,
    Flush::AllocChunk,
    Flush::AllocChunkForce,
    Flush::Commit,
];
/// For an eviction, by itself (`evict_flush_states`).
pub(super) const EVICTION: [Flush; 9] = [
    Flush::SomeItems,
    Flush::Items,
    Flush::SomeRefs,
    Flush::Refs,
    Flush::Delalloc,
    Flush::DelallocWait,
    Flush::DelallocFull,
    Flush::AllocChunk,
    Flush::Commit,
];
/// After so many rounds that granted nothing tickets fail.
pub(super) const COMMIT_CYCLES: u32 = 2;

impl Btrfs {
    /// `flush_space`.
    pub(super) async fn flush_space<M: Machine>(&self, m: &M, runner: LockId, step: Flush) {
        let (Reclaimable { items, refs, .. }, wanted) = (self.reclaimable(), self.wanted());
        if let Flush::Delalloc | Flush::DelallocWait | Flush::DelallocFull = step {
            let waiting = || self.reclaim.tickets.bytes() > 0;
            let how = if step == Flush::Delalloc { Shrink::Begin } else { Shrink::Wait };
            let wanted = if step == Flush::DelallocFull { u64::MAX } else { wanted };
            return self.shrink_delalloc(m, (wanted, how), waiting).await;
        }
        let handle = self.transaction.join(m).await;
        match step {
            Flush::SomeItems => _ = self.run_nodes(m, (wanted / ITEM).max(1) * 2).await,
            Flush::Items => _ = self.run_nodes(m, items / ITEM).await,
            Flush::SomeRefs => self.run_refs(m, runner, wanted).await,
            Flush::Refs => self.run_refs(m, runner, refs).await,
            Flush::Delalloc | Flush::DelallocWait | Flush::DelallocFull => {}
            Flush::AllocChunk | Flush::AllocChunkForce => {
                _ = self.extents.refs.space.borrow_mut().alloc_chunk(step == Flush::AllocChunkForce);
            }
            Flush::Commit => {
                self.commit(m, handle, runner).await;
                return self.refill_global_reserve(u64::MAX);
            }
        }
        self.transaction.end(m, handle).await;
    }

    async fn run_refs<M: Machine>(&self, m: &M, runner: LockId, bytes: u64) {
        let count = (bytes / self.ref_bytes()).max(1);
        self.extents.run_delayed_refs(m, runner, count as usize).await;
        self.refill_global_reserve(count * self.ref_bytes());
    }

    /// `btrfs_calc_reclaim_metadata_size`.
    fn wanted(&self) -> u64 {
        let promised = self.extents.refs.space.borrow().promised(false);
        self.reclaim.tickets.bytes() + self.reserved().saturating_sub(promised)
    }
}
