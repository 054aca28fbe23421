//! Writing where blocks are short (`fs/ext4/inode.c`, `balloc.c`): delayed allocation is left where the clusters that are free are not
//! half as many again as those that are promised (`ext4_nonda_switch`), and before that dirty data are written; then each page gets its
//! block in a handle of its own. Who finds none has a transaction committed that has freed some (`ext4_should_retry_alloc`).

use super::Ext4;
use crate::filesystems::calls::new_pages;
use crate::filesystems::pages::mapping;
use crate::filesystems::{NoSpace, BLOCK};
use crate::waist::Machine;

/// `s_resv_clusters`: a fiftieth of the filesystem, at most so many, that nobody may promise (`ext4_calculate_resv_clusters`).
const MOST_RESERVED: u64 = 4096;

impl Ext4 {
    /// Other files take all but so many bytes.
    pub(super) fn leave_free(&self, free: u64) -> Result<(), NoSpace> {
        let (blocks, data) = (free / u64::from(BLOCK), self.fsync.dirty.needed().all);
        let data = data.saturating_sub(self.mballoc.given());
        let excess = self.mballoc.free().checked_sub(self.reserved_blocks() + data + blocks).ok_or(NoSpace)?;
        self.mballoc.give_others(excess);
        self.filled.set(true);
        Ok(())
    }

    fn reserved_blocks(&self) -> u64 {
        (self.blocks / 50).min(MOST_RESERVED)
    }

    /// Blocks that are free and promised to nobody (`ext4_has_free_clusters`), if files needed so many fewer.
    fn left(&self, fewer: u64) -> u64 {
        let (given, needed) = (self.mballoc.given(), self.fsync.dirty.needed().all.saturating_sub(fewer));
        self.mballoc.free().saturating_sub(self.reserved_blocks() + needed.saturating_sub(given))
    }

    /// `ext4_nonda_switch`, where other files have filled it. The counts are of all CPUs together, each within a batch.
    async fn leaves_delayed_allocation<M: Machine>(&self, m: &M) -> bool {
        let (delayed, watermark) = (self.fsync.dirty.needed().delayed, 4 * u64::from(m.cpus()) * batch(m.cpus()));
        let free = self.left(0) + delayed;
        if delayed > 0 && free < 2 * delayed {
            mapping::sync_inodes(self, m, &self.fsync.dirty).await; // try_to_writeback_inodes_sb
        }
        2 * free < 3 * delayed || free < delayed + watermark
    }

    /// A write has made a file so many bytes longer, of this size before: without delayed allocation the new pages get blocks now
    /// (`ext4_write_begin`). Whether it is so.
    pub(super) async fn allocates_now<M: Machine>(&self, m: &M, slot: u32, size: u64, bytes: u32) -> bool {
        if !self.filled.get() || !self.leaves_delayed_allocation(m).await {
            return false;
        }
        for _ in 0..new_pages(size, bytes) {
            if self.left(new_pages(size, bytes)) == 0 || self.alloc_file_blocks(m, slot, BLOCK).await.is_err() {
                m.give_up("no space left in the filesystem");
                return true;
            }
        }
        self.fsync.dirty.allocated(slot, bytes);
        true
    }
}

/// `percpu_counter_batch`.
fn batch(cpus: u32) -> u64 {
    u64::from((2 * cpus).max(32))
}
