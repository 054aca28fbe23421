//! What is done where blocks are short, before anybody hears of it: inodes without a name are freed at once, what they hold is waited for,
//! dirty data are written (`xfs_trans_alloc`, `xfs_create` and `xfs_file_buffered_write` of Linux 5.14 and later).
//!
//! Left out: that speculative preallocations are trimmed (there are none), that a write lets go of the IOLOCK meanwhile, and the blocks
//! that extents of delayed data may need for their map.

use super::super::mount::Xfs;
use crate::filesystems::pages::mapping;
use crate::filesystems::xfs::structures::groups::NoSpace;
use crate::filesystems::BLOCK;
use crate::kernel::xfs::Inactivation;
use crate::waist::Machine;

impl Xfs {
    /// Other files take all but so many bytes.
    pub(super) fn leave_free(&self, free: u64) -> Result<(), NoSpace> {
        let data = self.sync.dirty.needed().all;
        self.layout.borrow_mut().fill_up(free / u64::from(BLOCK) + data)?;
        self.filled.set(true);
        Ok(())
    }

    /// Room for a transaction that makes an inode or a name (`xfs_trans_alloc_icreate`, `xfs_trans_alloc_dir`): where there is none, once
    /// more after inodes were freed (`xfs_blockgc_flush_all`), and once after dirty data were written (`xfs_flush_inodes`).
    pub(super) async fn reserve_blocks<M: Machine>(&self, m: &M) -> Result<(), NoSpace> {
        if self.has_blocks(0) && self.layout.borrow().has_room() {
            return Ok(());
        }
        self.make_room(m, || self.has_blocks(0) && self.layout.borrow().has_room()).await
    }

    /// The same for so many pages that are to have blocks later (`xfs_bmapi_reserve_delalloc`).
    pub(super) async fn reserve_delalloc<M: Machine>(&self, m: &M, pages: u64) {
        if pages > 0 && !self.has_blocks(pages) && self.make_room(m, || self.has_blocks(pages)).await.is_err() {
            m.give_up("no space left in the filesystem");
        }
    }

    async fn make_room<M: Machine>(&self, m: &M, enough: impl Fn() -> bool) -> Result<(), NoSpace> {
        self.flush_inodegc(m).await;
        if !enough() {
            mapping::sync_inodes(self, m, &self.sync.dirty).await;
            self.flush_inodegc(m).await;
        }
        enough().then_some(()).ok_or(NoSpace)
    }

    /// Of a filesystem that others have filled: whether so many blocks are nobody's. On others data are not counted.
    fn has_blocks(&self, blocks: u64) -> bool {
        !self.filled.get() || self.layout.borrow().free_blocks() >= self.sync.dirty.needed().all + blocks
    }

    /// `xfs_inodegc_flush`.
    async fn flush_inodegc<M: Machine>(&self, m: &M) {
        self.inodegc.iter().for_each(|gc| gc.push(m));
        let waits: Vec<_> = self.inodegc.iter().filter_map(|gc| gc.flush(m)).collect();
        for done in waits {
            m.wchan("xfs_inodegc_flush");
            m.wait_for(done).await;
            m.drop_completion(done);
        }
    }

    /// `xfs_inodegc_want_queue_work`: nobody leaves an inode for later.
    pub(super) fn hurries_inodegc(&self) -> bool {
        self.filled.get() && self.inactivation == Inactivation::PerCpu && {
            let layout = self.layout.borrow();
            let data = self.sync.dirty.needed().all;
            layout.is_nearly_full() || layout.free_blocks() - data < layout.geometry().dblocks / 20
        }
    }

    /// What a file had is free once its inode is.
    pub(super) fn give_data_back(&self, slot: u32) {
        if self.filled.get() {
            self.sync.emptied(slot);
        }
    }
}
