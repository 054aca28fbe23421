//! `fsync` (`ext4_sync_file`): dirty pages are written, then the transaction that last changed the inode is committed. If its commit has
//! flushed the device already, or is about to, the device is flushed again after it.
//!
//! New blocks are allocated as unwritten extents when their pages are written (`ext4_do_writepages`); when these are on the device a
//! worker makes them written ones, in a handle of its own (`ext4_end_io_rsv_work`), and only then they are no longer under writeback.
//! So it is with `dioread_nolock`, the default since 5.6. Without, they are allocated as written ones, and blocks that were allocated and
//! not written are made written ones before their pages are submitted (`ext4_ext_convert_to_initialized`).

use super::journal::{credits, Block, Handle};
use super::Ext4;
use crate::cost_table;
use crate::devices::{End, Request, Work};
use crate::filesystems::costs::Costs;
use crate::filesystems::pages::dirty::{DirtyFiles, Piece, Wanted};
use crate::filesystems::pages::mapping::{self, Mapping};
use crate::filesystems::DirId;
use crate::waist::Machine;
use crate::waist::{Account, LockId, Time};
use crate::workqueue::{Pools, Workqueue, Works};
use crate::writeback::{Flushed, Writeback};
use std::rc::Rc;

cost_table!(FsyncCosts {
    writepages: ["wfsync.writepages"],
    before_blocks: ["writepages.before_blocks"],
    writepages_over: ["wfsync.writepages_over"],
    page: ["writeback_page"],
    convert: ["wfsync.convert"],
    end_io: ["wfsync.end_io"],
    dirty_inode: ["wfsync.dirty_inode"],
    exit: ["wfsync.exit"],
});

/// Beside the slot of a file whose write ends in the worker: no credits are reserved for it, as it was a direct one.
pub(super) const UNRESERVED: u32 = 1 << 31;
/// Its blocks are written ones; only who drops the pages waits for the end.
const WRITTEN: u32 = 1 << 30;

/// What writing back and syncing needs.
pub(super) struct Fsync {
    costs: FsyncCosts,
    /// Without a journal an `fsync` has the inode's lock (`__generic_file_fsync`).
    pub locked: bool,
    /// New blocks are unwritten until their pages are on the device.
    unwritten_first: bool,
    /// Length of a tick.
    pub tick: Time,
    /// What was written to files and not written back.
    pub dirty: DirtyFiles,
    /// Files with extents to be made written ones, and what completes when they are.
    pub unwritten: Rc<Workqueue<Work>>,
    /// Completed by what nobody waits for.
    flushed: LockId,
}

impl Fsync {
    /// Nothing is dirty.
    pub fn new<M: Machine>(m: &M, tick: Time, pools: &Pools, costs: &Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            costs: FsyncCosts::new(costs)?,
            locked: costs.rules().fsync_locks,
            unwritten_first: costs.rules().dioread_nolock,
            tick,
            dirty: DirtyFiles::default(),
            unwritten: Rc::new(Workqueue::unbound(m, pools, 1)),
            flushed: m.new_completion(),
        })
    }
}

impl Ext4 {
    /// `file_update_time` and `ext4_dirty_inode`: the clock of inodes goes on once a tick.
    pub(super) async fn update_times<M: Machine>(&self, m: &M, slot: u32) {
        let tick = m.now() / self.fsync.tick;
        if std::mem::replace(&mut self.files.borrow_mut().slots[slot as usize].changed, tick) == tick {
            return;
        }
        self.mark_times_dirty(slot);
        let handle = self.journal.start(m, credits::INODE).await;
        m.run(Account::System, self.fsync.costs.dirty_inode).await;
        self.stop_attributes(m, handle, slot, &[], 0).await;
    }

    pub(super) async fn sync_file<M: Machine>(&self, m: &M, slot: u32, wanted: Wanted, data_only: bool) {
        m.at("fsync");
        self.sb.calls.files.held(m, slot);
        mapping::write_and_wait(self, m, slot, wanted).await;
        if self.journal.on {
            let transaction = self.files.borrow().slots[slot as usize].synced_by(data_only);
            if !self.commit_flushes(m, transaction).await {
                self.storage.io(m, Request::Flush).await;
            }
        } else {
            self.sync_buffers(m, slot, data_only).await;
            self.storage.io(m, Request::Flush).await;
        }
        m.run(Account::System, self.fsync.costs.exit).await;
    }

    /// The same of a directory, which has no pages: the transaction that changed it last is committed. Without a journal its blocks
    /// and its inode are written.
    ///
    /// An `fdatasync` asks for the transaction in which it grew last (`i_datasync_tid`): one that only has other names is no reason to commit.
    pub(super) async fn sync_directory<M: Machine>(&self, m: &M, dir: DirId, data_only: bool) {
        m.at("fsync");
        let transaction = self.directories.borrow().of(dir).synced_by(data_only);
        let flushed = self.journal.on && self.commit_flushes(m, transaction).await;
        if !self.journal.on {
            self.sync_directory_buffers(m, dir).await;
        }
        if !flushed {
            self.storage.io(m, Request::Flush).await;
        }
        m.run(Account::System, self.fsync.costs.exit).await;
    }

    /// `ext4_sync_fs`, and `sync_blockdev`: the last transaction with a change is committed, then committed blocks are written in place.
    pub(super) async fn sync_journal<M: Machine>(&self, m: &M) {
        let latest = self.journal.latest(m).await;
        let flushes = self.journal.will_send_data_barrier(m, latest).await;
        self.journal.start_commit_of(m, latest).await;
        self.journal.sync(m, latest).await;
        if !flushes {
            self.storage.io(m, Request::Flush).await;
        }
        self.journal.write_in_place(m).await;
    }

    /// `ext4_fsync_journal`: has a transaction on disk. Returns whether the device was flushed for it after the call.
    async fn commit_flushes<M: Machine>(&self, m: &M, transaction: u64) -> bool {
        let flushes = self.journal.will_send_data_barrier(m, transaction).await;
        self.journal.sync(m, transaction).await;
        flushes
    }

    /// `ext4_alloc_da_blocks`: what is dirty gets its blocks and is on its way. Only who drops the pages waits for it.
    pub(super) async fn flush<M: Machine>(&self, m: &M, slot: u32) {
        while let Some(piece) = self.take_piece(m, slot, Wanted::All, &mut ()).await {
            if piece.is_new {
                self.storage.writeback.begins_flush(slot);
            }
            self.write_piece(m, slot, piece, self.fsync.flushed).await;
        }
    }

    /// The block that a file's extents have, if they do not fit into the inode.
    pub(super) fn extent_leaf(&self, slot: u32) -> Option<Block> {
        let inode = self.files.borrow().slots[slot as usize].inode;
        (self.mballoc.has_leaf(slot) || self.io.has_leaf(slot)).then_some(Block::Extents(inode))
    }

    /// Ends a write of unwritten extents (`ext4_end_io_rsv_work`).
    async fn end_io<M: Machine>(&self, m: &M, (item, done): Work) {
        m.at("ext4 conversion");
        let slot = item & !(UNRESERVED | WRITTEN);
        if item & WRITTEN == 0 {
            self.end_of_unwritten(m, slot, item & UNRESERVED == 0).await;
        }
        if done == self.fsync.flushed {
            self.storage.writeback.ends_flush(m, slot); // ext4_finish_bio comes after the conversion
        }
        m.complete(done).await;
    }

    /// `ext4_end_io_end`; a commit may begin before its last part, which is `ext4_finish_bio` and the way to the next item.
    async fn end_of_unwritten<M: Machine>(&self, m: &M, slot: u32, reserved: bool) {
        let handle = match reserved {
            true => self.journal.start_reserved(m, credits::CONVERSION).await,
            false => self.journal.start(m, credits::EXTENT).await,
        };
        let (find, insert) = self.map.times();
        let c = &self.fsync.costs;
        let rest = c.convert.saturating_sub(find + insert + c.end_io);
        self.convert_unwritten(m, slot, handle, (find + insert, rest)).await;
        m.run(Account::System, c.end_io).await;
    }

    /// A handle for what is written back, with another one for its end if that is to convert it.
    async fn start_writing<M: Machine>(&self, m: &M) -> Handle {
        let reserve = if self.fsync.unwritten_first { credits::CONVERSION } else { 0 };
        self.journal.start_reserving(m, credits::EXTENT, reserve).await
    }

    /// What a request whose blocks were just mapped ends with.
    fn end_of_writing(&self, slot: u32, done: LockId) -> End {
        match (self.fsync.unwritten_first, done == self.fsync.flushed) {
            (true, _) => End::Queue(self.fsync.unwritten.clone(), (slot, done)),
            (false, true) => End::Queue(self.fsync.unwritten.clone(), (slot | WRITTEN, done)),
            (false, false) => End::Complete(done),
        }
    }

    /// Pages over blocks that were allocated and not written: they are split off their extent before, and converted then or at the end.
    async fn write_unwritten<M: Machine>(
        &self,
        m: &M,
        slot: u32,
        request: Request,
        (rest, done): (Time, LockId),
    ) -> bool {
        let handle = self.start_writing(m).await;
        m.run(Account::System, self.fsync.costs.writepages_over + rest).await;
        self.change_extent(m, slot, self.io.splitting()).await;
        self.stop(m, handle, slot, self.extent_leaf(slot).as_slice()).await;
        self.storage.submit(m, request, self.end_of_writing(slot, done)).await
    }

    /// An unwritten extent becomes a written one (`ext4_convert_unwritten_extents`), with `i_data_sem` and after it, and the handle ends.
    pub(super) async fn convert_unwritten<M: Machine>(&self, m: &M, slot: u32, handle: Handle, times: (Time, Time)) {
        self.change_extent(m, slot, times).await;
        self.stop(m, handle, slot, self.extent_leaf(slot).as_slice()).await;
    }
}

impl Mapping for Ext4 {
    type Call = ();

    async fn take_piece<M: Machine>(&self, _: &M, slot: u32, wanted: Wanted, (): &mut ()) -> Option<Piece> {
        let piece = self.fsync.dirty.take_piece(slot, wanted)?;
        self.storage.writeback.note(slot, self.dirty_pages(slot));
        Some(piece)
    }

    /// For what has no blocks these are allocated in a handle, as an unwritten extent (`mpage_map_and_submit_extent`), which waits
    /// while their bitmap is being written to the log; a worker converts it before it completes `done`.
    async fn write_piece<M: Machine>(&self, m: &M, slot: u32, piece: Piece, done: LockId) -> bool {
        let (c, request) = (&self.fsync.costs, piece.request());
        let rest = c.page * (piece.pages() - 1);
        if piece.at.is_some_and(|at| self.io.writes_unwritten(slot, at, piece.bytes)) {
            return self.write_unwritten(m, slot, request, (rest, done)).await;
        }
        if !piece.is_new {
            m.run(Account::System, c.writepages_over + rest).await;
            return self.storage.submit(m, request, End::Complete(done)).await;
        }
        let (group, (find, insert)) = (self.goal_group(slot), self.map.reserved_times());
        let mut handle = self.start_writing(m).await;
        m.run(Account::System, c.before_blocks.saturating_sub(find)).await;
        self.lock_extents(m, slot, true).await;
        let (place, groups) = self.mballoc.write_back(m, slot, group, piece.pages()).await;
        let blocks: Vec<_> = groups.into_iter().flat_map(|group| self.block_bitmap(group)).collect();
        self.journal.get_write_access(m, &mut handle, &blocks).await;
        self.unlock_extents(m, slot, insert).await;
        self.update_disksize(m, slot).await;
        let after = (c.writepages + rest).saturating_sub(c.before_blocks + self.mballoc.marking() + insert);
        m.run(Account::System, after).await;
        self.stop(m, handle, slot, self.extent_leaf(slot).as_slice()).await;
        let request = Piece { place: Some(place), ..piece }.request();
        self.storage.submit(m, request, self.end_of_writing(slot, done)).await
    }

    /// The last turn of the loop of `ext4_writepages`, until 5.7.
    async fn look_for_more<M: Machine>(&self, m: &M) {
        if self.io.rules.vain_handle && self.journal.on {
            let handle = self.journal.start(m, credits::EXTENT).await;
            m.run(Account::System, self.io.costs.empty_handle).await;
            self.journal.stop(m, handle, &[]).await;
        }
    }
}

impl Flushed for Ext4 {
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
        self.fsync.dirty.pages(slot)
    }

    /// `ext4_do_writepages`; a handle for each request.
    async fn write_pages<M: Machine>(&self, m: &M, slot: u32, most: u64) {
        mapping::write_pages(self, m, slot, most).await;
    }
}

impl Works for Ext4 {
    async fn act<M: Machine>(&self, m: &M, work: LockId) {
        if let Some(item) = self.fsync.unwritten.take(work) {
            return self.end_io(m, item).await;
        }
        self.storage.act(m, work).await;
    }
}
