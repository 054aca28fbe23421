//! Writing back without an fsync (`btrfs_writepages` by the flusher): delayed allocation takes a place for a range of dirty pages, an
//! ordered extent tells the trees when it is written (`run_delalloc_range`, `cow_file_range`). A range is a request of 1,280 KiB at
//! most; the kernel's is up to 128 MiB in several requests.

use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::BLOCK;
use crate::waist::Machine;
use crate::waist::{Account, LockId};
use crate::writeback::{Flushed, Why, Writeback, METADATA, REQUEST_PAGES};

impl Flushed for Btrfs {
    fn writeback(&self) -> &Writeback {
        &self.storage.writeback
    }

    fn start_plug<M: Machine>(&self, m: &M) {
        self.storage.start_flusher_plug(m);
    }

    fn finish_plug<M: Machine>(&self, m: &M) {
        self.storage.finish_plug(m);
    }

    fn dirty_pages(&self, slot: u32) -> u64 {
        self.data(slot).dirty_pages()
    }

    fn may_write(&self, slot: u32, why: Why) -> bool {
        slot != METADATA || self.may_write_blocks(why)
    }

    async fn write_pages<M: Machine>(&self, m: &M, slot: u32, most: u64) {
        if slot == METADATA {
            return self.flush_blocks(m, most).await;
        }
        let (wb, mut left) = (&self.storage.writeback, most);
        while left > 0 {
            wb.room(m, 0).await;
            let Some((written, pages)) = self.write_some(m, slot, left).await else { return };
            left -= pages;
            wb.submitted(written, slot, pages);
        }
    }
}

impl Btrfs {
    /// Submits a request of at most so many pages: what its end completes, and its pages. A small file goes into the tree.
    pub(in crate::filesystems::btrfs) async fn write_some<M: Machine>(
        &self,
        m: &M,
        slot: u32,
        most: u64,
    ) -> Option<(LockId, u64)> {
        let (wb, ino) = (&self.storage.writeback, self.file(slot).ino);
        if self.data(slot).is_small() {
            let inline = self.data(slot).write_back(ino);
            self.count_dirty(slot);
            wb.note(slot, 0);
            if let Some(extent) = inline.first() {
                self.write_inline(m, slot, extent.item).await;
            }
            return None;
        }
        let extent = self.data(slot).take_extent(ino, most.min(REQUEST_PAGES) * u64::from(BLOCK))?;
        let (pages, dirty) = (extent.bytes / u64::from(BLOCK), self.data(slot).dirty_pages());
        self.count_dirty(slot);
        wb.note(slot, dirty);
        m.run(Account::System, self.flusher_time(pages)).await;
        let mut written = Vec::new();
        let moved = self.submit_extents(m, slot, ino, vec![extent], (&mut written, false)).await;
        self.data(slot).flush(self.transid(), &moved);
        Some((written[0], pages))
    }
}
