//! Direct I/O (`fs/btrfs/direct-io.c`). Reads share `i_rwsem`, look the checksums up and wait for the worker that verifies them. Writes
//! of data with checksums go through the page cache since 6.15, because the caller may change them while they are written; before,
//! and where data have no checksums, they share `i_rwsem` until they are on the device, in a new place each or, with `nodatacow`,
//! where they were. Before 5.11 reads took no lock, and writes had it for themselves, since 3.9 not while the device worked. Either way
//! an ordered extent tells the trees. Of requests that nobody waits for the lock is held until they are submitted; what goes through the
//! page cache is waited for.
//!
//! Requests that are not of whole blocks go through the page cache too, in all kernels (`check_direct_IO`): a read leaves the block
//! there, a write reads it, writes all of it, waits for that, and drops it (`invalidate_mapping_pages`).

use super::Extent;
use crate::cost_table;
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::tree::items;
use crate::filesystems::by_slot::BySlot;
use crate::filesystems::costs::Costs;
use crate::filesystems::{File, Io};
use crate::kernel::btrfs::{DioWrites, DirectWrite};
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

cost_table!(DirectCosts {
    read_start: ["dread.get_extent"],
    lookup: ["dread.lookup_csums"],
    read_end: ["dread.exit_pread64"],
    write_start: ["dwrite.get_extent"],
    dirty: ["dwrite.dirty"],
    reserve: ["dwrite.reserve_extent"],
    ordered: ["dwrite.ordered_extent_add", "dwrite.get_extent_2"],
    submit: ["dwrite.submit"],
    write_end: ["dwrite.exit_pwrite64"],
});

/// Times of direct I/O, and how kernels differ in it.
pub(crate) struct Direct {
    costs: DirectCosts,
    writes: DirectWrite,
    held: DioWrites,
    /// Blocks of files in the page cache, by their first byte, because of requests of less than a block.
    cached: BySlot<Rc<RefCell<BTreeSet<u64>>>>,
}

impl Direct {
    pub(crate) fn new(costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            costs: DirectCosts::new(costs)?,
            writes: costs.rules().direct_write,
            held: costs.rules().btrfs_dio_writes,
            cached: BySlot::default(),
        })
    }

    /// Whether reads take the inode's lock, too (`btrfs_direct_read`, since 5.11).
    fn reads_lock(&self) -> bool {
        matches!(self.held, DioWrites::Shared | DioWrites::ReadsShared)
    }
}

impl Btrfs {
    /// `btrfs_direct_read`.
    pub(crate) async fn direct_read<M: Machine>(&self, m: &M, file: &File, io: Io) {
        let (c, lock) = (&self.direct.costs, self.file(file.inode).i_rwsem);
        m.at("read");
        if io.is_unaligned() {
            return self.read_part(m, file, io).await;
        }
        let locks = self.direct.reads_lock();
        if locks {
            m.lock(lock, Side::Read).await;
        }
        self.ordered.wait_for_range(m, file.inode, io.offset, u64::from(io.bytes)).await;
        self.read_extent(m, file.inode, io).await;
        m.moved(u64::from(io.bytes));
        m.run(Account::System, c.read_end).await;
        if locks {
            m.unlock(lock, Side::Read).await;
        }
    }

    /// Finds the data of a request and their checksums, and reads them.
    async fn read_extent<M: Machine>(&self, m: &M, slot: u32, io: Io) {
        let c = &self.direct.costs;
        m.run(Account::System, c.read_start).await;
        let extent = self.data(slot).extent_of(io.offset);
        if let (Some(extent), false) = (extent, self.nodatacow) {
            let place = extent.place + (io.offset - extent.offset);
            self.extents.look_for_csums(m, place).await;
            m.run(Account::System, c.lookup).await;
        }
        self.read_data(m, io).await;
    }

    /// `filemap_read` of part of a block, which takes no lock.
    async fn read_part<M: Machine>(&self, m: &M, file: &File, io: Io) {
        self.read_blocks(m, file.inode, io).await;
        self.sb.calls.read(m, file, (io.offset, io.bytes)).await;
        if let Some(done) = io.done {
            m.complete(done).await;
        }
    }

    /// The blocks of a request are in the page cache (`prepare_uptodate_page`, `btrfs_read_folio`).
    async fn read_blocks<M: Machine>(&self, m: &M, slot: u32, io: Io) {
        let (blocks, cached) = (io.whole_blocks(), self.direct.cached.get_or_make(slot, Rc::default));
        if cached.borrow().contains(&blocks.offset) {
            return;
        }
        self.read_extent(m, slot, Io { done: None, ..blocks }).await;
        cached.borrow_mut().insert(blocks.offset);
    }

    /// `btrfs_direct_write` within the file.
    pub(crate) async fn direct_write<M: Machine>(&self, m: &M, file: &File, io: Io) {
        let (c, slot) = (&self.direct.costs, file.inode);
        let inode = self.file(slot);
        let (asked, part, io) = (io, io.is_unaligned(), io.whole_blocks());
        let buffered = part || (!self.nodatacow && self.direct.writes == DirectWrite::Buffered);
        let shared = !buffered && self.direct.held == DioWrites::Shared;
        let side = if shared { Side::Read } else { Side::Write };
        let relocks = !buffered && self.direct.held == DioWrites::Relocked;
        if part && self.direct.reads_lock() {
            let side = if self.direct.held == DioWrites::Shared { Side::Read } else { Side::Write };
            m.lock(inode.i_rwsem, side).await; // until check_direct_IO has seen the request
            m.unlock(inode.i_rwsem, side).await;
        }
        m.lock(inode.i_rwsem, side).await;
        m.run(Account::System, c.write_start).await;
        self.ordered.wait_for_range(m, slot, io.offset, u64::from(io.bytes)).await;
        if part {
            self.read_blocks(m, slot, io).await;
        }
        if buffered {
            m.run(Account::System, c.dirty).await;
            m.unlock(inode.i_rwsem, side).await;
        }
        self.reclaim_if_needed(m); // btrfs_delalloc_reserve_metadata
        self.reserve_extent(m).await;
        m.run(Account::System, c.reserve).await;
        let before = self.data(slot).extent_of(io.offset).filter(|_| self.nodatacow);
        if let Some(before) = before {
            self.check_nocow(m, inode.ino, before).await;
        }
        if relocks {
            m.unlock(inode.i_rwsem, side).await;
        }
        m.run(Account::System, c.ordered + c.submit).await;
        let item = items::extent(inode.ino, io.offset);
        let extent = Extent { item, offset: io.offset, place: 0, bytes: u64::from(io.bytes) };
        self.write_extent(m, slot, extent, io.done.filter(|_| !buffered)).await;
        m.moved(u64::from(asked.bytes));
        self.direct.cached.get_or_make(slot, Rc::default).borrow_mut().remove(&io.offset);
        if relocks {
            m.lock(inode.i_rwsem, side).await;
        }
        m.run(Account::System, c.write_end).await;
        if !buffered {
            m.unlock(inode.i_rwsem, side).await;
        } else if let Some(done) = io.done {
            m.complete(done).await; // it was waited for all the same
        }
    }

    /// Submits a direct write, which completes `done`, or is waited for.
    async fn write_extent<M: Machine>(&self, m: &M, slot: u32, mut extent: Extent, done: Option<LockId>) {
        let written = done.unwrap_or_else(|| m.new_completion());
        self.submit_ordered(m, slot, &mut extent, (written, true)).await;
        if done.is_none() {
            m.wchan("iomap_dio_rw");
            m.wait_for_io(written).await;
            m.drop_completion(written);
        }
    }
}
