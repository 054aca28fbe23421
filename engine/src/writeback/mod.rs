//! Dirty pages of a device: how many there are, which files have them, who writes them back, and who has to wait for that
//! (`struct bdi_writeback`; `mm/page-writeback.c`, `fs/fs-writeback.c` of Linux 5.10 to 6.12).
//!
//! Whoever writes to the page cache counts the pages that he makes dirty, and beyond half way between both limits pauses for as long as
//! the device needs for them, with the file's lock held (`balance_dirty_pages`). One flusher a device takes the files in turn, some
//! pages at a time. A machine whose memory is not told has no limits, and nothing is written but by `fsync`.

mod flusher;
mod limits;

pub use flusher::{flusher, Flushed, Why, REQUEST_PAGES};

use crate::block::BLOCK;
use crate::costs::Costs;
use crate::waist::Machine;
use crate::waist::{LockId, Side, TaskId, Time};
use flusher::Submitted;
use limits::{Counts, Limits, Rates};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// Picoseconds of a second.
const SECOND: f64 = 1e12;
/// What stands for a file where there is one for metadata (`btree_inode` of btrfs).
pub const METADATA: u32 = u32::MAX;
/// Those under way belong to one of two transactions: what stands for a file that has them.
pub fn metadata_of(transaction: u64) -> u32 {
    METADATA - (transaction % 2) as u32
}
/// Pages after which a task asks in any case while too many are dirty (`balance_dirty_pages_ratelimited`: 32 KiB).
const EXCEEDED_PAGES: u64 = 8;

/// What the machine and the run say about it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Bytes of memory; without, there is no limit.
    pub memory: Option<u64>,
    /// Bytes a second that the device writes, as far as there is a limit.
    pub bandwidth: Option<f64>,
    /// Tasks of the load.
    pub tasks: u32,
    /// Length of a tick.
    pub tick: Time,
}

/// A task that writes (`nr_dirtied`, `nr_dirtied_pause`, `dirty_paused_when`).
#[derive(Clone, Copy, Debug, Default)]
struct Dirtier {
    dirtied: u64,
    pause_after: u64,
    paused: f64,
}

/// A file as the flusher sees it.
#[derive(Clone, Copy, Debug, Default)]
struct OfFile {
    dirty: u64,
    /// Since when it is on the list.
    since: Option<Time>,
    /// Its place there.
    place: u64,
    /// The flusher is at it (`I_SYNC`).
    syncing: bool,
    /// Pages of it that the flusher has submitted and that are not on the device.
    under_way: u64,
    /// Those who sync and are at it, until it is on the device.
    syncs: u64,
    /// It is being evicted, or was: what of it is dirty is nobody's (`I_FREEING`).
    going: bool,
}

impl OfFile {
    /// Somebody writes it, or has pages of it under way, so that it cannot go.
    fn is_written(&self) -> bool {
        self.syncing || self.under_way + self.syncs > 0
    }
}

/// Dirty pages of one device.
pub struct Writeback {
    limits: Option<Limits>,
    tick: Time,
    /// Time between two looks for what is old, and how old that is.
    interval: Time,
    expire: Time,
    /// Requests that the flusher may have under way: while nobody pauses, and while somebody does (`blk-wbt.c`).
    depths: (usize, usize),
    list_lock: LockId,
    dirty: Cell<u64>,
    under_way: Cell<u64>,
    /// Requests of all files that nobody waits for.
    flushes: Cell<u64>,
    /// Files that those who sync write.
    syncs: Cell<u64>,
    counts: Cell<Counts>,
    rates: RefCell<Rates>,
    dirtiers: RefCell<Vec<Dirtier>>,
    /// When somebody paused last.
    paused: Cell<Time>,
    files: RefCell<Vec<OfFile>>,
    /// What is not of files: as a whole, and what is under way of the other transaction.
    metadata: RefCell<[OfFile; 2]>,
    /// By place: files that go leave it anywhere.
    list: RefCell<BTreeMap<u64, u32>>,
    submitted: RefCell<VecDeque<Submitted>>,
    /// How many requests of it are under way, or in a plug.
    requests: Cell<usize>,
    /// Somebody needs clean pages, however few are dirty.
    asked: Cell<bool>,
    /// The flusher, if it sleeps.
    flusher: Cell<Option<TaskId>>,
    /// The flusher's task.
    flushes_as: Cell<Option<TaskId>>,
    waiting: RefCell<Vec<TaskId>>,
}

impl Writeback {
    /// Nothing is dirty. The error names a number that is missing.
    pub fn new<M: Machine>(m: &M, setting: Setting, costs: &Costs<'_>) -> Result<Self, String> {
        let number = |name: &str| costs.number(&format!("writeback.{name}"));
        let share = |name: &str| Ok::<_, String>(number("dirtyable")? * number(name)? / f64::from(BLOCK));
        let (background, most) = (share("background_ratio")?, share("dirty_ratio")?);
        let limits =
            |bytes: u64| Limits { background: (bytes as f64 * background) as u64, most: (bytes as f64 * most) as u64 };
        let time = |name: &str| number(name).map(crate::waist::time::from_ns);
        let unlimited = number("initial_bandwidth")?;
        Ok(Self {
            limits: setting.memory.map(limits),
            tick: setting.tick.max(1),
            interval: time("interval")?,
            expire: time("expire")?,
            depths: (number("background_depth")? as usize, number("most_depth")? as usize),
            list_lock: m.new_lock(m.class("vfs.wb_list_lock", "vfs.wb_list")),
            dirty: Cell::new(0),
            under_way: Cell::new(0),
            flushes: Cell::new(0),
            syncs: Cell::new(0),
            counts: Cell::default(),
            rates: RefCell::new(Rates::new(setting.bandwidth.unwrap_or(unlimited) / f64::from(BLOCK), setting.tasks)),
            dirtiers: RefCell::default(),
            paused: Cell::new(0),
            files: RefCell::default(),
            metadata: RefCell::default(),
            list: RefCell::default(),
            submitted: RefCell::default(),
            requests: Cell::new(0),
            asked: Cell::new(false),
            flusher: Cell::new(None),
            flushes_as: Cell::new(None),
            waiting: RefCell::default(),
        })
    }

    /// Whether anything is counted.
    pub fn is_limited(&self) -> bool {
        self.limits.is_some()
    }

    /// Whether the flusher is at no file, and nothing that it submitted is under way.
    pub fn at_rest(&self) -> bool {
        let (files, metadata) = (self.files.borrow(), self.metadata.borrow());
        self.submitted.borrow().is_empty() && !files.iter().chain(&*metadata).any(|file| file.syncing)
    }

    fn change<T>(&self, slot: u32, change: impl FnOnce(&mut OfFile) -> T) -> T {
        if slot >= METADATA - 1 {
            return change(&mut self.metadata.borrow_mut()[(METADATA - slot) as usize]);
        }
        let mut files = self.files.borrow_mut();
        if files.len() <= slot as usize {
            files.resize(slot as usize + 1, OfFile::default());
        }
        change(&mut files[slot as usize])
    }

    /// So many pages of a file are dirty now; returns how many are so that were not.
    pub fn note(&self, slot: u32, dirty: u64) -> u64 {
        if self.limits.is_none() {
            return 0;
        }
        let before = self.change(slot, |file| std::mem::replace(&mut file.dirty, dirty));
        self.dirty.set(self.dirty.get() + dirty - before);
        dirty.saturating_sub(before)
    }

    /// After a write, with the file's lock held: so many pages of it are dirty now (`__mark_inode_dirty`,
    /// `balance_dirty_pages_ratelimited`).
    pub async fn balance<M: Machine>(&self, m: &M, slot: u32, dirty: u64) {
        if self.mark_dirty(m, slot, dirty).await > 0 {
            self.balance_ratelimited(m).await;
        }
    }

    /// So many pages of a file are dirty now, those that the task has changed among them (`__mark_inode_dirty`,
    /// `account_page_dirtied`). Returns how many are so that were not.
    pub async fn mark_dirty<M: Machine>(&self, m: &M, slot: u32, dirty: u64) -> u64 {
        let more = self.note(slot, dirty);
        if more > 0 && self.change(slot, |file| file.since.is_none() && !(file.syncing && slot == METADATA)) {
            m.lock(self.list_lock, Side::Write).await;
            self.change(slot, |file| file.since = Some(m.now()));
            self.list_last(slot);
            m.unlock(self.list_lock, Side::Write).await;
        }
        let counts = self.counts.get();
        self.counts.set(Counts { dirtied: counts.dirtied + more, ..counts });
        if more > 0 {
            self.of_task(m.task(), |task| task.dirtied += more);
        }
        more
    }

    /// `balance_dirty_pages_ratelimited`.
    pub async fn balance_ratelimited<M: Machine>(&self, m: &M) {
        let Some(limits) = self.limits else { return };
        let exceeded = self.dirty_and_under_way() > limits.most;
        let asks = self.of_task(m.task(), |task| {
            let after = if exceeded { task.pause_after.min(EXCEEDED_PAGES) } else { task.pause_after };
            task.dirtied >= after
        });
        if asks {
            self.pause(m, &limits).await;
        }
    }

    fn list_last(&self, slot: u32) {
        let mut list = self.list.borrow_mut();
        let place = list.last_key_value().map_or(0, |(last, _)| last + 1);
        list.insert(place, slot);
        self.change(slot, |file| file.place = place);
    }

    fn of_task<T>(&self, task: TaskId, change: impl FnOnce(&mut Dirtier) -> T) -> T {
        let mut tasks = self.dirtiers.borrow_mut();
        if tasks.len() <= task as usize {
            tasks.resize(task as usize + 1, Dirtier::default());
        }
        change(&mut tasks[task as usize])
    }

    fn dirty_and_under_way(&self) -> u64 {
        self.dirty.get() + self.under_way.get()
    }

    /// `balance_dirty_pages`.
    async fn pause<M: Machine>(&self, m: &M, limits: &Limits) {
        loop {
            let (now, dirty) = (m.now() as f64 / SECOND, self.dirty_and_under_way());
            if self.is_over_background() {
                self.wake_flusher(m);
            }
            if dirty <= limits.freerun() {
                let next = Dirtier { dirtied: 0, pause_after: limits.poll_interval(dirty), paused: now };
                return self.of_task(m.task(), |task| *task = next);
            }
            self.wake_flusher(m);
            let (pause, rate) = self.due_pause(m.task(), now, dirty, limits);
            if pause <= 0.0 {
                return;
            }
            self.paused.set(m.now());
            m.wake_at_tick(m.task(), ((pause * SECOND) as Time).div_ceil(self.tick).max(1));
            m.wchan("balance_dirty_pages");
            m.park_for_io().await;
            if rate > 0.0 {
                return;
            }
        }
    }

    /// How long a task has to pause for what it has written, and the rate that it may write at. No pause is left to a later time.
    fn due_pause(&self, task: TaskId, now: f64, dirty: u64, limits: &Limits) -> (f64, f64) {
        let mut rates = self.rates.borrow_mut();
        rates.update(now, self.counts.get(), dirty, limits);
        let tick = self.tick as f64 / SECOND;
        let rate = rates.task * limits.position_ratio(dirty);
        let max_pause = rates.max_pause(dirty, tick);
        let (min_pause, pause_after) = rates.min_pause(max_pause, rate, tick);
        self.of_task(task, |task| {
            if rate <= 0.0 {
                *task = Dirtier { dirtied: task.dirtied, pause_after, paused: now + max_pause };
                return (max_pause, rate);
            }
            let period = task.dirtied as f64 / rate;
            let pause = period - (now - task.paused);
            if pause < min_pause {
                let paused = if pause < -1.0 { now } else { task.paused + period };
                *task = Dirtier { dirtied: 0, pause_after: task.pause_after.max(1), paused };
                return (0.0, rate);
            }
            let beyond = (pause - max_pause).clamp(0.0, max_pause);
            *task = Dirtier { dirtied: 0, pause_after, paused: now + beyond + pause.min(max_pause) };
            (pause.min(max_pause), rate)
        })
    }

    fn is_over_background(&self) -> bool {
        self.limits.is_some_and(|limits| self.dirty.get() > limits.background)
    }

    /// Reclaim found dirty pages only (`wakeup_flusher_threads`).
    pub fn write_some<M: Machine>(&self, m: &M) {
        self.asked.set(true);
        self.wake_flusher(m);
    }

    fn wake_flusher<M: Machine>(&self, m: &M) {
        if let Some(flusher) = self.flusher.take() {
            m.wake(flusher);
        }
    }

    /// So many pages are on their way to the device, whoever submits them; none of them is dirty.
    pub fn begin(&self, pages: u64) {
        self.under_way.set(self.under_way.get() + if self.is_limited() { pages } else { 0 });
    }

    /// They are there.
    pub fn end(&self, pages: u64) {
        if self.is_limited() {
            self.under_way.set(self.under_way.get() - pages);
            let counts = self.counts.get();
            self.counts.set(Counts { written: counts.written + pages, ..counts });
        }
    }

    /// A file was written to, so that the slot is that of one which is there.
    fn is_there(&self, slot: u32) {
        self.change(slot, |file| file.going = false);
    }

    /// Whether a file is being evicted, or was and its slot has no other that was written to.
    pub fn is_going(&self, slot: u32) -> bool {
        self.change(slot, |file| file.going)
    }

    /// Who syncs writes a file, which cannot go until that is over (`I_SYNC`, and its pages under writeback).
    pub fn begins_sync(&self, slot: u32) {
        self.syncs.set(self.syncs.get() + 1);
        self.change(slot, |file| file.syncs += 1);
    }

    /// It is on the device.
    pub fn ends_sync<M: Machine>(&self, m: &M, slot: u32) {
        self.syncs.set(self.syncs.get() - 1);
        self.change(slot, |file| file.syncs -= 1);
        self.wake_waiting(m);
    }

    /// A request of a file is on its way that nobody waits for but who drops its pages.
    pub fn begins_flush(&self, slot: u32) {
        self.flushes.set(self.flushes.get() + 1);
        self.change(slot, |file| file.under_way += 1);
    }

    /// It is on the device, and its extent is converted.
    pub fn ends_flush<M: Machine>(&self, m: &M, slot: u32) {
        self.flushes.set(self.flushes.get() - 1);
        self.change(slot, |file| file.under_way -= 1);
        self.wake_waiting(m);
    }

    /// Waits until what the flusher submitted of a file is on the device (`filemap_fdatawait_range`).
    pub async fn wait_for_pages<M: Machine>(&self, m: &M, slot: u32) {
        self.wait_while(m, slot, |file| file.under_way > 0).await;
    }

    /// The same of all files.
    pub async fn wait_for_all<M: Machine>(&self, m: &M) {
        let files = self.files.borrow().len() as u32;
        for slot in (0..files).chain([METADATA, METADATA - 1]) {
            self.wait_for_pages(m, slot).await;
        }
    }

    async fn wait_while<M: Machine>(&self, m: &M, slot: u32, waits: impl Fn(&OfFile) -> bool) {
        while (self.is_limited() || self.flushes.get() + self.syncs.get() > 0) && self.change(slot, |file| waits(file))
        {
            self.waiting.borrow_mut().push(m.task());
            m.wchan("folio_wait_writeback");
            m.park_for_io().await;
        }
    }

    /// Of the file's data so many dirty pages are left: the others are dropped once the flusher, which has its folios locked, is not at
    /// it and what it has under way is on the device (`truncate_inode_pages`).
    pub async fn truncated<M: Machine>(&self, m: &M, slot: u32, dirty: u64) {
        self.wait_while(m, slot, OfFile::is_written).await;
        self.note(slot, dirty);
    }

    /// The file goes, with what of it is dirty, once the flusher is not at it (`inode_wait_for_writeback`,
    /// `truncate_inode_pages_final`, `inode_io_list_del`).
    pub async fn forget<M: Machine>(&self, m: &M, slot: u32) {
        while self.change(slot, |file| file.syncing) {
            self.waiting.borrow_mut().push(m.task());
            m.wchan("inode_wait_for_writeback");
            m.park().await;
        }
        self.wait_while(m, slot, OfFile::is_written).await;
        self.change(slot, |file| file.going = true);
        self.note(slot, 0);
        if self.is_limited() && self.change(slot, |file| file.since.take()).is_some() {
            let place = self.change(slot, |file| file.place);
            self.list.borrow_mut().remove(&place); // before anybody else runs
            m.lock(self.list_lock, Side::Write).await;
            m.unlock(self.list_lock, Side::Write).await;
        }
    }
}
