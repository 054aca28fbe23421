//! Writing back without an fsync (`btrfs_writepages` by the flusher): delayed allocation takes a place for a range of dirty pages, an
//! ordered extent tells the trees when it is written (`run_delalloc_range`, `cow_file_range`). A range is a request of 1,280 KiB at
//! most; the kernel's is up to 128 MiB in several requests.

use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::BLOCK;
use crate::waist::Account;
use crate::waist::Machine;
use crate::writeback::{Flushed, Writeback, REQUEST_PAGES};

impl Flushed for Btrfs {
    fn writeback(&self) -> &Writeback {
        &self.storage.writeback
    }

    fn dirty_pages(&self, slot: u32) -> u64 {
        self.data(slot).dirty_pages()
    }

    async fn write_pages<M: Machine>(&self, m: &M, slot: u32, most: u64) {
        let (wb, ino, mut left) = (&self.storage.writeback, self.file(slot).ino, most);
        if self.data(slot).is_small() {
            let inline = self.data(slot).write_back(ino);
            wb.note(slot, 0);
            if let Some(extent) = inline.first() {
                self.write_inline(m, slot, extent.item).await;
            }
            return;
        }
        while left > 0 {
            wb.room(m).await;
            let extent = self.data(slot).take_extent(ino, left.min(REQUEST_PAGES) * u64::from(BLOCK));
            let Some(extent) = extent else { return };
            let (pages, dirty) = (extent.bytes / u64::from(BLOCK), self.data(slot).dirty_pages());
            wb.note(slot, dirty);
            left -= pages;
            m.run(Account::System, self.flusher_time(pages)).await;
            let mut written = Vec::new();
            let moved = self.submit_extents(m, slot, ino, vec![extent], (&mut written, false)).await;
            self.data(slot).flush(self.transid(), &moved);
            wb.submitted(written[0], slot, pages);
        }
    }
}
