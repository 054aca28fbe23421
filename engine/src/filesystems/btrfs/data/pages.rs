//! Which pages of a file are in memory, where that has an end. What is read is always there.

use super::FileData;
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::page_cache::PageCache;
use crate::filesystems::LaidOut;
use crate::waist::Machine;
use std::rc::Rc;

impl Btrfs {
    /// A file that is laid out.
    pub(crate) fn laid_out(&self, laid: LaidOut) -> FileData {
        let memory = &self.storage.memory;
        let (bytes, extents) = match laid.written {
            Some(written) => (written.bytes, written.bytes / u64::from(written.block)),
            None => (laid.bytes, laid.extents),
        };
        let mut data = self.extents.lay_out_data(!self.nodatacow && !laid.unwritten, |allocate| {
            if laid.unwritten {
                FileData::preallocated(bytes, allocate)
            } else {
                FileData::on_disk(bytes, extents, allocate)
            }
        });
        if laid.written.is_some_and(|written| written.files > 1) {
            data = data.written_in_turns();
        }
        if memory.is_limited() {
            let pages = Rc::new(PageCache::of(laid.bytes, laid.cached && laid.written.is_none()).noting_releases());
            match laid.written {
                Some(written) => memory.lay_out_written(&pages, written),
                None => memory.lay_out(&pages),
            }
            data.pages = Some(pages);
        }
        data
    }

    /// Memory for what is written (`prepare_pages`; here after the copy), dirty from then on.
    pub(crate) async fn get_pages<M: Machine>(&self, m: &M, slot: u32, (offset, bytes): (u64, u32)) {
        let Some(pages) = self.data(slot).pages.clone() else { return };
        let storage = &self.storage;
        storage.memory.add(m, &storage.writeback, &pages, (offset, bytes)).await;
        pages.write(offset, bytes);
    }
}
