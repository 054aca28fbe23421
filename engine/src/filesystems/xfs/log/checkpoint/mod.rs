//! Checkpoints: what commits have collected in the CIL is written to the log by a worker (`xlog_cil_push_work`).
//!
//! A commit adds what it has changed to the current context, an item once however often it is logged. When the context has
//! reached an eighth of the log, or 32 MiB, a worker takes it, with `xc_ctx_lock` for itself while it goes through the items; who commits
//! beyond twice that much sleeps until it has. What it costs to fetch so many items is in the times for
//! each, as they were traced. The worker copies the items into log buffers (`iclog.rs`). When the buffer with the commit record is on disk,
//! another worker puts the items into the AIL (`ail`). A worker that pushes in the background leaves its last buffer to be filled by who comes
//! next; who forces the log writes it himself. Before 5.15 one checkpoint was written after the other; since then up to 4 are, whose commit
//! records are written in order.

mod parts;
mod push;
mod pushes;

use super::ail::Ail;
use super::buffer::Item;
use super::context::Context;
use super::grant::GrantHead;
use super::iclog::{IclogSize, Iclogs, Number};
use super::wait::LogWait;
use super::Log;
use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::log_area::LogArea;
use crate::filesystems::xfs::structures::touch::{LargeMap, CHUNK};
use crate::kernel::xfs::{Cil, CilPush, LogFlushes};
use crate::waist::Machine;
use crate::waist::{Account, LockId, Side, Time};
use crate::workqueue::Workqueue;
use parts::Parts;
use pushes::Pushes;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

crate::cost_table!(CheckpointCosts {
    push: ["checkpoint.push"],
    build: ["checkpoint.build"],
    part: ["checkpoint.part"],
    order: ["checkpoint.order"],
    write: ["checkpoint.write"],
    committed: ["checkpoint.committed"],
    end: ["checkpoint.end"],
    chunk: ["checkpoint.chunk"],
});

/// An item with one chunk has no more than this, an inode.
const MOST_OF_ONE: u64 = 256;
/// Bytes of a commit record.
const COMMIT_RECORD: u64 = 128;

/// The CIL's contexts and the log buffers.
pub struct Checkpoints {
    limit: u64,
    ctx_lock: LockId,
    orders: bool,
    /// Whether a push is queued is looked at before `xc_push_lock` is taken.
    looks_first: bool,
    flushes: LogFlushes,
    costs: CheckpointCosts,
    /// Since 6.0.
    parts: Option<Parts>,
    context: RefCell<Context>,
    queued: Cell<bool>,
    /// The last context that was to be pushed (`xc_push_seq`).
    pushed: Cell<u32>,
    pub(super) pushes: Pushes,
    /// `xfs-cil`: one piece of work for all contexts, since 5.15 one for each.
    work: Workqueue<()>,
    /// How many workers write checkpoints.
    running: Cell<u32>,
    /// `xc_push_lock`: what is being pushed is read and changed under it.
    push_lock: LockId,
    /// Who has committed too much (`xc_push_wait`).
    push_wait: LogWait,
    /// The next push writes its commit record at once (`xc_push_commit_stable`).
    stable: Cell<bool>,
    /// The context whose commit record is to be written next, and who waits for that of some context (`xc_commit_wait`).
    turn: Cell<u32>,
    commit_wait: LogWait,
    /// Contexts, and the buffers that have their commit records.
    written: RefCell<VecDeque<(u32, Number)>>,
    pub(super) iclogs: Iclogs,
}

impl Checkpoints {
    /// An empty CIL under `ctx_lock`, of a log of so many bytes.
    pub fn new<M: Machine>(
        m: &M,
        ctx_lock: LockId,
        (area, iclogs): (LogArea, IclogSize),
        storage: Rc<BlockDevice>,
        grants: Rc<GrantHead>,
        costs: &Costs<'_>,
    ) -> Result<Self, String> {
        let rules = costs.rules();
        let most = (costs.number("cil_limit_mib")? * f64::from(1 << 20)) as u64;
        Ok(Self {
            limit: (area.bytes / 8).min(most),
            ctx_lock,
            looks_first: rules.cil >= Cil::PerCpuLists,
            orders: rules.cil >= Cil::PerCpuLists && rules.cil_order,
            flushes: rules.log_flushes,
            costs: CheckpointCosts::new(costs)?,
            parts: (rules.cil >= Cil::PerCpuLists).then(|| Parts::new(m)),
            context: RefCell::new(Context { sequence: 1, ..Context::default() }),
            queued: Cell::new(false),
            pushed: Cell::new(0),
            pushes: Pushes::new(m, rules.cil_push == CilPush::Serial, costs)?,
            work: match rules.cil_push {
                CilPush::Serial => Workqueue::piece(m, &storage.pools),
                CilPush::Pipelined => Workqueue::unbound(m, &storage.pools, 4),
            },
            running: Cell::default(),
            push_lock: m.new_lock(m.class("xfs.xc_push_lock", "xfs.push_lock")),
            push_wait: LogWait::new(m, "xfs.xc_push_wait"),
            stable: Cell::new(false),
            turn: Cell::new(1),
            commit_wait: LogWait::new(m, "xfs.xc_commit_wait"),
            written: RefCell::default(),
            iclogs: Iclogs::new(m, storage, (area, iclogs), grants, costs)?,
        })
    }

    /// Whether a piece of work is to write a checkpoint.
    pub fn is_for(&self, work: LockId) -> bool {
        self.work.take(work).is_some()
    }

    /// A commit, which holds `xc_ctx_lock` shared, has changed an item, of a larger block of a directory these chunks: the bytes by which the context grows.
    pub fn insert(&self, ail: &mut Ail, item: Item, large: Option<&LargeMap>) -> u64 {
        let mut context = self.context.borrow_mut();
        let (new, bytes) = ail.log(item, context.sequence, large);
        context.items.extend(new);
        context.bytes += bytes;
        bytes
    }

    /// A commit writes to its CPU's part of the context.
    pub fn write_part<M: Machine>(&self, m: &M) {
        if let Some(parts) = &self.parts {
            let mut context = self.context.borrow_mut();
            context.parts += u32::from(parts.write(m, context.sequence));
        }
    }

    /// The parts of all CPUs that have committed are put together (`xlog_cil_push_pcp_aggregate`).
    async fn gather_parts<M: Machine>(&self, m: &M) {
        if let Some(parts) = &self.parts {
            parts.gather(m);
            let written = Time::from(self.context.borrow().parts);
            m.run(Account::System, self.costs.part * written).await;
        }
    }

    /// The end of a commit, which gives back `xc_ctx_lock`: as it is held shared until the push is queued, no worker can have taken the
    /// context (`xlog_cil_push_background`). Who finds that nothing is to be done takes no `xc_push_lock` (since 6.0).
    pub async fn push_background<M: Machine>(&self, m: &M) {
        let bytes = || self.context.borrow().bytes;
        let throttles = || bytes() >= 2 * self.limit || self.push_wait.is_active();
        if bytes() < self.limit || self.looks_first && self.is_pushed() && !throttles() {
            m.unlock(self.ctx_lock, Side::Read).await;
            return;
        }
        self.lock(m).await;
        self.push(m).await;
        m.unlock(self.ctx_lock, Side::Read).await;
        if throttles() {
            self.push_wait.wait(m, self.push_lock, "xlog_cil_push_background").await;
        } else {
            self.unlock(m).await;
        }
    }

    async fn lock<M: Machine>(&self, m: &M) {
        m.lock(self.push_lock, Side::Write).await;
    }

    async fn unlock<M: Machine>(&self, m: &M) {
        m.unlock(self.push_lock, Side::Write).await;
    }

    /// Has everything written that was committed so far, and does not wait for it (`xlog_cil_flush`).
    pub async fn flush<M: Machine>(&self, m: &M) {
        if self.context.borrow().bytes > 0 {
            self.lock(m).await;
            self.stable.set(true);
            self.push(m).await;
            self.unlock(m).await;
        } else {
            self.iclogs.force_active(m, false).await;
        }
    }

    /// `xfs_log_force_seq`: waits until a context is on disk. Returns whether it was the caller who had the log buffer written
    /// (`log_flushed`).
    pub async fn force<M: Machine>(&self, m: &M, sequence: u32) -> bool {
        self.force_push(m, sequence).await;
        let number = self.written.borrow().iter().find(|(written, _)| *written == sequence).map(|(_, number)| *number);
        match number {
            Some(number) => self.iclogs.force(m, number, true).await,
            None => false,
        }
    }

    /// `xlog_cil_force_seq`: waits for all pushes that are under way (`xlog_cil_push_now`), so who forces meanwhile meets in the next
    /// context, which the first of them has pushed. As no worker has taken that one yet, he begins again, and so waits for its push, too.
    /// Who finds his context or one before it with a worker waits for a commit record, whichever is written next, and begins again.
    async fn force_push<M: Machine>(&self, m: &M, sequence: u32) {
        loop {
            self.pushes.wait(m).await;
            self.lock(m).await;
            if self.context.borrow().sequence == sequence && !self.is_pushed() {
                self.stable.set(false);
                self.push(m).await;
            }
            self.unlock(m).await;
            self.lock(m).await;
            if self.turn.get() <= sequence && self.turn.get() < self.context.borrow().sequence {
                self.commit_wait.wait(m, self.push_lock, "xlog_cil_force_seq").await;
                continue;
            }
            self.unlock(m).await;
            if self.turn.get() > sequence {
                return;
            }
        }
    }

    /// Has everything on disk that was committed so far (`xfs_log_force` with `XFS_LOG_SYNC`).
    pub async fn force_all<M: Machine>(&self, m: &M) {
        match self.current() {
            Some(sequence) => {
                self.force(m, sequence).await;
            }
            None => self.iclogs.force_active(m, true).await,
        }
    }

    /// The context that has what was committed last, if anything was since the one before.
    pub fn current(&self) -> Option<u32> {
        let context = self.context.borrow();
        (context.bytes > 0).then_some(context.sequence)
    }

    /// Whether no checkpoint is being written or to be written, and what was written is in the AIL.
    pub fn at_rest(&self) -> bool {
        !self.queued.get() && self.running.get() == 0 && !self.iclogs.is_committing()
    }

    /// Bytes of the log for what was committed and is not on disk.
    pub fn space(&self) -> u64 {
        self.context.borrow().bytes + self.iclogs.space()
    }

    /// Whether a worker takes the context, or is to.
    fn is_pushed(&self) -> bool {
        self.pushed.get() == self.context.borrow().sequence
    }

    async fn push<M: Machine>(&self, m: &M) {
        if self.is_pushed() {
            return;
        }
        let sequence = self.context.borrow().sequence;
        self.pushed.set(sequence);
        self.queued.set(true);
        self.pushes.begin(sequence);
        self.work.queue(m, ()).await;
    }

    /// How long it takes to copy a context into log buffers: each item, and each chunk that is more than one of an item.
    fn writing(&self, context: &Context) -> Time {
        let items = context.items.len() as Time;
        self.costs.write * items
            + self.costs.chunk * (context.bytes.saturating_sub(items * MOST_OF_ONE) / u64::from(CHUNK))
    }

    /// The context is full; what is logged from now on is in the next. Its commit record takes space too.
    fn switch(&self, log: &Log) -> Context {
        let mut context = self.context.borrow_mut();
        let items = log.ail.borrow_mut().spare();
        let next = Context { sequence: context.sequence + 1, items, ..Context::default() };
        let mut full = std::mem::replace(&mut *context, next);
        log.grants.add(COMMIT_RECORD);
        full.space = full.bytes + COMMIT_RECORD;
        full
    }

    /// `xlog_cil_order_write`: waits until the commit records of all contexts before are in buffers.
    async fn wait_for_turn<M: Machine>(&self, m: &M, sequence: u32) {
        self.lock(m).await;
        while self.turn.get() < sequence {
            self.commit_wait.wait(m, self.push_lock, "xlog_cil_order_write").await;
            self.lock(m).await;
        }
        self.unlock(m).await;
    }

    /// The commit record of a context is in a buffer (`xlog_cil_set_ctx_write_state`): all who wait for one are woken.
    async fn end_turn<M: Machine>(&self, m: &M, sequence: u32) {
        self.lock(m).await;
        self.turn.set(sequence + 1);
        self.commit_wait.wake_all(m).await;
        self.unlock(m).await;
    }
}
