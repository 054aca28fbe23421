//! Checkpoints: what commits have collected in the CIL is written to the log by a worker (`xlog_cil_push_work`).
//!
//! A commit adds what it has changed to the current context, an item once however often it is logged. When the context has
//! reached an eighth of the log, or 32 MiB, a worker takes it, with `xc_ctx_lock` for itself while it goes through the items; who commits
//! beyond twice that much sleeps until it has. What it costs to fetch so many items is in the times for
//! each, as they were traced. The worker copies the items into the 8 log buffers and waits when all of them are under
//! way. When the last buffer of a checkpoint is on disk, another worker puts its items into the AIL, and only then is that
//! buffer free again. Before 5.15 one checkpoint was written after the other; since then up to 4 are, whose last buffers go out in order.

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

/// Bytes that an item takes in a context: an inode; a buffer with one chunk of 128 bytes; each further chunk; the most.
const INODE: u16 = 256;
const BUFFER: u16 = 180;
const CHUNK: u16 = 128;
const BLOCK: u16 = 4096;

/// Something that transactions log, told by its lines.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    /// An inode.
    Inode(LineId),
    /// A buffer.
    Buffer(LineId),
}

/// What one checkpoint is made of.
#[derive(Debug, Default)]
struct Context {
    sequence: u32,
    items: Vec<LineId>,
    bytes: u64,
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
    /// By line: the context that it was last logged in, and its bytes there.
    logged: RefCell<Vec<(u32, u16)>>,
    /// Emptied lists of items.
    spare: RefCell<Vec<Vec<LineId>>>,
    queued: Cell<bool>,
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
            logged: RefCell::default(),
            spare: RefCell::default(),
            queued: Cell::new(false),
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

    /// A commit, which holds `xc_ctx_lock` shared, has changed an item.
    pub fn insert(&self, item: Item) {
        let (line, first, most) = match item {
            Item::Inode(line) => (line, INODE, INODE),
            Item::Buffer(line) => (line, BUFFER, BLOCK),
        };
        let (mut logged, mut context) = (self.logged.borrow_mut(), self.context.borrow_mut());
        let at = line as usize;
        if logged.len() <= at {
            logged.resize(at + 1, (0, 0));
        }
        let (sequence, bytes) = &mut logged[at];
        if *sequence != context.sequence {
            (*sequence, *bytes) = (context.sequence, first);
            context.items.push(line);
            context.bytes += u64::from(first);
        } else {
            let more = CHUNK.min(most - *bytes);
            *bytes += more;
            context.bytes += u64::from(more);
        }
    }

    /// A buffer's lines now stand for another block, which was not logged before.
    pub fn renew(&self, buffer: LineId) {
        if let Some(logged) = self.logged.borrow_mut().get_mut(buffer as usize) {
            *logged = (0, 0);
        }
    }

    /// The end of a commit, which no longer holds `xc_ctx_lock` (`xlog_cil_push_background`).
    pub async fn push_background<M: Machine>(&self, m: &M) {
        let bytes = self.context.borrow().bytes;
        if bytes < self.limit {
            return;
        }
        if !self.queued.replace(true) {
            let worker = self.idle_workers.borrow_mut().pop();
            if let Some(worker) = worker {
                m.wake(worker);
            }
        }
        if bytes >= 2 * self.limit {
            let pushed = m.new_completion();
            self.throttled.borrow_mut().push(pushed);
            m.wait_for(pushed).await;
            m.drop_completion(pushed);
        }
    }

    /// `fsync` has written the context, whose work is in its own steps.
    pub fn forced(&self) {
        let context = self.switch();
        self.recycle(context);
        self.turn.set(self.turn.get() + 1);
    }

    fn switch(&self) -> Context {
        let mut context = self.context.borrow_mut();
        let items = self.spare.borrow_mut().pop().unwrap_or_default();
        let next = Context { sequence: context.sequence + 1, items, bytes: 0 };
        std::mem::replace(&mut *context, next)
    }

    fn recycle(&self, context: Context) {
        let mut items = context.items;
        items.clear();
        self.spare.borrow_mut().push(items);
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
            let context = Self::take_context(&m, cil).await;
            if cil.orders {
                m.run(Account::System, cil.costs.order * context.items.len() as Time).await;
            }
            fs.write_checkpoint(&m, context).await;
        }
    }

    /// `xlog_cil_build_lv_chain`: the items are taken off the list, while nobody can commit.
    async fn take_context<M: Machine>(m: &M, cil: &Checkpoints) -> Context {
        m.lock(cil.ctx_lock, Side::Write).await;
        let context = cil.switch();
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
                cil.recycle(context);
            }
            cil.free_iclog(&m).await;
        }
    }
}
