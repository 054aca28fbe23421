//! Queued spinlocks: strict FIFO, and each waiter but the next polls a line of its own (its *node*), so that a hand-over
//! moves one or two lines, however many wait.
//!
//! * *MCS* (`kernel/locking/mcs_spinlock.h`): the tail in the lock word, ownership passed by a store to the next one's node.
//!   The word is written by who comes, and by who leaves without a successor.
//! * *qspinlock* (x86 from 4.2, `kernel/locking/qspinlock.c`): the first waiter is *pending* and polls the word; the second
//!   queues and, as head of the queue, polls the word too; all others poll their nodes. Who takes the lock from the head of
//!   the queue makes the next one head by a store to its node, which overlaps with the critical section.
//! * *CNA* (compact NUMA-aware lock, never merged; version 15 of the series, A. Kogan, 14 May 2021, linux-arch): a qspinlock
//!   whose head, while it polls the word, moves the waiters of other sockets right behind it to a *secondary queue*, so that
//!   the lock stays on a socket. The secondary queue is put back in front when its first waiter has been in it longer than
//!   a threshold (1 ms), or when the main queue runs empty. While it is empty, only one head in 128 begins to sort.
//!   Left out: the priority of waiters that run with interrupts off.

use super::hqlock;
use super::spinlock::{self, body, Policy, Spinlock};
use crate::machine::state::State;
use crate::machine::task::Status;
use crate::waist::time::Time;
use crate::waist::{Access, LockId, TaskId};
use rand_core::RngCore;
use std::collections::VecDeque;

// ---- MCS ------------------------------------------------------------------------------------------------------------

/// Passes the lock on, or clears the tail if nobody waits.
pub(super) fn unlock_mcs(s: &mut State, me: TaskId, lock: LockId) {
    let next = body(s, lock).waiters.front().copied();
    match next {
        Some(next) => s.store_to_node(me, next),
        None => s.touch_lock(me, lock, Access::Atomic),
    }
    s.end_hold(lock);
    s.preempt_enable(me);
}

// ---- qspinlock and CNA ----------------------------------------------------------------------------------------------

/// What the waiter does until it looks again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// Has seen that the pending waiter is about to take the lock, and lets it.
    HandOver,
    Pending,
    InQueue,
    /// Has become the head of the queue and reads the word.
    BecomesHead,
    Head,
    /// Looks at the next waiter (CNA).
    Sorts,
    /// It is a spinlock without pending waiter and queue of nodes, or an MCS lock.
    Older,
}

/// `me` goes on waiting for a spinlock. Returns in which stage it looks again; nothing if it has the lock.
#[inline(always)]
pub(super) fn wait(s: &mut State, me: TaskId, lock: LockId, stage: Stage) -> Option<Stage> {
    let waits = match stage {
        Stage::InQueue => leave_node(s, me, lock),
        Stage::BecomesHead => become_head(s, me, lock),
        Stage::Head => None,
        Stage::Sorts => {
            sort(s, lock);
            None
        }
        Stage::HandOver => return let_pending_take(s, me, lock),
        Stage::Pending => return take_as_pending(s, me, lock),
        Stage::Older if spinlock::take_if_my_turn(s, me, lock) => return None,
        Stage::Older => return spins(s, me, Stage::Older),
    };
    if waits.is_some() {
        return waits;
    }
    take_as_head(s, me, lock)
}

/// `me` looks at its node: if it is the first in the queue now, it reads the word and becomes the head.
#[inline(always)]
fn leave_node(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    if s.at_lock(me, lock).spinlock().waiters.front() != Some(&me) {
        return spins(s, me, Stage::InQueue);
    }
    s.runs(me, |code| code.qspinlock.head);
    s.touch_lock(me, lock, Access::Read);
    if s.pay(me) {
        become_head(s, me, lock)
    } else {
        Some(Stage::BecomesHead)
    }
}

/// `me` spins until it is to look in this stage.
#[inline(always)]
fn spins(s: &mut State, me: TaskId, stage: Stage) -> Option<Stage> {
    s.begin_spin(me, false);
    Some(stage)
}

/// The pending bit is for the first waiter, unless there is a queue already; all others join that. Both change the word a
/// second time, after those who poll it have fetched it back from the attempt that failed.
#[inline(always)]
pub(super) fn arrive(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    let mut at = s.at_lock(me, lock);
    at.task.preempt_off += 1;
    let failed = at.now + at.task.segment.debt;
    let b = at.spinlock();
    if !b.policy.queues() {
        return arrive_older(s, me, lock, failed);
    }
    for poller in pollers(b) {
        s.refetch(failed, lock, poller);
    }
    if let Some(watchers) = body(s, lock).watchers.take() {
        for &watcher in &watchers.0 {
            s.refetch(failed, lock, watcher);
        }
        body(s, lock).watchers = Some(watchers);
    }
    let_pending_take(s, me, lock)
}

/// Who finds the lock free, a pending waiter and no queue does not join one: it polls the word until the other has taken the lock
/// (`queued_spin_lock_slowpath`, since 4.2). Left out: after 512 looks it would join (since 4.18).
#[inline(always)]
fn let_pending_take(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    let mut at = s.at_lock(me, lock);
    let free = at.lock.holder.is_none();
    let b = at.spinlock();
    if free && b.pending.is_some() && b.waiters.is_empty() {
        let watchers = &mut b.watchers.get_or_insert_default().0;
        if !watchers.contains(&me) {
            watchers.push(me);
        }
        return spins(s, me, Stage::HandOver);
    }
    join(s, me, lock)
}

/// The same at a lock whose waiters all poll the word: the attempt that failed took it from them, and they fetch it back.
#[cold]
fn arrive_older(s: &mut State, me: TaskId, lock: LockId, failed: Time) -> Option<Stage> {
    let b = body(s, lock);
    let (polled, mut waiters) = (b.policy != Policy::Mcs, std::mem::take(&mut b.waiters));
    for &waiter in &waiters {
        if polled && !s.kernel.rules.turns && s.tasks[waiter as usize].status == Status::Running {
            s.refetch(failed, lock, waiter);
        }
    }
    waiters.push_back(me);
    body(s, lock).waiters = waiters;
    spins(s, me, Stage::Older)
}

/// `me` becomes the pending waiter or the last of the queue.
#[inline(always)]
fn join(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    let mut at = s.at_lock(me, lock);
    let b = at.spinlock();
    let alone = b.pending.is_none() && b.waiters.is_empty();
    let apart = !alone && hqlock::keeps_queues(b);
    s.runs(me, if alone { |code| code.qspinlock.pend } else { |code| code.qspinlock.queue });
    if apart {
        hqlock::join(s, me, lock);
        return if body(s, lock).waiters[0] == me { take_at_once(s, me, lock) } else { spins(s, me, Stage::InQueue) };
    }
    s.touch_lock(me, lock, Access::Atomic);
    s.runs(me, |code| code.qspinlock.joined);
    let b = body(s, lock);
    if alone {
        b.pending = Some(me);
        return take_as_pending(s, me, lock);
    }
    b.waiters.push_back(me);
    let (head, length) = (b.waiters[0], b.waiters.len());
    let sorting = b.head_polls && b.sockets.as_ref().is_some_and(|k| k.order == Order::Sort);
    if sorting && length == 3 {
        s.store_to_node(me, head); // the head, which polls its queue as well, can now move the one between
    }
    if length > 1 {
        spins(s, me, Stage::InQueue)
    } else {
        begin_as_head(s, me, lock);
        take_at_once(s, me, lock)
    }
}

#[cold]
fn take_as_pending(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    if s.locks[lock as usize].holder.is_some() {
        return spins(s, me, Stage::Pending);
    }
    s.runs(me, |code| code.qspinlock.pending_take);
    s.touch_lock(me, lock, Access::Store);
    body(s, lock).pending = None;
    s.begin_hold(lock, me);
    if let Some(mut watchers) = body(s, lock).watchers.take() {
        watchers.0.drain(..).for_each(|watcher| s.show(me, lock, watcher));
        body(s, lock).watchers = Some(watchers);
    }
    s.runs(me, |code| code.qspinlock.pending_taken);
    None
}

/// The first in the queue has read the word and is the head now, unless the word said that the lock is held and somebody has written
/// to its line since: if a wait lock lies in the line of another lock, that can be others than its holder, and without end.
#[inline(always)]
fn become_head(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    loop {
        let mut at = s.at_lock(me, lock);
        let free = at.lock.holder.is_none() && at.spinlock().pending.is_none();
        if free || at.has_copy() {
            break;
        }
        at.touch(Access::Read);
        if at.task.segment.total() == 0 {
            break; // hits are free, and it keeps its copy until the request of who wrote has come: time would stand still here
        }
        if !s.pay(me) {
            return Some(Stage::BecomesHead);
        }
    }
    begin_as_head(s, me, lock);
    None
}

/// The same on arrival.
#[inline(never)]
fn take_at_once(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    take_as_head(s, me, lock)
}

/// The head of the queue takes the word once it is free and nobody is pending, and makes the next one head.
#[inline(always)]
fn take_as_head(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    let mut at = s.at_lock(me, lock);
    let held = at.lock.holder.is_some();
    let b = at.spinlock();
    b.head_polls = false;
    if held || b.pending.is_some() {
        return poll_as_head(s, me, lock);
    }
    let last = b.waiters.len() == 1 && !hqlock::keeps_queues(b);
    s.runs(me, |code| code.qspinlock.take);
    let mut at = s.at_lock(me, lock);
    at.touch(if last { Access::Atomic } else { Access::Store }); // the last one clears the tail as well
    let b = at.spinlock();
    b.waiters.pop_front();
    if b.policy != Policy::Queued {
        return take_in_order(s, me, lock);
    }
    let next = b.waiters.front().copied();
    let taken = at.take(me);
    s.has_taken(lock, me, taken);
    if let Some(next) = next {
        s.store_to_node(me, next);
    }
    s.runs(me, |code| code.qspinlock.taken);
    None
}

/// The same where who is next need not be who came first.
#[cold]
fn take_in_order(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    let next = next_in_order(s, me, lock);
    s.begin_hold(lock, me);
    if let Some(next) = next {
        s.store_to_node(me, next);
    }
    s.runs(me, |code| code.qspinlock.taken);
    None
}

fn next_in_order(s: &mut State, me: TaskId, lock: LockId) -> Option<TaskId> {
    let b = body(s, lock);
    if b.policy == Policy::Hq {
        return hqlock::hand_off(s, me, lock);
    }
    choose_next(b);
    b.waiters.front().copied()
}

/// The head cannot have the lock yet: it polls the word, or looks at its queue.
fn poll_as_head(s: &mut State, me: TaskId, lock: LockId) -> Option<Stage> {
    while looks_at_next(s, me, lock) {
        if !s.pay(me) {
            return Some(Stage::Sorts);
        }
        sort(s, lock);
    }
    body(s, lock).head_polls = true;
    spins(s, me, Stage::Head)
}

/// Who polls the word.
#[inline(always)]
pub(super) fn pollers(b: &Spinlock) -> impl Iterator<Item = TaskId> + use<> {
    let (pending, head) = (b.pending, b.waiters.front().copied().filter(|_| b.head_polls));
    pending.into_iter().chain(head)
}

// ---- CNA: what the head does about sockets --------------------------------------------------------------------------

/// What CNA knows of sockets.
#[derive(Debug, Default)]
pub struct Sockets {
    /// Waiters of other sockets that were moved out of the way.
    secondary: VecDeque<TaskId>,
    /// Since when there are any.
    since: Time,
    /// The socket that the lock is to stay on.
    preferred: u32,
    order: Order,
}

/// What the present head does with the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// Leaves it as it is.
    #[default]
    Keep,
    /// Moves waiters of other sockets out of the way.
    Sort,
    /// Puts them back in front.
    Flush,
}

/// `SHUFFLE_REDUCTION_PROB_ARG` = 7 bits.
const SORT_ONE_IN: u64 = 1 << 7;

#[inline]
fn begin_as_head(s: &mut State, me: TaskId, lock: LockId) {
    if body(s, lock).policy == Policy::Cna {
        choose_order(s, me, lock);
    }
}

fn choose_order(s: &mut State, me: TaskId, lock: LockId) {
    let (now, threshold, socket) = (s.now, s.kernel.cna_threshold, s.socket_of(me));
    let k = sockets(s, lock);
    let (alone, since) = (k.secondary.is_empty(), k.since);
    let order = if alone && !s.random.next_u64().is_multiple_of(SORT_ONE_IN) {
        Order::Keep
    } else if alone || now - since <= threshold {
        Order::Sort
    } else {
        Order::Flush
    };
    let k = sockets(s, lock);
    k.order = order;
    if alone {
        k.preferred = socket;
    }
}

/// Begins to look at the next waiter, while the lock is busy; false where there is nothing to look at.
fn looks_at_next(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let b = body(s, lock);
    let sorts = b.sockets.as_ref().is_some_and(|k| k.order == Order::Sort);
    if !sorts || b.waiters.len() < 3 {
        return false;
    }
    let next = b.waiters[1];
    s.read_node(me, next);
    true
}

/// Moves the next waiter, which was looked at, to the secondary queue if it is of another socket; a look once begun is
/// completed (`cna_order_queue`).
fn sort(s: &mut State, lock: LockId) {
    let next = body(s, lock).waiters[1];
    let (now, socket) = (s.now, s.socket_of(next));
    let Spinlock { waiters, sockets: Some(k), .. } = body(s, lock) else { return };
    if socket == k.preferred {
        k.order = Order::Keep;
        return; // the word may have become free meanwhile
    }
    if k.secondary.is_empty() {
        k.since = now;
    }
    waiters.remove(1);
    k.secondary.push_back(next);
}

/// CNA: puts the secondary queue back in front if its time has come or nobody else waits.
fn choose_next(lock: &mut Spinlock) {
    let Spinlock { waiters, sockets: Some(k), .. } = lock else { return };
    if k.order == Order::Flush || waiters.is_empty() {
        while let Some(last) = k.secondary.pop_back() {
            waiters.push_front(last);
        }
    }
}

fn sockets(s: &mut State, lock: LockId) -> &mut Sockets {
    body(s, lock).sockets.as_mut().expect("only CNA asks")
}
