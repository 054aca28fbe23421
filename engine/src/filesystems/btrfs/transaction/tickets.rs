//! Waiting for room for metadata where none is left (`__reserve_bytes`, `handle_reserve_ticket` and
//! `btrfs_async_reclaim_metadata_space` of `fs/btrfs/space-info.c`; before 4.8 `reserve_metadata_bytes` of `extent-tree.c`).
//!
//! Since 4.8 who finds no room queues a ticket and sleeps, with the locks that it has; who comes later queues behind, even for less. A
//! worker does what is delayed, a kind after the other, and commits as the last (`flush`); whatever gives room back grants tickets in
//! their order. If three rounds in a row have granted none, the first may take from the global reserve, or fails (`ENOSPC`). Evictions
//! flush for themselves, and come first. Before, who found no room did all that himself, and others waited until he was done.
//!
//! Left out: that the log and others flush for themselves (`BTRFS_RESERVE_FLUSH_LIMIT`).

use super::flush::{COMMIT_CYCLES, EVICTION, STEPS};
use crate::filesystems::btrfs::mount::Btrfs;
use crate::filesystems::NoSpace;
use crate::kernel::btrfs::Reserving;
use crate::waist::Machine;
use crate::waist::{LockId, Placement, SpawnKind, TaskId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// Bytes.
    pub bytes: u64,
    /// In the end the global reserve may give them (`BTRFS_RESERVE_FLUSH_ALL_STEAL`, `BTRFS_RESERVE_FLUSH_EVICT`).
    pub steals: bool,
}

/// Somebody who waits (`struct reserve_ticket`).
struct Ticket {
    want: Want,
    /// What he waits for; an eviction waits for nothing.
    done: Option<LockId>,
    /// Whether he has got it, once that is known.
    granted: Rc<Cell<Option<bool>>>,
}

/// Who waits for room, and who makes it.
#[derive(Default)]
pub struct Tickets {
    waiting: RefCell<VecDeque<Ticket>>,
    /// Those of evictions (`priority_tickets`).
    first: RefCell<VecDeque<Ticket>>,
    /// How many were granted (`tickets_id`).
    granted: Cell<u64>,
    /// What the global reserve has given away.
    stolen: Cell<u64>,
    worker: Cell<Option<TaskId>>,
    /// Whose worker starts when it is first needed.
    fs: RefCell<Weak<Btrfs>>,
    /// Before 4.8: a task makes room for itself.
    flushing: Cell<bool>,
    /// Others wait until it has.
    others: RefCell<Vec<LockId>>,
    runner: Cell<Option<LockId>>,
}

impl Tickets {
    /// Nobody waits for room that others make.
    pub fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Bytes that are waited for (`reclaim_size`).
    pub fn bytes(&self) -> u64 {
        self.waiting.borrow().iter().chain(&*self.first.borrow()).map(|ticket| ticket.want.bytes).sum()
    }

    fn queue(queue: &RefCell<VecDeque<Ticket>>, want: Want, done: Option<LockId>) -> Rc<Cell<Option<bool>>> {
        let granted = Rc::new(Cell::new(None));
        queue.borrow_mut().push_back(Ticket { want, done, granted: granted.clone() });
        granted
    }
}

impl Btrfs {
    /// Where the worker finds its filesystem.
    pub fn tell_tickets(self: &Rc<Self>) {
        self.reclaim.tickets.fs.replace(Rc::downgrade(self));
    }

    /// `global_block_rsv`: what it has.
    pub(super) fn global_reserve(&self) -> u64 {
        self.global_reserve_size().saturating_sub(self.reclaim.tickets.stolen.get())
    }

    /// What has been given back of delayed references fills the global reserve first (`btrfs_block_rsv_release`).
    pub(super) fn refill_global_reserve(&self, bytes: u64) {
        let stolen = &self.reclaim.tickets.stolen;
        stolen.set(stolen.get().saturating_sub(bytes));
    }

    /// A reservation of metadata that may wait. The bytes count as those of handles from now on.
    pub(crate) async fn reserve_metadata<M: Machine>(&self, m: &M, want: Want) -> Result<(), NoSpace> {
        if self.extents.refs.space.borrow().is_overdrawn() {
            return Err(NoSpace);
        }
        match self.reclaim.reserving {
            Reserving::Tickets => self.wait_for_ticket(m, want).await,
            Reserving::Own => self.make_room(m, want).await,
        }
    }

    /// `used + orig_bytes <= total_bytes || btrfs_can_overcommit`.
    fn has_room(&self, want: Want) -> bool {
        self.reserved() + want.bytes <= self.extents.refs.space.borrow().promised(want.steals)
    }

    fn hold(&self, bytes: u64) {
        self.transaction.held.set(self.transaction.held.get() + bytes);
    }

    async fn wait_for_ticket<M: Machine>(&self, m: &M, want: Want) -> Result<(), NoSpace> {
        let tickets = &self.reclaim.tickets;
        if tickets.is_empty() && tickets.first.borrow().is_empty() && self.has_room(want) {
            self.hold(want.bytes);
            return Ok(());
        }
        let done = m.new_completion();
        let granted = Tickets::queue(&tickets.waiting, want, Some(done));
        match tickets.worker.get() {
            Some(worker) => m.wake(worker),
            None => {
                if let Some(fs) = tickets.fs.take().upgrade() {
                    m.spawn(Placement::Anywhere, SpawnKind::Background, move |m| Self::ticket_worker(m, fs));
                }
            }
        }
        m.wchan("handle_reserve_ticket");
        m.wait_for(done).await;
        m.drop_completion(done);
        granted.get().filter(|&granted| granted).map(|_| ()).ok_or(NoSpace)
    }

    /// `evict_refill_and_join`: an eviction flushes for itself (`priority_reclaim_metadata_space`), takes from the global reserve, or goes
    /// on with what that gives. How many bytes it holds.
    pub(crate) async fn reserve_for_eviction<M: Machine>(&self, m: &M, bytes: u64) -> u64 {
        let (tickets, want) = (&self.reclaim.tickets, Want { bytes, steals: true });
        if tickets.first.borrow().is_empty() && self.has_room(want) {
            self.hold(bytes);
            return bytes;
        }
        let granted = Tickets::queue(&tickets.first, want, None);
        let runner = self.extents.new_runner(m);
        for step in EVICTION {
            self.flush_space(m, runner, step).await;
            self.grant_tickets(m).await;
            if granted.get().is_some() {
                break;
            }
        }
        m.drop_lock(runner);
        if granted.get().is_none() {
            tickets.first.borrow_mut().retain(|ticket| !Rc::ptr_eq(&ticket.granted, &granted));
            granted.set(Some(self.steal(want)));
            self.grant_tickets(m).await;
        }
        if granted.get() == Some(true) {
            bytes
        } else {
            0
        }
    }

    /// `flush_space` in the task that needs the room, one at a time.
    async fn make_room<M: Machine>(&self, m: &M, want: Want) -> Result<(), NoSpace> {
        let tickets = &self.reclaim.tickets;
        while tickets.flushing.get() {
            let over = m.new_completion();
            tickets.others.borrow_mut().push(over);
            m.wchan("reserve_metadata_bytes");
            m.wait_for(over).await;
            m.drop_completion(over);
        }
        let mut has = self.has_room(want);
        if !has {
            tickets.flushing.set(true);
            let runner = tickets.runner.get().unwrap_or_else(|| self.extents.new_runner(m));
            tickets.runner.set(Some(runner));
            for step in STEPS {
                self.flush_space(m, runner, step).await;
                has = self.has_room(want);
                if has {
                    break;
                }
            }
            tickets.flushing.set(false);
            let others = std::mem::take(&mut *tickets.others.borrow_mut());
            for over in others {
                m.complete(over).await;
            }
        }
        if has {
            self.hold(want.bytes);
        }
        if has || self.steal(want) {
            Ok(())
        } else {
            Err(NoSpace)
        }
    }

    /// The worker of `async_reclaim_work`.
    async fn ticket_worker<M: Machine>(m: M, fs: Rc<Self>) {
        m.at("reclaim");
        let (tickets, runner) = (&fs.reclaim.tickets, fs.extents.new_runner(&m));
        tickets.worker.set(Some(m.task()));
        loop {
            if tickets.is_empty() {
                m.park().await;
            }
            fs.reclaim_for_tickets(&m, runner).await;
        }
    }

    /// `btrfs_async_reclaim_metadata_space`.
    async fn reclaim_for_tickets<M: Machine>(&self, m: &M, runner: LockId) {
        let tickets = &self.reclaim.tickets;
        let (mut step, mut cycles, mut last) = (0, 0, tickets.granted.get());
        while !tickets.is_empty() {
            self.flush_space(m, runner, STEPS[step]).await;
            self.grant_tickets(m).await;
            let progress = last != std::mem::replace(&mut last, tickets.granted.get());
            if progress {
                (step, cycles) = (0, u32::saturating_sub(cycles, 1));
                continue;
            }
            let next = |step: &usize| cycles > 0 || !STEPS.get(*step).is_some_and(|step| step.is_hard());
            step = (step + 1..=STEPS.len()).find(next).unwrap_or(STEPS.len());
            if step == STEPS.len() {
                (step, cycles) = (0, cycles + 1);
                if cycles > COMMIT_CYCLES {
                    if !self.fail_tickets(m).await {
                        return;
                    }
                    cycles -= 1;
                }
            }
        }
    }

    /// `btrfs_try_granting_tickets`: as many of the first as there is room for, of evictions and of others.
    pub(in crate::filesystems::btrfs) async fn grant_tickets<M: Machine>(&self, m: &M) {
        let tickets = &self.reclaim.tickets;
        for (queue, steals) in [(&tickets.first, true), (&tickets.waiting, false)] {
            loop {
                let first = queue.borrow().front().map(|ticket| ticket.want.bytes);
                let Some(bytes) = first.filter(|&bytes| self.has_room(Want { bytes, steals })) else { break };
                self.hold(bytes);
                self.answer(m, queue, true).await;
            }
        }
    }

    /// The first of a queue learns whether it has room.
    async fn answer<M: Machine>(&self, m: &M, queue: &RefCell<VecDeque<Ticket>>, granted: bool) {
        let Some(ticket) = queue.borrow_mut().pop_front() else { return };
        ticket.granted.set(Some(granted));
        let count = &self.reclaim.tickets.granted;
        count.set(count.get() + u64::from(granted));
        if let Some(done) = ticket.done {
            m.complete(done).await;
        }
    }

    /// `maybe_fail_all_tickets`: the first takes from the global reserve, or fails, and then perhaps another fits; whether one did.
    async fn fail_tickets<M: Machine>(&self, m: &M) -> bool {
        let tickets = &self.reclaim.tickets;
        let before = tickets.granted.get();
        while before == tickets.granted.get() {
            let Some(want) = tickets.waiting.borrow().front().map(|ticket| ticket.want) else { break };
            let stolen = self.steal(want);
            self.answer(m, &tickets.waiting, stolen).await;
            if !stolen {
                self.grant_tickets(m).await;
            }
        }
        before != tickets.granted.get()
    }

    /// `steal_from_global_rsv`: a tenth of it stays.
    fn steal(&self, want: Want) -> bool {
        let fits = want.steals && self.global_reserve() >= self.global_reserve_size() / 10 + want.bytes;
        if fits {
            let stolen = &self.reclaim.tickets.stolen;
            stolen.set(stolen.get() + want.bytes);
            self.hold(want.bytes);
        }
        fits
    }
}
