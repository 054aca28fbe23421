//! Reading and writing at a place of a file that has all its blocks: `ext4_dio_read_iter`, `ext4_dio_write_iter` and their
//! forerunners, and overwriting in the page cache (`ext4_buffered_write_iter`).
//!
//! A direct read holds `i_rwsem` shared. What a direct write holds has changed: the lock for itself until its data are
//! on the device; with the mount option `dioread_nolock` not during that time, but before and after it; since 5.6 (posted from
//! September 2019 on) the lock shared, if no block is new. Buffered writes hold it for themselves, buffered reads take none.
//! Looking up blocks takes the lock of the extent status tree for reading.

use super::journal::credits;
use super::Ext4;
use crate::cost_table;
use crate::devices::{End, Request, Work};
use crate::filesystems::by_slot::BySlot;
use crate::filesystems::costs::Costs;
use crate::filesystems::page_cache::PageCache;
use crate::filesystems::read_write::touch_atime;
use crate::filesystems::times::Timed;
use crate::filesystems::{File, Io, LaidOut, BLOCK};
use crate::kernel::ext4::DioWrites;
use crate::kernel::Rules;
use crate::waist::Machine;
use crate::waist::{Access, Account, CpuId, LineId, LockId, Side};
use crate::workqueue::Workqueue;
use crate::writeback::Flushed;
use std::rc::Rc;

cost_table!(IoCosts {
    read_start: ["dread.lock_i_rwsem_shared"],
    map: ["dread.map_blocks"],
    read_end: ["dread.unlock_i_rwsem_shared"],
    read_exit: ["dread.exit_pread64"],
    write_start: ["dwrite.lock_i_rwsem"],
    write_checks: ["dwrite.write_checks"],
    write_map: ["dwrite.map_blocks"],
    write_end: ["dwrite.unlock_i_rwsem"],
    write_exit: ["dwrite.exit_pwrite64"],
    buffered_page: ["tmp_short.ext4_da_write_begin", "tmp_short.ext4_da_write_end", "tmp_short.exit_write"],
    read_page: ["tmp_short.ext4_da_write_end"],
    handle: ["cu_short.jbd2_handle_start", "cu_short.jbd2_handle_stop"],
});

/// An open file with all its blocks.
pub(super) struct OpenFile {
    i_rwsem: LockId,
    es_lock: LockId,
    dio_count: LineId,
    pages: Rc<PageCache>,
}

/// Open files, and what is common to them.
pub(super) struct FileIo {
    costs: IoCosts,
    rules: Rules,
    files: BySlot<Rc<OpenFile>>,
    /// Direct writes that nobody waits for and that have ended: slot of the inode, and what completes.
    ended: Rc<Workqueue<Work>>,
}

impl FileIo {
    /// No file is open.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let ended = Rc::new(Workqueue::new(m));
        Ok(Self { costs: IoCosts::new(costs)?, rules: costs.rules(), files: BySlot::default(), ended })
    }

    /// The file in a slot is laid out so; returns what of it is in memory.
    pub fn open<M: Machine>(&self, m: &M, slot: u32, i_rwsem: LockId, laid: LaidOut) -> Rc<PageCache> {
        let es_lock = m.new_lock(m.class("ext4.i_es_lock", "ext4.i_es_lock"));
        let pages = Rc::new(PageCache::of(laid.bytes, laid.cached));
        let file = OpenFile { i_rwsem, es_lock, dio_count: m.new_line(1), pages: pages.clone() };
        self.files.put(slot, Rc::new(file));
        pages
    }

    /// The file in a slot, which was laid out.
    fn file(&self, slot: u32) -> Rc<OpenFile> {
        self.files.get(slot).expect("the file was laid out")
    }
}

impl Ext4 {
    pub(super) async fn read_file<M: Machine>(&self, m: &M, file: &File, io: Io) {
        m.at("read");
        m.moved(u64::from(io.bytes));
        let (c, open) = (&self.io.costs, self.io.file(file.inode));
        m.run(Account::System, c.read_start).await;
        if io.direct {
            m.lock(open.i_rwsem, Side::Read).await;
            m.touch(open.dio_count, Access::Write);
            self.map(m, &open, c.map).await;
            let request = Request::Read { bytes: io.bytes, at: Some(io.offset) };
            match io.done {
                None => {
                    self.storage.io(m, request).await;
                    m.touch(open.dio_count, Access::Write);
                }
                Some(done) => self.storage.submit(m, request, End::Complete(done)).await,
            }
            m.run(Account::System, c.read_end).await;
            m.unlock(open.i_rwsem, Side::Read).await;
            touch_atime(self, m, Timed::File(file.inode)).await;
        } else {
            if !open.pages.has(io.offset, io.bytes) {
                self.map(m, &open, c.map).await;
                self.storage.io(m, Request::Read { bytes: io.bytes, at: Some(io.offset) }).await;
                self.storage.memory.add(m, &self.storage.writeback, &open.pages, (io.offset, io.bytes)).await;
            }
            self.sb.calls.pages.copy(m, file.inode, io.offset, io.bytes);
            m.run(Account::System, c.read_page * io.pages()).await;
            touch_atime(self, m, Timed::File(file.inode)).await;
        }
        m.run(Account::System, c.read_exit).await;
    }

    pub(super) async fn write_file<M: Machine>(&self, m: &M, file: &File, io: Io) {
        m.at("write");
        m.moved(u64::from(io.bytes));
        let open = self.io.file(file.inode);
        if io.direct {
            self.dio_write(m, &open, file.inode, io).await
        } else {
            self.buffered_write(m, file, &open, io).await
        }
    }

    async fn dio_write<M: Machine>(&self, m: &M, open: &OpenFile, slot: u32, io: Io) {
        let (c, held) = (&self.io.costs, self.io.rules.dio_writes);
        let side = if held == DioWrites::Shared { Side::Read } else { Side::Write };
        m.run(Account::System, c.write_start).await;
        m.lock(open.i_rwsem, side).await;
        m.run(Account::System, c.write_checks).await;
        self.update_times(m, slot).await;
        m.touch(open.dio_count, Access::Write);
        if held == DioWrites::Relocked {
            m.unlock(open.i_rwsem, side).await;
        }
        self.map_for_write(m, open).await;
        let request = Request::Write { bytes: io.bytes, at: Some(io.offset) };
        match io.done {
            None => {
                self.storage.io(m, request).await;
                m.touch(open.dio_count, Access::Write);
            }
            Some(done) => self.storage.submit(m, request, self.end_of_write(slot, done)).await,
        }
        if held == DioWrites::Relocked {
            m.lock(open.i_rwsem, side).await;
        }
        if io.done.is_none() {
            m.run(Account::System, c.write_end).await;
        }
        m.unlock(open.i_rwsem, side).await;
        m.run(Account::System, c.write_exit).await;
    }

    /// `ext4_iomap_begin`: in 5.5 in a journal handle.
    async fn map_for_write<M: Machine>(&self, m: &M, open: &OpenFile) {
        let c = &self.io.costs;
        if !self.io.rules.dio_handles || !self.journal.on {
            return self.map(m, open, c.write_map).await;
        }
        let handle = self.journal.start(m, credits::EXTENT).await;
        m.run(Account::System, c.handle).await;
        self.map(m, open, c.write_map).await;
        self.journal.stop(m, handle, &[]).await;
    }

    /// Where a write that nobody waits for ends: on iomap in a worker of its CPU (`iomap_dio_bio_end_io`, 5.5 and later, here with
    /// the shared lock), before in its interrupt (`dio_bio_end_aio` of a file without cached pages).
    fn end_of_write(&self, slot: u32, done: LockId) -> End {
        match self.io.rules.dio_writes {
            DioWrites::Shared => End::Queue(self.io.ended.clone(), (slot, done)),
            DioWrites::Exclusive | DioWrites::Relocked => End::Complete(done),
        }
    }

    /// The program of a CPU's `dio` worker (`iomap_dio_complete_work`).
    pub async fn dio_worker<M: Machine>(m: M, fs: Rc<Self>, cpu: CpuId) {
        m.at("dio worker");
        loop {
            let (slot, done) = fs.io.ended.next(&m, cpu).await;
            let open = fs.io.file(slot);
            m.touch(open.dio_count, Access::Write);
            m.run(Account::System, fs.io.costs.write_end).await;
            m.complete(done).await;
        }
    }

    /// `ext4_map_blocks` of blocks that are in the extent status tree.
    async fn map<M: Machine>(&self, m: &M, open: &OpenFile, time: crate::waist::Time) {
        m.lock(open.es_lock, Side::Read).await;
        m.run(Account::System, time).await;
        m.unlock(open.es_lock, Side::Read).await;
    }

    /// The trace has no event at the lock: `enter_write` is the time in user mode before it, and all that follows up to the
    /// return is under the lock but for some instructions (`ext4_da_write_begin` and `_end` are told as they begin).
    async fn buffered_write<M: Machine>(&self, m: &M, file: &File, open: &OpenFile, io: Io) {
        let c = &self.io.costs;
        m.lock(open.i_rwsem, Side::Write).await;
        self.update_times(m, file.inode).await;
        for page in 0..io.pages() {
            let bytes = io.bytes.min(BLOCK);
            self.sb.calls.pages.copy(m, file.inode, io.offset + page * u64::from(BLOCK), bytes);
            if self.io.rules.write_handles && self.journal.on {
                let handle = self.journal.start(m, credits::INODE).await;
                m.run(Account::System, c.handle + c.buffered_page).await;
                self.journal.stop(m, handle, &[]).await;
            } else {
                m.run(Account::System, c.buffered_page).await;
            }
        }
        self.storage.memory.add(m, &self.storage.writeback, &open.pages, (io.offset, io.bytes)).await;
        open.pages.write(io.offset, io.bytes);
        self.dirtied(m, file.inode).await;
        m.unlock(open.i_rwsem, Side::Write).await;
    }
}
