//! `fsync` (`xfs_file_fsync`): dirty pages are written, then the log is forced up to the checkpoint that has the inode; where that is on
//! disk, or another task had its log buffer written, the device's cache is flushed.
//!
//! Blocks for new pages are allocated, as unwritten, when the pages are written (`xfs_bmapi_convert_one_delalloc`); when the data are on
//! the device, a worker of the CPU where the write ended makes them written (`xfs_end_io`, `xfs_iomap_write_unwritten`), and only then
//! the pages are no longer under writeback. So it goes with each write that makes a file longer, as the inode has to be logged then; before
//! 5.8, when blocks were allocated as written, only with those (`xfs_setfilesize`).
//!
//! A file of 64 KiB and more is given blocks behind its end, twice as many as it has (`xfs_iomap_prealloc_size`), which the next
//! pages lie in. They are not taken off the free space, nor given back when the file is closed.

use super::data_blocks::DataBlocks;
use crate::cost_table;
use crate::devices::{End, Request, Work};
use crate::filesystems::by_slot::BySlot;
use crate::filesystems::costs::Costs;
use crate::filesystems::pages::dirty::{DirtyFiles, Piece, Wanted};
use crate::filesystems::pages::mapping::{self, Mapping};
use crate::filesystems::xfs::inode::Inode;
use crate::filesystems::xfs::log::grant::{TR_FSYNCTS, TR_WRITE};
use crate::filesystems::xfs::log::Logged;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::{DirId, BLOCK};
use crate::kernel::xfs::{Delalloc, FsyncIlock, LogFlushed};
use crate::waist::Machine;
use crate::waist::{Account, CpuId, LockId, Side, Time};
use crate::workqueue::Workqueue;
use crate::writeback::{Flushed, Writeback};
use std::cell::RefCell;
use std::rc::Rc;

// The transaction that gives a file blocks.
cost_table!(pub(super) AllocateCosts {
    reserve: ["wfsync.log_reserve_2", "wfsync.trans_alloc_2", "wfsync.lock_file_ilock_excl_3"],
    agf: ["wfsync.read_agf", "wfsync.trylock_agf"],
    allocate: [
        "wfsync.lock_agfl",
        "wfsync.unlock_agfl",
        "wfsync.lock_cntbt",
        "wfsync.lock_bnobt",
        "wfsync.defer_finish",
        "wfsync.trans_commit_2"
    ],
    commit: ["wfsync.unlock_agf"],
});

cost_table!(FsyncCosts {
    start: ["wfsync.enter_fsync", "wfsync.file_fsync"],
    look: ["wfsync.lock_file_ilock_shared_2", "wfsync.unlock_file_ilock_shared_2"],
    allocated: ["wfsync.unlock_cntbt", "wfsync.unlock_bnobt", "wfsync.trans_free_2", "wfsync.unlock_file_ilock_excl_3"],
    piece: ["wfsync.switch_out"],
    page: ["writeback_page"],
    convert: ["wfsync.convert"],
    waited: ["wfsync.log_force"],
    force: ["wfsync.log_force_2", "wfsync.switch_out_2"],
    exit: ["wfsync.switch_out_3", "wfsync.exit_fsync"],
    times_reserve: ["tmp_short.log_reserve_2", "tmp_short.trans_alloc_2", "tmp_short.lock_file_ilock_excl_3"],
    times_commit: ["tmp_short.trans_commit_2", "tmp_short.trans_free_2"],
    times_end: ["tmp_short.unlock_file_ilock_excl_4"],
});

/// From this size on a file is given blocks behind its end (`m_allocsize_log`).
const PREALLOCATES: u64 = 64 << 10;

/// Where a piece of what is wanted ends, of a file of `size`: behind all that have blocks, if pieces are taken in turn.
fn end_of(wanted: Wanted, size: u64, with_blocks: u64) -> u64 {
    match wanted {
        Wanted::Any(_) | Wanted::All => with_blocks,
        Wanted::Range(at, bytes) => (at + u64::from(bytes)).next_multiple_of(u64::from(BLOCK)).min(size),
    }
}

/// A file of so many bytes is given blocks because it has become one of `size`: for how many bytes.
fn with_blocks_behind(before: u64, size: u64) -> u64 {
    let behind = if before < PREALLOCATES { 0 } else { 2 * before };
    (size + behind).next_multiple_of(u64::from(BLOCK))
}

/// What writing back and syncing needs.
pub(crate) struct Fsync {
    costs: FsyncCosts,
    pub(super) allocate: AllocateCosts,
    tick: Time,
    ilock: FsyncIlock,
    flushed: LogFlushed,
    delalloc: Delalloc,
    /// By slot, the tick in which the inode's times last changed.
    changed: RefCell<Vec<Time>>,
    data: DataBlocks,
    /// Bytes of the file on disk, by slot, where blocks are allocated as written (`i_disk_size`).
    disk_size: BySlot<u64>,
    /// What was written to files and not written back.
    pub dirty: DirtyFiles,
    /// Files with extents to be made written ones, and what completes when they are (`xfs-conv`).
    unwritten: Rc<Workqueue<Work>>,
}

impl Fsync {
    /// Nothing is dirty, and no file has blocks of these groups, each of so many.
    pub fn new<M: Machine>(m: &M, tick: Time, groups: (u32, u32), costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            costs: FsyncCosts::new(costs)?,
            allocate: AllocateCosts::new(costs)?,
            tick,
            ilock: costs.rules().fsync_ilock,
            flushed: costs.rules().log_flushed,
            delalloc: costs.rules().delalloc,
            changed: RefCell::default(),
            data: DataBlocks::new(groups.0, groups.1),
            disk_size: BySlot::default(),
            dirty: DirtyFiles::default(),
            unwritten: Rc::new(Workqueue::new(m)),
        })
    }

    /// A file is there: its times are those of now, nothing of it is dirty.
    pub fn made<M: Machine>(&self, m: &M, slot: u32) {
        self.emptied(slot);
        self.change(slot, m.now() / self.tick);
    }

    /// A file has neither data nor blocks any more.
    pub fn emptied(&self, slot: u32) {
        self.dirty.forget(slot);
        self.data.forget(slot);
        self.disk_size.forget(slot);
    }

    /// A file ends so many bytes earlier, and has no blocks behind its end any more (`xfs_itruncate_extents`).
    pub fn shortened(&self, slot: u32, bytes: u32) {
        self.dirty.shorten(slot, bytes);
        self.data.shorten(slot, self.dirty.size(slot));
        if let Some(size) = self.disk_size.get(slot) {
            self.disk_size.put(slot, size.min(self.dirty.size(slot)));
        }
    }

    /// Whether the inode is logged when a write to new blocks ends (`xfs_end_io`).
    fn logs_end(&self, slot: u32, end: u64) -> bool {
        let appends = || self.disk_size.get(slot).is_none_or(|size| size < end); // xfs_ioend_is_append
        let logs = self.delalloc == Delalloc::Unwritten || appends();
        if logs && self.delalloc == Delalloc::Written {
            self.disk_size.put(slot, end);
        }
        logs
    }

    /// What a worker takes to end a write to new blocks.
    fn end_time(&self) -> Time {
        let c = &self.costs;
        match self.delalloc {
            Delalloc::Unwritten => c.convert,
            Delalloc::Written => c.times_reserve + c.times_commit + c.times_end,
        }
    }

    /// Returns whether the times change, which they do once a tick.
    fn change(&self, slot: u32, tick: Time) -> bool {
        let (mut changed, slot) = (self.changed.borrow_mut(), slot as usize);
        if changed.len() <= slot {
            changed.resize(slot + 1, Time::MAX);
        }
        std::mem::replace(&mut changed[slot], tick) != tick
    }
}

impl Xfs {
    /// `file_update_time`: the clock of inodes goes on once a tick.
    pub(crate) async fn update_times<M: Machine>(&self, m: &M, slot: u32) {
        if !self.sync.change(slot, m.now() / self.sync.tick) {
            return;
        }
        self.log_times(m, &self.inodes.inode(slot)).await;
    }

    /// `xfs_vn_update_time`.
    pub(super) async fn log_times<M: Machine>(&self, m: &M, inode: &Inode) {
        let c = &self.sync.costs;
        let ticket = self.log.reserve(m, TR_FSYNCTS).await;
        m.run(Account::System, c.times_reserve).await;
        inode.ilock(m).await;
        self.log.commit(m, Logged::items([inode.times()])).await;
        m.run(Account::System, c.times_commit).await;
        self.log.committed(m, ticket).await;
        inode.iunlock(m).await;
        m.run(Account::System, c.times_end).await;
    }

    pub(crate) async fn sync_file<M: Machine>(&self, m: &M, slot: u32, wanted: Wanted, data_only: bool) {
        m.at("fsync");
        self.sb.calls.files.held(m, slot);
        let (c, inode) = (&self.sync.costs, self.inodes.inode(slot));
        m.run(Account::System, c.start).await;
        if mapping::write_and_wait(self, m, slot, wanted).await {
            m.run(Account::System, c.waited).await;
        }
        if !self.flush_log(m, inode, data_only).await {
            self.storage.io(m, Request::Flush).await;
        }
        m.run(Account::System, c.exit).await;
    }

    /// `xfs_dir_fsync` (`xfs_log_force_inode`): the log is forced as far as it has the directory, which is not locked meanwhile.
    pub(crate) async fn sync_directory<M: Machine>(&self, m: &M, dir: DirId) {
        m.at("fsync");
        let (c, directory) = (&self.sync.costs, self.directory(dir));
        m.run(Account::System, c.start).await;
        m.lock(directory.ilock, Side::Read).await;
        let checkpoint = self.log.ail.borrow().pinned_by(directory.line);
        m.unlock(directory.ilock, Side::Read).await;
        if let Some(checkpoint) = checkpoint {
            m.run(Account::System, c.force).await;
            self.log.checkpoints.force(m, checkpoint).await;
        }
        m.run(Account::System, c.exit).await;
    }

    /// `xfs_fsync_flush_log`: forces the log if it has the inode and is not on disk. Returns whether the device's cache
    /// counts as flushed with it (`log_flushed`). For an `fdatasync` the log is not forced where it has new times and no more
    /// since the inode was written to its buffer, or, since 4.4, forced before (`ili_fsync_fields`).
    async fn flush_log<M: Machine>(&self, m: &M, inode: Inode, data_only: bool) -> bool {
        let (rule, pinned) = (self.sync.ilock, || self.log.ail.borrow().pinned_by(inode.line));
        let locks = match rule {
            FsyncIlock::Brief | FsyncIlock::Held => true,
            FsyncIlock::HeldIfPinned => pinned().is_some(),
            FsyncIlock::Free => false,
        };
        if locks {
            m.lock(inode.ilock, Side::Read).await;
        }
        let checkpoint = self.log.ail.borrow().synced_by(inode.line, data_only);
        if rule == FsyncIlock::Brief {
            m.unlock(inode.ilock, Side::Read).await;
        }
        let mut flushed = checkpoint.is_some();
        if let Some(checkpoint) = checkpoint {
            m.run(Account::System, self.sync.costs.force).await;
            let wrote = self.log.checkpoints.force(m, checkpoint).await;
            if rule != FsyncIlock::Brief {
                self.log.ail.borrow_mut().forced(inode.line);
            }
            flushed = wrote || self.sync.flushed == LogFlushed::Waited;
        }
        if locks && rule != FsyncIlock::Brief {
            m.unlock(inode.ilock, Side::Read).await;
        }
        flushed
    }

    /// `xfs_fs_sync_fs`: what was committed is on disk, so in the AIL.
    pub(crate) async fn force_log<M: Machine>(&self, m: &M) {
        m.run(Account::System, self.sync.costs.force).await;
        if let Some(checkpoint) = self.log.checkpoints.current() {
            self.log.checkpoints.force(m, checkpoint).await;
        }
    }

    /// Blocks for pages that have none (`xfs_bmapi_convert_one_delalloc`), for so many bytes of the file.
    async fn allocate<M: Machine>(&self, m: &M, slot: u32, bytes: u64) {
        let (c, inode) = (&self.sync.allocate, self.inodes.inode(slot));
        m.run(Account::System, c.reserve).await;
        let ticket = self.log.reserve(m, TR_WRITE).await;
        inode.ilock(m).await;
        let last = self.sync.data.group(slot).unwrap_or(self.group_number(inode.ino) as u32);
        let agno = self.lock_any_agf(m, last).await;
        let agf = self.group(agno).agf;
        m.run(Account::System, c.allocate).await;
        self.log.commit(m, Logged::items([inode.item(), agf.item()]).further(2)).await;
        m.run(Account::System, c.commit).await;
        agf.unlock(m).await;
        self.sync.data.give(slot, agno, bytes);
        self.log.committed(m, ticket).await;
        inode.iunlock(m).await;
        m.run(Account::System, self.sync.costs.allocated).await;
    }

    /// Locks the AGF of the first group from this one on whose AGF nobody has, else this one's (`xfs_alloc_vextent_iterate_ags`: the
    /// first turn is with `XFS_ALLOC_FLAG_TRYLOCK`). Returns the group.
    async fn lock_any_agf<M: Machine>(&self, m: &M, first: u32) -> u32 {
        let count = self.layout.borrow().geometry().agcount;
        for agno in (first..count).chain(0..first) {
            m.run(Account::System, self.sync.allocate.agf).await;
            if self.group(agno).agf.try_lock(m) {
                return agno;
            }
        }
        m.run(Account::System, self.sync.allocate.agf).await;
        self.group(first).agf.lock(m).await;
        first
    }

    /// The program of a CPU's worker that ends writes of unwritten extents.
    pub async fn conversion_worker<M: Machine>(m: M, fs: Rc<Self>, cpu: CpuId) {
        m.at("xfs-conv");
        loop {
            let (slot, done) = fs.sync.unwritten.next(&m, cpu).await;
            let inode = fs.inodes.inode(slot);
            let ticket = fs.log.reserve(&m, TR_WRITE).await;
            inode.ilock(&m).await;
            fs.log.commit(&m, Logged::items([inode.item()])).await;
            m.run(Account::System, fs.sync.end_time()).await;
            fs.log.committed(&m, ticket).await;
            inode.iunlock(&m).await;
            m.complete(done).await;
        }
    }
}

impl Mapping for Xfs {
    /// Whether blocks were allocated for all pages without one.
    type Call = bool;

    /// The next piece that is to be written back; blocks for all pages without one are allocated with the first of them
    /// (`xfs_convert_blocks`).
    async fn take_piece<M: Machine>(&self, m: &M, slot: u32, wanted: Wanted, allocated: &mut bool) -> Option<Piece> {
        let (c, mut piece) = (&self.sync.costs, self.sync.dirty.take_piece(slot, wanted)?);
        self.storage.writeback.note(slot, self.dirty_pages(slot));
        m.run(Account::System, c.look + c.page * (piece.pages() - 1)).await;
        self.inodes.inode(slot).peek(m).await; // xfs_map_blocks
        if piece.is_new {
            let before = self.sync.dirty.with_blocks(slot) - u64::from(piece.bytes);
            let size = self.sync.dirty.size(slot);
            if !std::mem::replace(allocated, true) && size > self.sync.data.bytes(slot) {
                self.allocate(m, slot, with_blocks_behind(before, size)).await;
            }
            piece.place = self.sync.data.place(slot, before);
            piece.is_new = self.sync.logs_end(slot, end_of(wanted, size, self.sync.dirty.with_blocks(slot)));
        }
        m.run(Account::System, c.piece).await;
        Some(piece)
    }

    /// What is new goes by a worker before `done` is completed: it makes unwritten extents written, and where the block is there already
    /// logs the new size (`xfs_setfilesize`), which takes as long here since 5.8.
    async fn write_piece<M: Machine>(&self, m: &M, slot: u32, piece: Piece, done: LockId) -> bool {
        let request = piece.request();
        let end =
            if piece.is_new { End::Queue(self.sync.unwritten.clone(), (slot, done)) } else { End::Complete(done) };
        self.storage.submit(m, request, end).await
    }
}

impl Flushed for Xfs {
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
        self.sync.dirty.pages(slot)
    }

    /// `xfs_vm_writepages`.
    async fn write_pages<M: Machine>(&self, m: &M, slot: u32, most: u64) {
        mapping::write_pages(self, m, slot, most).await;
    }
}
