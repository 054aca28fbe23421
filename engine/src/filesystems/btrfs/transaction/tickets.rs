//! Waiting for room for metadata where none is left (`__reserve_bytes`, `handle_reserve_ticket` and
//! `btrfs_async_reclaim_metadata_space` of `fs/btrfs/space-info.c`; before 4.8 `reserve_metadata_bytes` of `extent-tree.c`).
//!
//! Since 4.8 who finds no room queues a ticket and sleeps, with the locks that it has; who comes later queues behind, even for less. A
//! worker does what is delayed, a kind after the other, and commits as the last; after each step it grants tickets in their order.
//! Before, who found no room did that himself, and others waited until he was done.
//!
//! Left out: the bytes of handles under way, which count as little as one item here; that evictions and the log flush for themselves
//! (`BTRFS_RESERVE_FLUSH_LIMIT`); failing with ENOSPC, for which the structures themselves decide.

use super::reclaim::{Reclaimable, ITEM};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::btrfs::space::outstanding::Shrink;
use crate::kernel::btrfs::Reserving;
use crate::waist::Machine;
use crate::waist::{LockId, Placement, SpawnKind, TaskId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// What is done for room, in this order (`enum btrfs_flush_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    SomeItems,
    Items,
    SomeRefs,
    Refs,
    Delalloc,
    DelallocWait,
    Commit,
}

const STEPS: [Flush; 7] =
    [Flush::SomeItems, Flush::Items, Flush::SomeRefs, Flush::Refs, Flush::Delalloc, Flush::DelallocWait, Flush::Commit];

/// Who waits for room, and who makes it.
#[derive(Default)]
pub struct Tickets {
    waiting: RefCell<VecDeque<LockId>>,
    worker: Cell<Option<TaskId>>,
    /// Whose worker starts when it is first needed.
    fs: RefCell<Weak<Btrfs>>,
    /// Before 4.8: a task makes room for itself.
    flushing: Cell<bool>,
    runner: Cell<Option<LockId>>,
}

impl Btrfs {
    /// Where the worker finds its filesystem.
    pub fn tell_tickets(self: &Rc<Self>) {
        self.reclaim.tickets.fs.replace(Rc::downgrade(self));
    }

    /// A reservation of metadata that may wait.
    pub(crate) async fn wait_for_room<M: Machine>(&self, m: &M) {
        match self.reclaim.reserving {
            Reserving::Tickets => self.wait_for_ticket(m).await,
            Reserving::Own => self.make_room(m).await,
        }
    }

    /// `used + orig_bytes <= total_bytes || btrfs_can_overcommit`.
    fn has_room(&self) -> bool {
        let all = self.reclaimable().all();
        all == 0 || all + ITEM <= self.extents.refs.space.borrow().promised()
    }

    async fn wait_for_ticket<M: Machine>(&self, m: &M) {
        let tickets = &self.reclaim.tickets;
        if tickets.waiting.borrow().is_empty() && self.has_room() {
            return;
        }
        let ticket = m.new_completion();
        tickets.waiting.borrow_mut().push_back(ticket);
        match tickets.worker.get() {
            Some(worker) => m.wake(worker),
            None => {
                if let Some(fs) = tickets.fs.take().upgrade() {
                    m.spawn(Placement::Anywhere, SpawnKind::Background, move |m| Self::ticket_worker(m, fs));
                }
            }
        }
        m.wchan("handle_reserve_ticket");
        m.wait_for(ticket).await;
        m.drop_completion(ticket);
    }

    /// `flush_space` in the task that needs the room, one at a time.
    async fn make_room<M: Machine>(&self, m: &M) {
        let tickets = &self.reclaim.tickets;
        while tickets.flushing.get() {
            let over = m.new_completion();
            tickets.waiting.borrow_mut().push_back(over);
            m.wchan("reserve_metadata_bytes");
            m.wait_for(over).await;
            m.drop_completion(over);
        }
        if self.has_room() {
            return;
        }
        tickets.flushing.set(true);
        let runner = tickets.runner.get().unwrap_or_else(|| self.extents.new_runner(m));
        tickets.runner.set(Some(runner));
        for step in STEPS {
            self.flush_space(m, runner, step).await;
            if self.has_room() {
                break;
            }
        }
        tickets.flushing.set(false);
        self.grant(m, usize::MAX).await;
    }

    /// The worker of `async_reclaim_work`.
    async fn ticket_worker<M: Machine>(m: M, fs: Rc<Self>) {
        m.at("reclaim");
        let (tickets, runner) = (&fs.reclaim.tickets, fs.extents.new_runner(&m));
        tickets.worker.set(Some(m.task()));
        let mut step = 0;
        loop {
            if tickets.waiting.borrow().is_empty() {
                step = 0;
                m.park().await;
                continue;
            }
            fs.flush_space(&m, runner, STEPS[step]).await;
            let last = step + 1 == STEPS.len();
            let granted = fs.grant_tickets(&m).await;
            if last && !granted {
                fs.grant(&m, usize::MAX).await; // `maybe_fail_all_tickets`
            }
            step = if granted || last { 0 } else { step + 1 };
        }
    }

    /// `btrfs_try_granting_tickets`: as many of the first as there is room for; whether there was any.
    pub(in crate::filesystems::btrfs) async fn grant_tickets<M: Machine>(&self, m: &M) -> bool {
        if self.reclaim.tickets.waiting.borrow().is_empty() {
            return false;
        }
        let room = self.extents.refs.space.borrow().promised().saturating_sub(self.reclaimable().all());
        let granted = (room / ITEM) as usize;
        self.grant(m, granted).await;
        granted > 0
    }

    async fn grant<M: Machine>(&self, m: &M, most: usize) {
        let waiting = &self.reclaim.tickets.waiting;
        let count = most.min(waiting.borrow().len());
        let granted: Vec<_> = waiting.borrow_mut().drain(..count).collect();
        for ticket in granted {
            m.complete(ticket).await;
        }
    }

    /// `flush_space`.
    async fn flush_space<M: Machine>(&self, m: &M, runner: LockId, step: Flush) {
        let (Reclaimable { items, refs, .. }, wanted) = (self.reclaimable(), self.wanted());
        if let Flush::Delalloc | Flush::DelallocWait = step {
            let waiting = || !self.reclaim.tickets.waiting.borrow().is_empty();
            let how = if step == Flush::DelallocWait { Shrink::Wait } else { Shrink::Begin };
            return self.shrink_delalloc(m, (wanted, how), waiting).await;
        }
        let handle = self.transaction.join(m).await;
        match step {
            Flush::SomeItems => _ = self.run_nodes(m, (wanted / ITEM).max(1) * 2).await,
            Flush::Items => _ = self.run_nodes(m, items / ITEM).await,
            Flush::SomeRefs => {
                self.extents.run_delayed_refs(m, runner, (wanted / self.ref_bytes()).max(1) as usize).await
            }
            Flush::Refs => self.extents.run_delayed_refs(m, runner, (refs / self.ref_bytes()) as usize).await,
            Flush::Delalloc | Flush::DelallocWait => {}
            Flush::Commit => return self.commit(m, handle, runner).await,
        }
        self.transaction.end(m, handle).await;
    }

    /// `btrfs_calc_reclaim_metadata_size`.
    fn wanted(&self) -> u64 {
        let (all, promised) = (self.reclaimable().all(), self.extents.refs.space.borrow().promised());
        self.reclaim.tickets.waiting.borrow().len() as u64 * ITEM + all.saturating_sub(promised)
    }
}
