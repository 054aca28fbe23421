//! Checkpoints: what commits have collected in the CIL is written to the log by a worker (`xlog_cil_push_work`).
//!
//! A commit adds what it has changed to the current context, an item once however often it is logged. When the context has
//! reached an eighth of the log, or 32 MiB, a worker takes it, with `xc_ctx_lock` for itself while it goes through the items; who commits
//! beyond twice that much sleeps until it has. What it costs to fetch so many items is in the times for
//! each, as they were traced. The worker copies the items into the 8 log buffers and waits when all of them are under
//! way. When the last buffer of a checkpoint is on disk, another worker puts its items into the AIL (`ail.rs`), and only then is that
//! buffer free again. Before 5.15 one checkpoint was written after the other; since then up to 4 are, whose last buffers go out in order.

use super::ail::{Ail, ItemId, Lsn};
use super::buffer::Buffer;
use super::log::Log;
use super::mount::Xfs;
use crate::filesystems::costs::Costs;
use crate::filesystems::designs::{Cil, CilPush};
use crate::machine::{Account, LineId, LockId, Side, TaskId, Time};
use crate::waist::Machine;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

crate::cost_table!(CheckpointCosts {
    build: ["checkpoint.build"],
    order: ["checkpoint.order"],
    write: ["checkpoint.write"],
    committed: ["checkpoint.committed"],
});

/// Log buffers and their size (`XLOG_MAX_ICLOGS`, `logbsize`).
const ICLOGS: u32 = 8;
const ICLOG: u32 = 32 << 10;
/// Bytes of a log buffer's header.
const HEADER: u64 = 512;

/// Something that transactions log, told by its lines.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// An inode, which lies in a cluster buffer.
    #[allow(missing_docs)]
    Inode { line: LineId, cluster: Buffer },
    /// A buffer.
    Buffer(Buffer),
}

/// What one checkpoint is made of.
#[derive(Debug, Default)]
pub struct Context {
    sequence: u32,
    /// What it logs.
    pub items: Vec<ItemId>,
    bytes: u64,
    /// Where it begins in the log.
    pub start: Lsn,
    /// Where it ends.
    pub end: Lsn,
}

/// A log buffer under way: when it is written, and whose last it is.
struct UnderWay {
    written: LockId,
    ends: Option<Context>,
}

/// The CIL's contexts and the log buffers.
pub struct Checkpoints {
    limit: u64,
    ctx_lock: LockId,
    orders: bool,
    workers: u32,
    costs: CheckpointCosts,
    context: RefCell<Context>,
    /// Where the next checkpoint will begin.
    head: Cell<Lsn>,
    queued: Cell<bool>,
    /// The last context that was to be pushed.
    pushed: Cell<u32>,
    idle_workers: RefCell<Vec<TaskId>>,
    throttled: RefCell<Vec<LockId>>,
    free_iclogs: Cell<u32>,
    iclog_waiters: RefCell<VecDeque<LockId>>,
    under_way: RefCell<VecDeque<UnderWay>>,
    idle_ender: Cell<Option<TaskId>>,
    /// The context whose last buffer is to go out next, and who waits for the turn of which.
    turn: Cell<u32>,
    turn_waiters: RefCell<Vec<(u32, LockId)>>,
}

impl Checkpoints {
    /// An empty CIL under `ctx_lock`, of a log of so many bytes.
    pub fn new(ctx_lock: LockId, log_bytes: u64, costs: &Costs<'_>) -> Result<Self, String> {
        let designs = costs.designs();
        let most = (costs.number("cil_limit_mib")? * f64::from(1 << 20)) as u64;
        Ok(Self {
            limit: (log_bytes / 8).min(most),
            ctx_lock,
            orders: designs.cil >= Cil::PerCpuLists && designs.cil_push == CilPush::Pipelined, // not in the series of 2020
            workers: if designs.cil_push == CilPush::Serial { 1 } else { 4 },
            costs: CheckpointCosts::new(costs)?,
            context: RefCell::new(Context { sequence: 1, ..Context::default() }),
            head: Cell::new(1),
            queued: Cell::new(false),
            pushed: Cell::new(0),
            idle_workers: RefCell::default(),
            throttled: RefCell::default(),
            free_iclogs: Cell::new(ICLOGS),
            iclog_waiters: RefCell::default(),
            under_way: RefCell::default(),
            idle_ender: Cell::new(None),
            turn: Cell::new(1),
            turn_waiters: RefCell::default(),
        })
    }

    /// How many workers write checkpoints.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// A commit, which holds `xc_ctx_lock` shared, has changed an item: the bytes by which the context grows.
    pub fn insert(&self, ail: &mut Ail, item: Item) -> u64 {
        let mut context = self.context.borrow_mut();
        let (new, bytes) = ail.log(item, context.sequence);
        context.items.extend(new);
        context.bytes += bytes;
        bytes
    }

    /// The end of a commit, which no longer holds `xc_ctx_lock` (`xlog_cil_push_background`).
    pub async fn push_background<M: Machine>(&self, m: &M) {
        let bytes = self.context.borrow().bytes;
        if bytes < self.limit {
            return;
        }
        self.push(m);
        if bytes >= 2 * self.limit {
            let pushed = m.new_completion();
            self.throttled.borrow_mut().push(pushed);
            m.wait_for(pushed).await;
            m.drop_completion(pushed);
        }
    }

    /// Has a worker write the context, and does not wait for it (`xlog_cil_flush`).
    pub fn flush<M: Machine>(&self, m: &M) {
        if self.context.borrow().bytes > 0 {
            self.push(m);
        }
    }

    fn push<M: Machine>(&self, m: &M) {
        let sequence = self.context.borrow().sequence;
        if self.pushed.replace(sequence) == sequence {
            return; // xc_push_seq
        }
        self.queued.set(true);
        let worker = self.idle_workers.borrow_mut().pop();
        if let Some(worker) = worker {
            m.wake(worker);
        }
    }

    /// `fsync` writes the context; the work is in its own steps.
    pub fn forced(&self, log: &Log) -> Context {
        let context = self.switch(log);
        self.turn.set(self.turn.get() + 1);
        context
    }

    /// The context is full; what is logged from now on is in the next. Headers of log records take space too.
    fn switch(&self, log: &Log) -> Context {
        let mut context = self.context.borrow_mut();
        let items = log.ail.borrow_mut().spare();
        let next = Context { sequence: context.sequence + 1, items, ..Context::default() };
        let mut full = std::mem::replace(&mut *context, next);
        let headers = HEADER * full.bytes.div_ceil(u64::from(ICLOG));
        log.grants.add(headers);
        full.start = self.head.get();
        full.end = full.start + full.bytes + headers;
        self.head.set(full.end);
        full
    }

    async fn wait_for_turn<M: Machine>(&self, m: &M, sequence: u32) {
        while self.turn.get() < sequence {
            let turn = m.new_completion();
            self.turn_waiters.borrow_mut().push((sequence, turn));
            m.wait_for(turn).await;
            m.drop_completion(turn);
        }
    }

    async fn end_turn<M: Machine>(&self, m: &M, sequence: u32) {
        self.turn.set(sequence + 1);
        let next = {
            let mut waiters = self.turn_waiters.borrow_mut();
            let at = waiters.iter().position(|(waits, _)| *waits == sequence + 1);
            at.map(|at| waiters.swap_remove(at).1)
        };
        if let Some(next) = next {
            m.complete(next).await;
        }
    }

    /// `xlog_state_get_iclog_space`.
    async fn get_iclog<M: Machine>(&self, m: &M) {
        while self.free_iclogs.get() == 0 {
            let free = m.new_completion();
            self.iclog_waiters.borrow_mut().push_back(free);
            m.wait_for(free).await;
            m.drop_completion(free);
        }
        self.free_iclogs.set(self.free_iclogs.get() - 1);
    }

    async fn free_iclog<M: Machine>(&self, m: &M) {
        self.free_iclogs.set(self.free_iclogs.get() + 1);
        let next = self.iclog_waiters.borrow_mut().pop_front();
        if let Some(next) = next {
            m.complete(next).await;
        }
    }

    fn put_under_way<M: Machine>(&self, m: &M, buffer: UnderWay) {
        self.under_way.borrow_mut().push_back(buffer);
        if let Some(ender) = self.idle_ender.take() {
            m.wake(ender);
        }
    }
}

impl Xfs {
    /// The program of a worker that writes checkpoints.
    pub async fn push_worker<M: Machine>(m: M, fs: Rc<Self>) {
        let cil = &fs.log.checkpoints;
        m.at("cil push");
        loop {
            if !cil.queued.replace(false) {
                if !cil.idle_workers.borrow().contains(&m.task()) {
                    cil.idle_workers.borrow_mut().push(m.task());
                }
                m.park().await;
                continue;
            }
            let context = Self::take_context(&m, &fs.log).await;
            if context.items.is_empty() {
                cil.wait_for_turn(&m, context.sequence).await; // fsync was first
                cil.end_turn(&m, context.sequence).await;
                continue;
            }
            if cil.orders {
                m.run(Account::System, cil.costs.order * context.items.len() as Time).await;
            }
            fs.write_checkpoint(&m, context).await;
        }
    }

    /// `xlog_cil_build_lv_chain`: the items are taken off the list, while nobody can commit.
    async fn take_context<M: Machine>(m: &M, log: &Log) -> Context {
        let cil = &log.checkpoints;
        m.lock(cil.ctx_lock, Side::Write).await;
        let context = cil.switch(log);
        m.run(Account::System, cil.costs.build * context.items.len() as Time).await;
        m.unlock(cil.ctx_lock, Side::Write).await;
        let throttled = std::mem::take(&mut *cil.throttled.borrow_mut());
        for committer in throttled {
            m.complete(committer).await;
        }
        context
    }

    /// `xlog_write`: buffer after buffer; the one with the commit record in the order of the contexts.
    async fn write_checkpoint<M: Machine>(&self, m: &M, context: Context) {
        let cil = &self.log.checkpoints;
        let (sequence, count) = (context.sequence, context.bytes.div_ceil(u64::from(ICLOG)).max(1));
        let work = cil.costs.write * context.items.len() as Time / count;
        let mut context = Some(context);
        for buffer in 1..=count {
            let last = buffer == count;
            if last {
                cil.wait_for_turn(m, sequence).await;
            }
            cil.get_iclog(m).await;
            m.run(Account::System, work).await;
            let written = self.storage.submit_write(m, ICLOG).await;
            cil.put_under_way(m, UnderWay { written, ends: if last { context.take() } else { None } });
        }
        cil.end_turn(m, sequence).await;
    }

    /// The program of the worker that ends log buffers in their order (`xlog_ioend_work`).
    pub async fn log_ender<M: Machine>(m: M, fs: Rc<Self>) {
        let cil = &fs.log.checkpoints;
        m.at("log end");
        loop {
            let next = cil.under_way.borrow_mut().pop_front();
            let Some(UnderWay { written, ends }) = next else {
                cil.idle_ender.set(Some(m.task()));
                m.park().await;
                continue;
            };
            m.wait_for(written).await;
            m.drop_completion(written);
            if let Some(context) = ends {
                m.run(Account::System, cil.costs.committed * context.items.len() as Time).await; // xlog_cil_committed
                fs.log.ail_insert(&m, context);
            }
            cil.free_iclog(&m).await;
        }
    }
}
