//! Reading and writing at a place of a file that has all its blocks: `ext4_dio_read_iter`, `ext4_dio_write_iter` and their
//! forerunners, and overwriting in the page cache (`ext4_buffered_write_iter`).
//!
//! A direct read holds `i_rwsem` shared, until 4.8 exclusively, but not while the device works. What a direct write holds has changed: the lock for itself until its data are
//! on the device; with the mount option `dioread_nolock` not during that time, but before and after it; since 5.6 (posted from
//! September 2019 on) the lock shared, if no block is new (`direct`). Buffered writes hold it for themselves, buffered reads take none.
//! Looking up blocks: see `map_blocks`.

use super::direct::Unwritten;
use super::journal::credits;
use super::Ext4;
use crate::cost_table;
use crate::devices::{BlockDevice, Request, Work};
use crate::filesystems::by_slot::BySlot;
use crate::filesystems::costs::Costs;
use crate::filesystems::inodes::times::Timed;
use crate::filesystems::open_files::read_write::touch_atime;
use crate::filesystems::page_cache::PageCache;
use crate::filesystems::pages::readahead::{ReadPages, Readahead};
use crate::filesystems::{File, Io, LaidOut, BLOCK};
use crate::kernel::Rules;
use crate::waist::Machine;
use crate::waist::{Account, LineId, LockId, Side, TaskId, Time};
use crate::workqueue::Workqueue;
use crate::writeback::Flushed;
use std::cell::Cell;
use std::rc::Rc;

cost_table!(pub(super) IoCosts {
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
    empty_handle: ["cu_short.jbd2_handle_start", "journal.stop"],
    split: ["unwritten.split"],
    split_rest: ["unwritten.split_rest"],
    convert: ["unwritten.convert"],
    convert_rest: ["unwritten.convert_rest"],
});

/// An open file with all its blocks.
pub(super) struct OpenFile {
    pub(super) i_rwsem: LockId,
    pub(super) dio_count: LineId,
    pages: Rc<PageCache>,
    ahead: Option<Readahead>,
    pub(super) unwritten: Unwritten,
    /// The task that submits requests which nobody waits for; of several, none that there is.
    user: Cell<Option<TaskId>>,
}

impl OpenFile {
    /// A task submits a request that it does not wait for.
    pub(super) fn submits(&self, task: TaskId) {
        let others = self.user.get().is_some_and(|user| user != task);
        self.user.set(Some(if others { TaskId::MAX } else { task }));
    }

    /// Whether such requests of another task may be under way.
    pub(super) fn has_others(&self, task: TaskId) -> bool {
        self.user.get().is_some_and(|user| user != task)
    }
}

/// Open files, and what is common to them.
pub(super) struct FileIo {
    pub(super) costs: IoCosts,
    pub(super) rules: Rules,
    files: BySlot<Rc<OpenFile>>,
    /// Direct writes that nobody waits for and that have ended: slot of the inode, and what completes.
    pub(super) ended: Rc<Workqueue<Work>>,
}

impl FileIo {
    /// No file is open.
    pub fn new<M: Machine>(m: &M, costs: &Costs<'_>) -> Result<Self, String> {
        let ended = Rc::new(Workqueue::new(m));
        Ok(Self { costs: IoCosts::new(costs)?, rules: costs.rules(), files: BySlot::default(), ended })
    }

    /// The file in a slot is laid out so; returns what of it is in memory.
    pub fn open<M: Machine>(&self, m: &M, slot: u32, i_rwsem: LockId, laid: LaidOut) -> Rc<PageCache> {
        let pages = Rc::new(PageCache::of(laid.bytes, laid.cached));
        let unwritten = if laid.unwritten { Unwritten::all(laid.bytes) } else { Unwritten::default() };
        let dio_count = m.new_line("vfs.i_dio_count", 1);
        let ahead = laid.in_order.then(|| Readahead::of(laid.bytes));
        let file = OpenFile { i_rwsem, dio_count, pages: pages.clone(), ahead, unwritten, user: Cell::default() };
        self.files.put(slot, Rc::new(file));
        pages
    }

    /// Whether the extents of a file that was allocated and is being written have a block of their own.
    pub fn has_leaf(&self, slot: u32) -> bool {
        self.files.get(slot).is_some_and(|file| file.unwritten.has_leaf())
    }

    /// Whether pages that are written back come to blocks of a file that were laid out and not written yet; they are from now on.
    pub fn writes_unwritten(&self, slot: u32, offset: u64, bytes: u32) -> bool {
        let (open, io) = (self.file(slot), Io { offset, bytes, direct: false, done: None, others: 0 });
        let has = open.unwritten.has(io);
        if has {
            open.unwritten.write(io);
        }
        has
    }

    /// CPU time of splitting an extent under `i_data_sem` and after it.
    pub fn splitting(&self) -> (Time, Time) {
        (self.costs.split, self.costs.split_rest)
    }

    /// The file in a slot, which was laid out.
    pub(super) fn file(&self, slot: u32) -> Rc<OpenFile> {
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
            self.dio_read(m, &open, file.inode, io).await;
            touch_atime(self, m, Timed::File(file.inode)).await;
        } else {
            m.cond_resched().await; // filemap_read
            self.read_pages(m, file.inode, &open, io).await;
            self.sb.calls.pages.copy_from(m, file.inode, io.offset, io.bytes);
            m.run(Account::System, c.read_page * io.pages()).await;
            self.sb.calls.mark_accessed(m, file, (io.offset, io.bytes)).await;
            touch_atime(self, m, Timed::File(file.inode)).await;
        }
        m.run(Account::System, c.read_exit).await;
    }

    /// Has what is not in memory read.
    async fn read_pages<M: Machine>(&self, m: &M, slot: u32, open: &OpenFile, io: Io) {
        if let Some(ahead) = &open.ahead {
            ahead.read(m, self, (slot, &open.pages), (io.offset, io.bytes)).await;
        } else if !open.pages.has(io.offset, io.bytes) {
            self.look_up_blocks(m, slot, self.io.costs.map).await;
            self.storage.io(m, Request::Read { bytes: io.bytes, at: Some(io.offset) }).await;
            self.storage.memory.add(m, &self.storage.writeback, &open.pages, (io.offset, io.bytes)).await;
        }
    }

    pub(super) async fn write_file<M: Machine>(&self, m: &M, file: &File, io: Io) {
        m.moved(u64::from(io.bytes));
        let open = self.io.file(file.inode);
        if io.direct {
            self.dio_write(m, &open, file.inode, io).await
        } else {
            self.buffered_write(m, file, &open, io).await
        }
    }

    /// The trace has no event at the lock: `enter_write` is the time in user mode before it, and all that follows up to the
    /// return is under the lock but for some instructions (`ext4_da_write_begin` and `_end` are told as they begin).
    async fn buffered_write<M: Machine>(&self, m: &M, file: &File, open: &OpenFile, io: Io) {
        let (c, each) = (&self.io.costs, self.page_time(file, open, io));
        m.lock(open.i_rwsem, Side::Write).await;
        self.update_times(m, file.inode).await;
        for page in 0..io.pages() {
            let bytes = io.bytes.min(BLOCK);
            let (pages, offset) = (&self.sb.calls.pages, io.offset + page * u64::from(BLOCK));
            match page {
                0 => pages.copy_to(m, file.inode, offset, bytes),
                _ => pages.copy_on_to(m, file.inode, offset, bytes),
            }
            if self.io.rules.write_handles && self.journal.on {
                let handle = self.journal.start(m, credits::INODE).await;
                m.run(Account::System, c.empty_handle + each).await;
                self.journal.stop(m, handle, &[]).await;
            } else {
                m.run(Account::System, each).await;
            }
            m.cond_resched().await; // generic_perform_write
        }
        self.storage.memory.add(m, &self.storage.writeback, &open.pages, (io.offset, io.bytes)).await;
        open.pages.write(io.offset, io.bytes);
        self.dirtied(m, file.inode).await;
        m.unlock(open.i_rwsem, Side::Write).await;
    }

    /// What a page takes: a new one as traced, one in memory its part of the whole call.
    fn page_time(&self, file: &File, open: &OpenFile, io: Io) -> Time {
        match open.pages.has(io.offset, io.bytes) {
            true => self.sb.calls.overwriting(file, (io.offset, io.bytes)) / io.pages(),
            false => self.sb.calls.filling(self.io.costs.buffered_page, io.offset, io.bytes) / io.pages(),
        }
    }
}

impl ReadPages for Ext4 {
    fn device(&self) -> &BlockDevice {
        &self.storage
    }

    async fn find_blocks<M: Machine>(&self, m: &M, slot: u32, _: (u64, u32)) {
        self.look_up_blocks(m, slot, self.io.costs.map).await;
    }
}
