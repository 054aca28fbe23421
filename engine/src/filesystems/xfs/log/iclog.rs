//! The log buffers (`xfs_log.c`): checkpoints are copied into the active one, which is written when it is full or somebody forces the log.
//!
//! Who copies holds a reference; a buffer that is to be written goes to the device with the last. Buffers may end out of order; what has its
//! commit record in one is committed in order, and only then the buffer is free again and who waits for it goes on. A buffer that is
//! forced is written with `REQ_PREFLUSH` and `REQ_FUA`, and so was every one before 5.14. Two forces that meet share a write: before a
//! force writes a buffer that is not full it waits for the one before, which lets others commit into it meanwhile.

use super::context::Context;
use super::grant::GrantHead;
use super::wait::LogWait;
use crate::devices::{BlockDevice, End, Request, Work};
use crate::filesystems::costs::Costs;
use crate::filesystems::log_area::LogArea;
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

/// What ends with a log buffer that is on the device: contexts, and the bytes that its write had besides.
pub type Ended = (Vec<Context>, u64);

/// All log buffers.
pub struct Iclogs {
    storage: Rc<BlockDevice>,
    costs: IclogCosts,
    grants: Rc<GrantHead>,
    size: IclogSize,
    area: LogArea,
    /// Every buffer is written with both flags.
    always_ordered: bool,
    /// Those that are not free, oldest first; the number of the first.
    iclogs: RefCell<VecDeque<Iclog>>,
    first: Cell<Number>,
    /// `l_icloglock`: all of the above is read and changed under it.
    icloglock: LockId,
    /// By buffer, who waits until it is on the device (`ic_write_wait`), and until what is in it is committed (`ic_force_wait`).
    write_wait: Vec<LogWait>,
    force_wait: Vec<LogWait>,
    /// Who waits for a free buffer (`l_flush_wait`).
    flush_wait: LogWait,
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
        Ok(Self {
            storage,
            costs: IclogCosts::new(costs)?,
            grants,
            size,
            area,
            always_ordered: costs.rules().log_flushes == LogFlushes::Each,
            iclogs: RefCell::default(),
            first: Cell::new(0),
            icloglock: m.new_lock(m.class("xfs.l_icloglock", "xfs.icloglock")),
            write_wait: (0..ICLOGS).map(|_| LogWait::new(m, "xfs.ic_write_wait")).collect(),
            force_wait: (0..ICLOGS).map(|_| LogWait::new(m, "xfs.ic_force_wait")).collect(),
            flush_wait: LogWait::new(m, "xfs.l_flush_wait"),
            committing: Cell::new(false),
            ended: Rc::new(Workqueue::new(m)),
        })
    }

    /// Whether what was in a buffer is on its way to the AIL.
    pub fn is_committing(&self) -> bool {
        self.committing.get()
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

    async fn lock<M: Machine>(&self, m: &M) {
        m.lock(self.icloglock, Side::Write).await;
    }

    async fn unlock<M: Machine>(&self, m: &M) {
        m.unlock(self.icloglock, Side::Write).await;
    }

    /// `xlog_state_get_iclog_space`: room for up to so many bytes, and a reference to where it is.
    pub async fn get_space<M: Machine>(&self, m: &M, bytes: u64) -> (Number, u64) {
        loop {
            self.lock(m).await;
            let Some(number) = self.active() else {
                self.flush_wait.wait(m, self.icloglock, "xlog_state_get_iclog_space").await;
                continue;
            };
            let part = self.with(number, |iclog| {
                let part = bytes.min(self.size.room() - iclog.used);
                iclog.used += part;
                iclog.writers += 1;
                iclog.switched = iclog.used == self.size.room();
                part
            });
            self.unlock(m).await;
            return (number, part);
        }
    }

    /// The end of `xlog_write`: gives a reference back.
    pub async fn release<M: Machine>(&self, m: &M, number: Number) {
        self.lock(m).await;
        self.release_and_unlock(m, number).await;
    }

    /// `xlog_state_release_iclog`, and the lock is given back: who gives the last reference to a buffer back that is to be written writes
    /// it (`xlog_sync`). Its checksum is over the padding too, which takes space of the log.
    async fn release_and_unlock<M: Machine>(&self, m: &M, number: Number) {
        let request = self.with(number, |iclog| {
            iclog.writers -= 1;
            (iclog.switched && iclog.writers == 0).then(|| {
                let bytes = self.size.written(iclog.used);
                iclog.besides = bytes - iclog.used;
                self.grants.add(iclog.besides);
                let (bytes, always) = (bytes as u32, self.always_ordered);
                let (preflush, fua) = (iclog.preflush || always, iclog.fua || always);
                (bytes, Request::LogWrite { bytes, at: Some(self.area.place(bytes.into())), preflush, fua })
            })
        });
        self.unlock(m).await;
        if let Some((bytes, request)) = request {
            m.run(Account::System, self.costs.sync + self.costs.kib * Time::from(bytes) / KIB).await;
            self.storage.submit(m, request, End::Queue(self.ended.clone(), (number, 0))).await;
        }
    }

    /// A commit record is in a buffer, to which the caller has a reference (`xlog_cil_set_ctx_write_state`).
    pub async fn attach<M: Machine>(&self, m: &M, number: Number, context: Context) {
        self.lock(m).await;
        self.with(number, |iclog| {
            iclog.ends.push(context);
            iclog.fua = true;
        });
        self.unlock(m).await;
    }

    /// Flushes the device's cache and waits for it (`xfs_flush_bdev_async`).
    pub async fn flush_device<M: Machine>(&self, m: &M) {
        self.storage.io_uncounted(m, Request::Flush, "xlog_cil_push_work").await;
    }

    /// The buffer has to be written after the cache is flushed (`XLOG_ICL_NEED_FLUSH`).
    pub async fn preflush<M: Machine>(&self, m: &M, number: Number) {
        self.lock(m).await;
        self.with(number, |iclog| iclog.preflush = true);
        self.unlock(m).await;
    }

    /// The end of `xlog_cil_push_work`: gives the reference to the buffer with the commit record back. If those `before` are to be on
    /// disk first, it is written behind a flush; if it is to be `stable`, at once.
    pub async fn release_commit<M: Machine>(&self, m: &M, number: Number, before: bool, stable: bool) {
        self.lock(m).await;
        if before {
            self.wait_on_and_unlock(m, number - 1).await;
            self.lock(m).await;
        }
        self.with(number, |iclog| {
            iclog.preflush |= before;
            iclog.switched |= stable;
        });
        self.release_and_unlock(m, number).await;
    }

    /// Whether a buffer is not yet on the device.
    fn is_syncing(&self, number: Number) -> bool {
        !self.is_free(number) && self.with(number, |iclog| !iclog.done)
    }

    /// `xlog_force_lsn` and, where nobody `waits`, `xlog_force_iclog`. Returns whether the buffer was active, and is written for the caller.
    pub async fn force<M: Machine>(&self, m: &M, number: Number, waits: bool) -> bool {
        self.lock(m).await;
        let is_active = || !self.is_free(number) && self.with(number, |iclog| !iclog.switched);
        if waits && is_active() && number > 0 && self.is_syncing(number - 1) {
            self.of(&self.write_wait, number - 1).wait(m, self.icloglock, "xlog_force_lsn").await;
            self.lock(m).await;
        }
        let active = is_active();
        if !self.is_free(number) {
            self.with(number, |iclog| (iclog.preflush, iclog.fua) = (true, true));
        }
        if active {
            self.with(number, |iclog| {
                iclog.switched = true;
                iclog.writers += 1;
            });
            self.release_and_unlock(m, number).await;
            self.lock(m).await;
        }
        if waits {
            self.wait_on_and_unlock(m, number).await;
        } else {
            self.unlock(m).await;
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
    async fn wait_on_and_unlock<M: Machine>(&self, m: &M, number: Number) {
        if self.is_free(number) {
            return self.unlock(m).await;
        }
        self.of(&self.force_wait, number).wait(m, self.icloglock, "xlog_wait_on_iclog").await;
    }

    fn of<'a>(&self, queues: &'a [LogWait], number: Number) -> &'a LogWait {
        &queues[number as usize % ICLOGS]
    }

    /// `xlog_state_done_syncing`: a buffer is on the device. Returns what the caller has to commit.
    pub async fn done<M: Machine>(&self, m: &M, number: Number) -> Option<Ended> {
        self.lock(m).await;
        self.with(number, |iclog| iclog.done = true);
        self.of(&self.write_wait, number).wake_all(m).await;
        let next = if self.committing.get() { None } else { self.next_ended(m).await };
        self.unlock(m).await;
        next
    }

    /// What ended with the oldest buffer is committed (`xlog_state_clean_iclog`). Returns what ends with the next one.
    pub async fn clean<M: Machine>(&self, m: &M) -> Option<Ended> {
        self.lock(m).await;
        let number = self.first.get();
        self.iclogs.borrow_mut().pop_front();
        self.first.set(number + 1);
        self.of(&self.force_wait, number).wake_all(m).await;
        let next = self.next_ended(m).await;
        self.unlock(m).await;
        next
    }

    /// The rest of `xlog_state_do_callback`: what ends with the oldest buffer, if that is on the device.
    async fn next_ended<M: Machine>(&self, m: &M) -> Option<Ended> {
        let take = |iclog: &mut Iclog| (std::mem::take(&mut iclog.ends), std::mem::take(&mut iclog.besides));
        let ended = self.iclogs.borrow_mut().front_mut().filter(|iclog| iclog.done).map(take);
        self.committing.set(ended.is_some());
        if ended.is_none() {
            self.flush_wait.wake_all(m).await;
        }
        ended
    }
}
