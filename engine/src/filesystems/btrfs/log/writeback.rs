//! The data of an fsync: submitted as extents, or put into the tree, and waited for.

use crate::filesystems::btrfs::data::{Extent, Placed};
use crate::filesystems::btrfs::mount::{Btrfs, Inode};
use crate::filesystems::btrfs::tree::key::{Item, ItemKind, Key};
use crate::filesystems::btrfs::tree::search::Intent;
use crate::filesystems::BLOCK;
use crate::kernel::btrfs::{FsyncWait, NocowCheck};
use crate::waist::Machine;
use crate::waist::{Account, LockId, Time};

/// What an fsync has submitted.
pub(super) struct Writeback {
    /// What has got a new place.
    pub(super) extents: Vec<Extent>,
    /// Completed when it is on the device.
    pub(super) written: Vec<LockId>,
    /// Pages that this is.
    pub(super) pages: u64,
}

impl Btrfs {
    /// `btrfs_writepages`: what was written in memory is submitted, as extents, or goes into the tree at once.
    pub(super) async fn write_back<M: Machine>(&self, m: &M, slot: u32, inode: Inode) -> Writeback {
        let (c, wb) = (&self.fsync.costs, &self.storage.writeback);
        let mut extents = self.data(slot).write_back(inode.ino);
        let mut written = Vec::new();
        self.count_dirty(slot);
        wb.note(slot, 0);
        let bytes: u64 = extents.iter().map(|extent| extent.bytes).sum();
        if extents.is_empty() {
            extents.extend(self.data(slot).take_flushed(self.transaction.committed()));
            return Writeback { extents, written, pages: 0 };
        }
        if bytes == 0 {
            m.run(Account::System, c.write_inline).await;
            self.write_inline(m, slot, extents[0].item).await;
            return Writeback { extents, written, pages: 0 };
        }
        let pages = bytes / u64::from(BLOCK);
        wb.begin(pages);
        m.run(Account::System, self.writeback_time(pages)).await;
        extents = self.submit_extents(m, slot, inode.ino, extents, (&mut written, true)).await;
        extents.extend(self.data(slot).take_flushed(self.transaction.committed()));
        Writeback { extents, written, pages }
    }

    /// What is dirty goes to the device and into the tree (`btrfs_wait_ordered_range`); the next fsync still has to log it.
    pub(crate) async fn write_and_wait<M: Machine>(&self, m: &M, slot: u32, inode: Inode) {
        let writeback = self.write_back(m, slot, inode).await;
        self.wait_for_data(m, slot, &writeback).await;
        self.ordered.wait_for_file(m, slot).await;
        let transid = self.transid();
        self.data(slot).flush(transid, &writeback.extents);
    }

    /// Submits what is to be written; adds what completes when it is, and returns the extents of which
    /// the log has something to learn. Somebody waits for it, or nobody does.
    pub(crate) async fn submit_extents<M: Machine>(
        &self,
        m: &M,
        slot: u32,
        ino: u64,
        extents: Vec<Extent>,
        (written, waited): (&mut Vec<LockId>, bool),
    ) -> Vec<Extent> {
        if self.nodatacow || self.data(slot).is_preallocated() {
            for place in self.places_of(slot, &extents) {
                self.check_nocow(m, ino, place).await;
            }
        }
        let mut changed = Vec::new();
        for mut extent in extents {
            self.ordered.wait_for_range(m, slot, extent.offset, extent.bytes).await;
            let done = m.new_completion();
            if self.submit_ordered(m, slot, &mut extent, (done, waited)).await {
                changed.push(extent);
            }
            written.push(done);
        }
        changed
    }

    /// CPU time to write back so many pages that follow each other.
    pub(crate) fn writeback_time(&self, pages: u64) -> Time {
        self.fsync.costs.writepages + self.fsync.costs.page * (pages - 1)
    }

    /// `cow_file_range_inline`.
    pub(crate) async fn write_inline<M: Machine>(&self, m: &M, slot: u32, item: Item) {
        let handle = self.transaction.join(m).await;
        let fs_root = self.fs_root_with(item.key);
        let locked = fs_root.root.locked(m);
        let ops = locked.ops();
        let mut path = ops.replace_extent(item, 1).await;
        m.run(Account::System, fs_root.root.after_search(self.fsync.costs.item)).await;
        ops.release_path(&mut path).await;
        self.update_root_times(m, item.key.inode()).await;
        self.data(slot).change(self.transid());
        self.end_transaction(m, handle).await;
        self.transaction.reservations.release(m).await; // `btrfs_delalloc_release_metadata`
    }

    /// An fsync that has to log all of a file waits until the trees know its extents, others for the writeback.
    pub(super) async fn wait_for_data<M: Machine>(&self, m: &M, slot: u32, writeback: &Writeback) {
        for &written in &writeback.written {
            m.wchan("btrfs_wait_ordered_extents");
            m.wait_for_io(written).await;
            m.drop_completion(written);
        }
        self.storage.writeback.end(writeback.pages);
        self.storage.writeback.wait_for_pages(m, slot).await;
        if self.data(slot).needs_full_sync() || self.fsync.wait == FsyncWait::Ordered {
            self.ordered.wait_for_file(m, slot).await;
        }
    }

    /// The extents in which what is written lies already.
    fn places_of(&self, slot: u32, written: &[Extent]) -> Vec<Placed> {
        let data = self.data(slot);
        written.iter().filter_map(|extent| data.extent_of(extent.offset)).collect()
    }

    /// `run_delalloc_nocow`: looks the extent up, and whether somebody shares it.
    pub(crate) async fn check_nocow<M: Machine>(&self, m: &M, ino: u64, extent: Placed) {
        let fs_root = self.fs_root(ino);
        let locked = fs_root.root.locked(m);
        let ops = locked.ops();
        let (mut path, _) = ops.search_slot(Key::new(ino, ItemKind::ExtentData, extent.offset), Intent::Read).await;
        if self.nocow_check == NocowCheck::PathReleased {
            ops.release_path(&mut path).await;
        }
        if self.is_written_in_place(&extent) {
            self.extents.look_for_other_refs(m, extent.place).await;
            self.extents.look_for_csums(m, extent.place).await;
        }
        ops.release_path(&mut path).await;
    }

    /// Whether what is written to an extent stays there.
    pub(crate) fn is_written_in_place(&self, extent: &Placed) -> bool {
        self.nodatacow || extent.unwritten
    }
}
