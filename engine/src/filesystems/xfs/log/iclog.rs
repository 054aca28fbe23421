//! The log buffers (`xfs_log.c`): checkpoints are copied into the active one, which is written when it is full or somebody forces the log.
//!
//! Who copies holds a reference; a buffer that is to be written goes to the device with the last. Buffers may end out of order; what has its
//! commit record in one is committed in order, and only then the buffer is free again and who waits for it goes on. A buffer that is
//! forced is written with `REQ_PREFLUSH` and `REQ_FUA`, and so was every one before 5.14. Two forces that meet share a write: before a
//! force writes a buffer that is not full it waits for the one before, which lets others commit into it meanwhile.

use super::context::Context;
use super::grant::GrantHead;
use crate::devices::{BlockDevice, End, Request, Work};
use crate::filesystems::costs::Costs;
use crate::kernel::xfs::LogFlushes;
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use crate::workqueue::Workqueue;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

crate::cost_table!(IclogCosts { sync: ["iclog.sync"], kib: ["iclog.kib"] });

/// Log buffers (`XLOG_MAX_ICLOGS`), and what the log is written in where it has no stripe unit (`BBSIZE`).
const ICLOGS: usize = 8;
const BASIC_BLOCK: u64 = 512;
const KIB: Time = 1024;
/// Bytes of a log buffer without `logbsize` (`XLOG_BIG_RECORD_BSIZE`), and those of a header, of which there is one for so many.
const BIG_RECORD: u64 = 32 << 10;
const HEADER: u64 = 512;
const HEADER_CYCLE: u64 = 32 << 10;

/// How large log buffers are (`l_iclog_size`), and to what their writes are padded (`l_iclog_roundoff`).
#[derive(Clone, Copy, Debug)]
pub struct IclogSize {
    bytes: u64,
    roundoff: u64,
}

impl IclogSize {
    /// Of the mount option `logbsize`, which is the log's stripe unit if that is larger than a buffer otherwise (`xfs_finish_flags`).
    pub fn new(logbsize: Option<u64>, stripe_unit: Option<u64>) -> Self {
        let roundoff = stripe_unit.unwrap_or(BASIC_BLOCK);
        Self { bytes: logbsize.unwrap_or(BIG_RECORD.max(roundoff)), roundoff }
    }

    /// What a write is padded to.
    pub fn roundoff(self) -> u64 {
        self.roundoff
    }

    /// Bytes of the headers of one (`l_iclog_hsize`).
    fn header(self) -> u64 {
        HEADER * self.bytes.div_ceil(HEADER_CYCLE)
    }

    /// What one takes of a checkpoint.
    fn room(self) -> u64 {
        self.bytes - self.header()
    }

    /// What is written of one that is filled so far (`xlog_calc_iclog_size`).
    fn written(self, used: u64) -> u64 {
        (self.header() + used).next_multiple_of(self.roundoff)
    }
}

/// Where the log is, in bytes from the beginning of the device (`sb_logstart`), and how large.
#[derive(Clone, Copy, Debug)]
pub struct LogArea {
    pub start: u64,
    pub bytes: u64,
}

/// A log buffer's number in the order in which they are filled.
pub type Number = u32;

#[derive(Debug, Default)]
struct Iclog {
    used: u64,
    /// What its write has besides: headers and padding.
    besides: u64,
    /// Who copies into it.
    writers: u32,
    /// It is no longer active (`XLOG_STATE_WANT_SYNC` and later).
    switched: bool,
    /// It is on the device.
    done: bool,
    preflush: bool,
    fua: bool,
    /// Contexts whose commit records are in it.
    ends: Vec<Context>,
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// A buffer is on the device.
    Written(Number),
    /// What is in it is committed.
    Committed(Number),
    /// A free buffer.
    Free,
}

/// All log buffers.
pub struct Iclogs {
    storage: Rc<BlockDevice>,
    costs: IclogCosts,
    grants: Rc<GrantHead>,
    size: IclogSize,
    area: LogArea,
    /// Where in it the next one is written.
    next: Cell<u64>,
    /// Every buffer is written with both flags.
    always_ordered: bool,
    /// Those that are not free, oldest first; the number of the first.
    iclogs: RefCell<VecDeque<Iclog>>,
    first: Cell<Number>,
    waiters: RefCell<Vec<(Awaited, LockId)>>,
    /// The spinlock in the wait queue of each buffer (`ic_force_wait`).
    force_wait: Vec<LockId>,
    /// A worker commits what has ended.
    committing: Cell<bool>,
    /// Buffers that have ended (`l_ioend_workqueue`).
    pub ended: Rc<Workqueue<Work>>,
}

impl Iclogs {
    /// All are free.
    pub fn new<M: Machine>(
        m: &M,
        storage: Rc<BlockDevice>,
        (area, size): (LogArea, IclogSize),
        grants: Rc<GrantHead>,
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let class = m.class("xfs.ic_force_wait", "xfs.ic_force_wait");
        Ok(Self {
            storage,
            costs: IclogCosts::new(costs)?,
            grants,
            size,
            area,
            next: Cell::new(0),
            always_ordered: costs.rules().log_flushes == LogFlushes::Each,
            iclogs: RefCell::default(),
            first: Cell::new(0),
            waiters: RefCell::default(),
            force_wait: (0..ICLOGS).map(|_| m.new_lock(class)).collect(),
            committing: Cell::new(false),
            ended: Rc::new(Workqueue::new(m)),
        })
    }

    /// Bytes of the checkpoints that are in buffers, commit records, headers, padding and all.
    pub fn space(&self) -> u64 {
        let space = |iclog: &Iclog| iclog.besides + iclog.ends.iter().map(|context| context.space).sum::<u64>();
        self.iclogs.borrow().iter().map(space).sum()
    }

    fn is_free(&self, number: Number) -> bool {
        number < self.first.get()
    }

    fn with<T>(&self, number: Number, change: impl FnOnce(&mut Iclog) -> T) -> T {
        change(&mut self.iclogs.borrow_mut()[(number - self.first.get()) as usize])
    }

    /// The one that is filled now; none while all are under way.
    fn active(&self) -> Option<Number> {
        let mut iclogs = self.iclogs.borrow_mut();
        if iclogs.back().is_none_or(|last| last.switched) {
            if iclogs.len() == ICLOGS {
                return None;
            }
            iclogs.push_back(Iclog::default());
        }
        Some(self.first.get() + iclogs.len() as Number - 1)
    }

    /// `xlog_state_get_iclog_space`: room for up to so many bytes, and a reference to where it is.
    pub async fn get_space<M: Machine>(&self, m: &M, bytes: u64) -> (Number, u64) {
        loop {
            let Some(number) = self.active() else {
                self.wait(m, Awaited::Free).await;
                continue;
            };
            let part = self.with(number, |iclog| {
                let part = bytes.min(self.size.room() - iclog.used);
                iclog.used += part;
                iclog.writers += u32::from(part > 0);
                part
            });
            if part > 0 {
                return (number, part);
            }
            self.switch(m, number).await;
        }
    }

    /// `xlog_state_release_iclog`: gives the reference back. A buffer that is full is written.
    pub async fn release<M: Machine>(&self, m: &M, number: Number) {
        let full = self.with(number, |iclog| {
            iclog.writers -= 1;
            iclog.used == self.size.room() || (iclog.switched && iclog.writers == 0)
        });
        if full {
            self.switch(m, number).await;
        }
    }

    /// `xlog_state_switch_iclogs`: the buffer is to be written, at once if nobody copies into it (`xlog_sync`). Its checksum is over the
    /// padding too, which takes space of the log.
    pub async fn switch<M: Machine>(&self, m: &M, number: Number) {
        let request = self.with(number, |iclog| {
            iclog.switched = true;
            let written = self.size.written(iclog.used);
            if iclog.writers == 0 {
                iclog.besides = written - iclog.used;
                self.grants.add(iclog.besides);
            }
            let bytes = written as u32;
            let (preflush, fua) = (iclog.preflush || self.always_ordered, iclog.fua || self.always_ordered);
            (iclog.writers == 0)
                .then(|| (bytes, Request::LogWrite { bytes, at: Some(self.place(bytes)), preflush, fua }))
        });
        if let Some((bytes, request)) = request {
            m.run(Account::System, self.costs.sync + self.costs.kib * Time::from(bytes) / KIB).await;
            self.storage.submit(m, request, End::Queue(self.ended.clone(), (number, 0))).await;
        }
    }

    /// One buffer is written behind the other, round and round.
    fn place(&self, bytes: u32) -> u64 {
        let next = if self.next.get() + u64::from(bytes) > self.area.bytes { 0 } else { self.next.get() };
        self.next.set(next + u64::from(bytes));
        self.area.start + next
    }

    /// A commit record is in a buffer, to which the caller has a reference.
    pub fn attach(&self, number: Number, context: Context) {
        self.with(number, |iclog| {
            iclog.ends.push(context);
            iclog.fua = true;
        });
    }

    /// Flushes the device's cache and waits for it.
    pub async fn flush_device<M: Machine>(&self, m: &M) {
        self.storage.io(m, Request::Flush).await;
    }

    /// The buffer has to be written after the cache is flushed.
    pub fn preflush(&self, number: Number) {
        self.with(number, |iclog| iclog.preflush = true);
    }

    /// `xlog_force_lsn` and, where nobody `waits`, `xlog_force_iclog`. Returns whether the buffer was active, and is written for the caller.
    pub async fn force<M: Machine>(&self, m: &M, number: Number, waits: bool) -> bool {
        if waits && !self.is_free(number) && self.with(number, |iclog| !iclog.switched) && number > self.first.get() {
            self.wait(m, Awaited::Written(number - 1)).await;
        }
        if self.is_free(number) {
            return false;
        }
        let active = self.with(number, |iclog| {
            (iclog.preflush, iclog.fua) = (true, true);
            !iclog.switched
        });
        if active {
            self.switch(m, number).await;
        }
        if waits {
            self.wait(m, Awaited::Committed(number)).await;
        }
        active
    }

    /// Writes the active buffer if there is something in it, and `waits` for it or not (`xfs_log_force` with `XFS_LOG_SYNC`).
    pub async fn force_active<M: Machine>(&self, m: &M, waits: bool) {
        let last = self.iclogs.borrow().len() as Number;
        if last > 0 {
            self.force(m, self.first.get() + last - 1, waits).await;
        }
    }

    /// Waits until what is in a buffer is committed (`xlog_wait_on_iclog`).
    pub async fn wait_on<M: Machine>(&self, m: &M, number: Number) {
        self.wait(m, Awaited::Committed(number)).await;
    }

    fn has_happened(&self, what: Awaited) -> bool {
        match what {
            Awaited::Written(number) => self.is_free(number) || self.with(number, |iclog| iclog.done),
            Awaited::Committed(number) => self.is_free(number),
            Awaited::Free => self.iclogs.borrow().len() < ICLOGS,
        }
    }

    async fn wait<M: Machine>(&self, m: &M, what: Awaited) {
        while !self.has_happened(what) {
            let completion = m.new_completion();
            self.waiters.borrow_mut().push((what, completion));
            m.wchan("xlog_wait");
            m.wait_for(completion).await;
            m.drop_completion(completion);
            self.leave_queue(m, what).await;
        }
    }

    /// Who wakes all has the queue's lock until the last is awake (`wake_up_all`), and who is awake leaves it under that lock
    /// (`remove_wait_queue` of `xlog_wait`).
    fn queue_lock(&self, what: Awaited) -> Option<LockId> {
        match what {
            Awaited::Committed(number) => Some(self.force_wait[number as usize % ICLOGS]),
            Awaited::Written(_) | Awaited::Free => None,
        }
    }

    async fn leave_queue<M: Machine>(&self, m: &M, what: Awaited) {
        if let Some(lock) = self.queue_lock(what) {
            m.lock(lock, Side::Write).await;
            m.unlock(lock, Side::Write).await;
        }
    }

    async fn wake<M: Machine>(&self, m: &M, what: Awaited) {
        let lock = self.queue_lock(what).filter(|_| self.next_waiter(what).is_some());
        if let Some(lock) = lock {
            m.lock(lock, Side::Write).await;
        }
        while let Some(next) = self.next_waiter(what) {
            let (_, completion) = self.waiters.borrow_mut().remove(next);
            m.complete(completion).await;
        }
        if let Some(lock) = lock {
            m.unlock(lock, Side::Write).await;
        }
    }

    fn next_waiter(&self, what: Awaited) -> Option<usize> {
        self.waiters.borrow().iter().position(|(waits, _)| *waits == what)
    }

    /// `xlog_state_done_syncing`: a buffer is on the device. Returns whether the caller has to commit what has ended.
    pub async fn done<M: Machine>(&self, m: &M, number: Number) -> bool {
        self.with(number, |iclog| iclog.done = true);
        self.wake(m, Awaited::Written(number)).await;
        !self.committing.replace(true)
    }

    /// What ends with the oldest buffer, if that is on the device, and the bytes that its write had besides.
    pub fn next_ended(&self) -> Option<(Vec<Context>, u64)> {
        let mut iclogs = self.iclogs.borrow_mut();
        let take = |iclog: &mut Iclog| (std::mem::take(&mut iclog.ends), std::mem::take(&mut iclog.besides));
        let ended = iclogs.front_mut().filter(|iclog| iclog.done).map(take);
        self.committing.set(ended.is_some());
        ended
    }

    /// What ended with the oldest buffer is committed (`xlog_state_clean_iclog`).
    pub async fn free<M: Machine>(&self, m: &M) {
        let number = self.first.get();
        self.iclogs.borrow_mut().pop_front();
        self.first.set(number + 1);
        self.wake(m, Awaited::Committed(number)).await;
        self.wake(m, Awaited::Free).await;
    }
}
