//! Reading and writing at a place of a file that has all its blocks: direct I/O (`xfs_file_dio_read`,
//! `xfs_file_dio_write_aligned`, `iomap_dio_rw`) and overwriting in the page cache (`xfs_file_buffered_write`).
//!
//! Direct I/O holds the IOLOCK shared until the request is submitted, and where the caller waits, until it is done. Each
//! takes the ILOCK shared to look its blocks up. Beside these two locks all who use the file meet in `i_dio_count`,
//! written at the beginning and the end of each request, and before Linux 5.13 in `i_flags_lock`, which a write took to
//! look at the file's size, once before and once after. The first write in a tick changes the times of the inode in a
//! transaction (`xfs_vn_update_time`).

use crate::cost_table;
use crate::devices::{BlockDevice, End, Request, Work};
use crate::filesystems::by_slot::BySlot;
use crate::filesystems::inodes::times::Timed;
use crate::filesystems::open_files::read_write::touch_atime;
use crate::filesystems::page_cache::PageCache;
use crate::filesystems::pages::readahead::{ReadPages, Readahead};
use crate::filesystems::xfs::buffer_hash;
use crate::filesystems::xfs::inode::Inode;
use crate::filesystems::xfs::inode_lines::InodeLines;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::xfs::structures::file_extents::FileExtents;
use crate::filesystems::{File, Io, LaidOut, BLOCK};
use crate::kernel;
use crate::kernel::xfs::DioUnaligned;
use crate::range_locks::{Design, Prices, Range, RangeLock, RequestId};
use crate::waist::{Account, CpuId, LockId, Machine, Side, TaskId, Time};
use crate::workqueue::Workqueue;
use crate::writeback::Flushed;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

cost_table!(IoCosts {
    read_start: ["dread.file_direct_read", "dread.lock_file_iolock_shared"],
    map: ["dread.lock_file_ilock_shared"],
    mapped: ["dread.unlock_file_ilock_shared"],
    read_end: ["dread.unlock_file_iolock_shared"],
    read_exit: ["dread.exit_pread64"],
    write_start: ["dwrite.lock_file_iolock_shared"],
    write_checks: ["dwrite.file_direct_write"],
    write_mapped: ["dwrite.unlock_file_ilock_shared"],
    write_end: ["dwrite.unlock_file_iolock_shared"],
    write_exit: ["dwrite.exit_pwrite64"],
    buffered_start: ["tmp_short.lock_file_iolock_excl"],
    buffered_checks: [
        "tmp_short.lock_file_ilock_shared",
        "tmp_short.unlock_file_ilock_shared",
        "tmp_short.file_buffered_write"
    ],
    buffered_copy: ["tmp_short.unlock_file_iolock_excl"],
    buffered_end: ["tmp_short.exit_write"],
    cached_read_start: ["cached.read_before_iolock"],
    read_page: ["read_page"],
    cached_read_end: ["cached.read_after_iolock"],
    overwrite_start: ["cached.write_before_iolock"],
    overwrite_checks: ["cached.write_checks"],
    overwrite_copy: ["cached.write_copy"],
    overwrite_end: ["cached.write_after_iolock"],
});

/// What I/O through the page cache takes of the IOLOCK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferedIo {
    /// Reads share it, a write has it for itself.
    Locked,
    /// A write has it for itself, reads take none: what ext4 does.
    ReadsUnlocked,
    /// Reads and writes share it.
    WritesShared,
    /// As `Locked`, but a read has its pages in memory before it takes the lock (posted in 2022).
    Prewarmed,
}

impl BufferedIo {
    /// By name.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "locked" => Ok(Self::Locked),
            "reads-unlocked" => Ok(Self::ReadsUnlocked),
            "writes-shared" => Ok(Self::WritesShared),
            "prewarmed" => Ok(Self::Prewarmed),
            other => Err(format!("unknown '{other}'; known: locked, reads-unlocked, writes-shared, prewarmed")),
        }
    }
}

/// How files are locked and read, apart from the costs.
pub struct Rules {
    /// What I/O through the page cache takes.
    pub buffered: BufferedIo,
    /// A range lock in place of the IOLOCK, for direct I/O.
    pub range_lock: Option<(Design, Prices)>,
    /// Direct I/O takes no IOLOCK at all: a counterfactual.
    pub unlocked: bool,
    /// The mount option `logbsize`: bytes of a log buffer.
    pub logbsize: Option<u64>,
    /// The log's stripe unit in bytes (`sb_logsunit`), if it has one.
    pub log_su: Option<u64>,
    /// Length of a tick.
    pub tick: Time,
    /// What a larger table of buffers takes.
    pub rehash: buffer_hash::Prices,
}

/// What direct I/O locks for its time.
enum IoLock {
    Rwsem(LockId),
    /// The range lock, and the request of each task.
    Ranges(Box<RangeLock>, RefCell<Vec<Option<RequestId>>>),
    Nothing,
}

impl IoLock {
    async fn lock<M: Machine>(&self, m: &M, io: &Io, range_side: Side) {
        match self {
            Self::Rwsem(lock) => m.lock(*lock, Side::Read).await,
            Self::Ranges(ranges, requests) => {
                let request = Self::request(m, ranges, requests);
                let start = io.offset / u64::from(BLOCK);
                let last = (io.offset + u64::from(io.bytes) - 1) / u64::from(BLOCK);
                ranges.lock(m, request, Range { start, last }, range_side).await;
            }
            Self::Nothing => {}
        }
    }

    async fn unlock<M: Machine>(&self, m: &M) {
        match self {
            Self::Rwsem(lock) => m.unlock(*lock, Side::Read).await,
            Self::Ranges(ranges, requests) => ranges.unlock(m, Self::request(m, ranges, requests)).await,
            Self::Nothing => {}
        }
    }

    /// A task's request, which lies on its stack.
    fn request<M: Machine>(m: &M, ranges: &RangeLock, requests: &RefCell<Vec<Option<RequestId>>>) -> RequestId {
        let (mut requests, task) = (requests.borrow_mut(), m.task() as usize);
        if requests.len() <= task {
            requests.resize(task + 1, None);
        }
        *requests[task].get_or_insert_with(|| ranges.new_request(m))
    }
}

/// An open file with all its blocks.
pub(crate) struct OpenFile {
    iolock: IoLock,
    lines: InodeLines,
    extents: FileExtents,
    pages: Rc<PageCache>,
    ahead: Option<Readahead>,
    /// Who writes less than a block to it asynchronously, where such a write has to wait for all requests of the file.
    user: Cell<Option<TaskId>>,
}

/// Open files, and what is common to them.
pub(crate) struct FileIo {
    costs: IoCosts,
    rules: Rules,
    kernel: kernel::Rules,
    files: BySlot<Rc<OpenFile>>,
    /// Direct writes that nobody waits for end in a worker of their CPU (`s_dio_done_wq`, until Linux 6.5): slot of the inode,
    /// and what the caller waits for.
    ended: Rc<Workqueue<Work>>,
}

impl FileIo {
    /// No file is open.
    pub fn new<M: Machine>(m: &M, rules: Rules, costs: &crate::filesystems::costs::Costs<'_>) -> Result<Self, String> {
        Ok(Self {
            costs: IoCosts::new(costs)?,
            rules,
            kernel: costs.rules(),
            files: BySlot::default(),
            ended: Rc::new(Workqueue::new(m)),
        })
    }

    /// The file in a slot is laid out so; returns what of it is in memory.
    pub fn open<M: Machine>(&self, m: &M, slot: u32, inode: Inode, laid: LaidOut) -> Rc<PageCache> {
        let pages = Rc::new(PageCache::of(laid.bytes, laid.cached).ending_passes());
        let iolock = match &self.rules.range_lock {
            _ if self.rules.unlocked => IoLock::Nothing,
            Some((design, prices)) => IoLock::Ranges(Box::new(RangeLock::new(m, *design, *prices)), RefCell::default()),
            None => IoLock::Rwsem(inode.iolock),
        };
        let file = OpenFile {
            iolock,
            lines: InodeLines::new(m, &inode, &self.kernel),
            extents: FileExtents::new(m, laid),
            pages: pages.clone(),
            ahead: laid.in_order.then(|| Readahead::of(laid.bytes)),
            user: Cell::default(),
        };
        self.files.put(slot, Rc::new(file));
        pages
    }

    /// The file in a slot, which was laid out.
    fn file(&self, slot: u32) -> Rc<OpenFile> {
        self.files.get(slot).expect("the file was laid out")
    }
}

impl Xfs {
    pub(crate) async fn read_file<M: Machine>(&self, m: &M, file: &File, io: Io) {
        m.at("read");
        m.moved(u64::from(io.bytes));
        if io.direct {
            self.dio_read(m, file, io).await
        } else {
            self.buffered_read(m, file, io).await
        }
    }

    pub(crate) async fn write_file<M: Machine>(&self, m: &M, file: &File, io: Io) {
        m.moved(u64::from(io.bytes));
        if io.direct {
            self.dio_write(m, file, io).await
        } else {
            self.buffered_write(m, file, io).await
        }
    }

    async fn dio_read<M: Machine>(&self, m: &M, file: &File, io: Io) {
        let (c, open) = (&self.io.costs, self.io.file(file.inode));
        open.lines.enter(m);
        m.run(Account::System, c.read_start).await;
        touch_atime(self, m, Timed::File(file.inode)).await;
        if io.done.is_some() {
            open.lines.count(m); // in the interrupt of an earlier read, on this CPU
        }
        open.iolock.lock(m, &io, Side::Read).await;
        open.lines.count(m);
        self.map(m, file.inode, &open, io.offset, c.mapped).await;
        open.lines.build_bio(m);
        let request = Request::Read { bytes: io.bytes, at: Some(io.offset) };
        match io.done {
            None => {
                self.storage.io(m, request).await;
                open.lines.count(m);
            }
            Some(done) => {
                self.storage.submit(m, request, End::Complete(done)).await;
            }
        }
        m.run(Account::System, c.read_end).await;
        open.iolock.unlock(m).await;
        m.run(Account::System, c.read_exit).await;
    }

    async fn dio_write<M: Machine>(&self, m: &M, file: &File, io: Io) {
        let (c, open) = (&self.io.costs, self.io.file(file.inode));
        if io.is_unaligned() && self.io.kernel.dio_unaligned == DioUnaligned::Exclusive {
            return self.dio_write_alone(m, file, io).await;
        }
        open.lines.enter(m);
        m.run(Account::System, c.write_start).await;
        open.iolock.lock(m, &io, Side::Write).await;
        open.lines.check_write(m);
        self.look_at_size(m, &open).await;
        open.lines.check_write(m);
        self.update_times(m, file.inode).await;
        m.run(Account::System, c.write_checks).await;
        open.lines.count(m);
        self.map(m, file.inode, &open, io.offset, c.write_mapped).await;
        open.lines.build_bio(m);
        let request = Request::write(io.bytes, Some(io.offset));
        match io.done {
            None => {
                self.storage.io(m, request).await;
                self.end_write(m, &open).await;
            }
            Some(done) => {
                self.storage.submit(m, request, End::Queue(self.io.ended.clone(), (file.inode, done))).await;
            }
        }
        open.iolock.unlock(m).await;
        m.run(Account::System, c.write_exit).await;
    }

    /// `xfs_file_dio_write` of a part of a block before 5.12, which might have to zero the rest: it has the IOLOCK for itself, waits until
    /// nothing of the file is under way (`inode_dio_wait`), and for its own end. Only requests that nobody waits for outlast the lock, and
    /// those are the task's own here.
    async fn dio_write_alone<M: Machine>(&self, m: &M, file: &File, io: Io) {
        let (c, open, inode) = (&self.io.costs, self.io.file(file.inode), self.inodes.inode(file.inode));
        let asks_of_others = || open.user.replace(Some(m.task())).is_some_and(|user| user != m.task());
        if io.done.is_some() && asks_of_others() {
            m.give_up(
                "asynchronous direct writes of less than a block to one file by several tasks need Linux 5.12 here",
            );
        }
        open.lines.enter(m);
        m.run(Account::System, c.write_start).await;
        m.lock(inode.iolock, Side::Write).await;
        open.lines.check_write(m);
        self.look_at_size(m, &open).await;
        open.lines.check_write(m);
        self.update_times(m, file.inode).await;
        m.run(Account::System, c.write_checks).await;
        if let Some(done) = io.done {
            m.wchan("inode_dio_wait");
            for _ in 0..io.others {
                m.wait_for(done).await;
            }
        }
        open.lines.count(m);
        self.map(m, file.inode, &open, io.offset, c.write_mapped).await;
        open.lines.build_bio(m);
        self.storage.io(m, Request::write(io.bytes, Some(io.offset))).await;
        self.end_write(m, &open).await;
        m.unlock(inode.iolock, Side::Write).await;
        if let Some(done) = io.done {
            for _ in 0..=io.others {
                m.complete(done).await; // what the caller has yet to see
            }
        }
        m.run(Account::System, c.write_exit).await;
    }

    /// `xfs_read_iomap_begin`, `xfs_direct_write_iomap_begin`: the blocks under the ILOCK, shared.
    async fn map<M: Machine>(&self, m: &M, slot: u32, open: &OpenFile, offset: u64, time: Time) {
        let inode = self.inodes.inode(slot);
        open.lines.look_at_format(m);
        m.run(Account::System, self.io.costs.map).await;
        m.lock(inode.ilock, Side::Read).await;
        open.lines.own_ilock(m);
        open.extents.find(m, offset);
        m.run(Account::System, time).await;
        open.lines.find_extent_map(m); // after what the step takes, so that others can have had the line
        m.unlock(inode.ilock, Side::Read).await;
    }

    /// `xfs_dio_write_end_io` and the end of `iomap_dio_complete`.
    async fn end_write<M: Machine>(&self, m: &M, open: &OpenFile) {
        self.look_at_size(m, open).await;
        open.lines.count(m);
        m.run(Account::System, self.io.costs.write_end).await;
    }

    async fn look_at_size<M: Machine>(&self, m: &M, open: &OpenFile) {
        if let Some(lock) = open.lines.flags_lock() {
            m.lock(lock, Side::Write).await;
            m.pay().await; // what it cost to get the lock's line; the size is read in no time
            m.unlock(lock, Side::Write).await;
        }
    }

    /// `xfs_file_buffered_read`: pages that are not in memory are read with the IOLOCK held.
    async fn buffered_read<M: Machine>(&self, m: &M, file: &File, io: Io) {
        let (c, open, inode) = (&self.io.costs, self.io.file(file.inode), self.inodes.inode(file.inode));
        let locks = self.io.rules.buffered != BufferedIo::ReadsUnlocked;
        m.run(Account::System, c.cached_read_start).await;
        if self.io.rules.buffered == BufferedIo::Prewarmed {
            self.read_pages(m, file, &open, io).await;
        }
        if locks {
            m.lock(inode.iolock, Side::Read).await;
        }
        m.cond_resched().await; // filemap_read
        self.read_pages(m, file, &open, io).await;
        self.sb.calls.pages.copy_from(m, file.inode, io.offset, io.bytes);
        m.run(Account::System, c.read_page * io.pages()).await;
        self.sb.calls.mark_accessed(m, file, (io.offset, io.bytes)).await;
        touch_atime(self, m, Timed::File(file.inode)).await;
        if locks {
            m.unlock(inode.iolock, Side::Read).await;
        }
        m.run(Account::System, c.cached_read_end).await;
    }

    /// Reads what is not in memory.
    async fn read_pages<M: Machine>(&self, m: &M, file: &File, open: &OpenFile, io: Io) {
        if let Some(ahead) = &open.ahead {
            ahead.read(m, self, (file.inode, &open.pages), (io.offset, io.bytes)).await;
        } else if !open.pages.has(io.offset, io.bytes) {
            self.map(m, file.inode, open, io.offset, self.io.costs.mapped).await;
            self.storage.io(m, Request::Read { bytes: io.bytes, at: Some(io.offset) }).await;
            self.storage.memory.add(m, &self.storage.writeback, &open.pages, (io.offset, io.bytes)).await;
        }
    }

    /// `xfs_file_buffered_write` of blocks that exist, page by page (`xfs_buffered_write_iomap_begin` takes the ILOCK
    /// exclusively).
    async fn buffered_write<M: Machine>(&self, m: &M, file: &File, io: Io) {
        let (open, inode) = (self.io.file(file.inode), self.inodes.inode(file.inode));
        let side = if self.io.rules.buffered == BufferedIo::WritesShared { Side::Read } else { Side::Write };
        let (start, checks, copy, end) = self.steps_of_write(file, &open, io);
        m.run(Account::System, start).await;
        m.lock(inode.iolock, side).await;
        self.update_times(m, file.inode).await;
        m.run(Account::System, checks).await;
        inode.ilock(m).await;
        open.extents.find(m, io.offset);
        inode.iunlock(m).await;
        self.storage.memory.add(m, &self.storage.writeback, &open.pages, (io.offset, io.bytes)).await;
        open.pages.write(io.offset, io.bytes);
        self.sb.calls.pages.copy_to(m, file.inode, io.offset, io.bytes);
        m.run(Account::System, copy).await;
        m.cond_resched().await; // iomap_write_iter
        self.dirtied(m, file.inode).await;
        m.unlock(inode.iolock, side).await;
        m.run(Account::System, end).await;
    }

    /// What a write takes before the IOLOCK, until the ILOCK, from there on, and after the IOLOCK: over pages in memory, or of new ones.
    fn steps_of_write(&self, file: &File, open: &OpenFile, io: Io) -> (Time, Time, Time, Time) {
        let (c, calls) = (&self.io.costs, &self.sb.calls);
        if open.pages.has(io.offset, io.bytes) {
            let copy = c.overwrite_copy + calls.overwriting_more(file, (io.offset, io.bytes));
            (c.overwrite_start, c.overwrite_checks, copy, c.overwrite_end)
        } else {
            let copy = calls.filling(c.buffered_copy, io.offset, io.bytes);
            (c.buffered_start, c.buffered_checks, copy, c.buffered_end)
        }
    }

    /// The program of a CPU's `dio` worker.
    pub async fn dio_worker<M: Machine>(m: M, fs: Rc<Self>, cpu: CpuId) {
        m.at("dio worker");
        loop {
            let (slot, done) = fs.io.ended.next(&m, cpu).await;
            let open = fs.io.file(slot);
            fs.end_write(&m, &open).await;
            m.complete(done).await;
        }
    }
}

impl ReadPages for Xfs {
    fn device(&self) -> &BlockDevice {
        &self.storage
    }

    async fn find_blocks<M: Machine>(&self, m: &M, slot: u32, (offset, _): (u64, u32)) {
        self.map(m, slot, &self.io.file(slot), offset, self.io.costs.mapped).await;
    }
}
