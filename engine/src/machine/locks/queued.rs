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
use super::spinlock::{body, Policy, Spinlock};
use crate::machine::context::Context;
use crate::machine::line::Access;
use crate::machine::lock::LockId;
use crate::machine::primitives::SpinUntil;
use crate::machine::state::State;
use crate::machine::task::TaskId;
use crate::machine::time::Time;
use rand_core::RngCore;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as PollContext, Poll};

// ---- MCS ------------------------------------------------------------------------------------------------------------

/// Joins the queue and polls its own node.
pub(super) async fn wait_mcs(cx: &Context, lock: LockId) {
    body(&mut cx.state(), lock).waiters.push_back(cx.id);
    loop {
        cx.spin(SpinUntil::default()).await;
        let mut s = cx.state();
        if s.locks[lock as usize].holder.is_none() && body(&mut s, lock).waiters.front() == Some(&cx.id) {
            body(&mut s, lock).waiters.pop_front();
            s.begin_hold(lock, cx.id);
            return;
        }
    }
}

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

/// Waits as the pending waiter, or in the queue; true if it slept: never. Written by hand, as it is polled at every look.
pub(super) struct WaitQspinlock<'a> {
    cx: &'a Context,
    lock: LockId,
    stage: Stage,
}

/// What the waiter does until it looks again.
#[derive(Clone, Copy)]
enum Stage {
    Arrives,
    Pending,
    InQueue,
    /// Has become the head of the queue and reads the word.
    BecomesHead,
    Head,
    /// Looks at the next waiter (CNA).
    Sorts,
}

pub(super) fn wait_qspinlock(cx: &Context, lock: LockId) -> WaitQspinlock<'_> {
    WaitQspinlock { cx, lock, stage: Stage::Arrives }
}

impl Future for WaitQspinlock<'_> {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<bool> {
        let (me, lock) = (self.cx.id, self.lock);
        let mut s = self.cx.state();
        let mut stage = self.stage;
        if matches!(stage, Stage::Head) {
            body(&mut s, lock).head_polls = false;
        }
        let waits = loop {
            stage = match stage {
                Stage::Arrives => arrive(&mut s, me, lock),
                Stage::Pending if take_as_pending(&mut s, me, lock) => return Poll::Ready(false),
                Stage::InQueue if body(&mut s, lock).waiters.front() == Some(&me) => {
                    s.touch_lock(me, lock, Access::Read);
                    if !s.pay(me) {
                        break Stage::BecomesHead;
                    }
                    Stage::BecomesHead
                }
                Stage::BecomesHead if !s.has_copy(me, lock) => {
                    s.touch_lock(me, lock, Access::Read); // somebody has written to the word since
                    if !s.pay(me) {
                        break Stage::BecomesHead;
                    }
                    Stage::BecomesHead
                }
                Stage::BecomesHead => {
                    begin_as_head(&mut s, me, lock);
                    Stage::Head
                }
                Stage::Head if take_as_head(&mut s, me, lock) => return Poll::Ready(false),
                Stage::Head if looks_at_next(&mut s, me, lock) => {
                    if !s.pay(me) {
                        break Stage::Sorts;
                    }
                    Stage::Sorts
                }
                Stage::Sorts => {
                    sort(&mut s, lock);
                    Stage::Head
                }
                Stage::Pending | Stage::InQueue | Stage::Head => {
                    body(&mut s, lock).head_polls |= matches!(stage, Stage::Head);
                    s.begin_spin(me, false);
                    break stage;
                }
            }
        };
        drop(s);
        self.stage = waits;
        Poll::Pending
    }
}

/// The pending bit is for the first waiter, unless there is a queue already; all others join that. Both change the word a
/// second time, after those who poll it have fetched it back from the attempt that failed.
fn arrive(s: &mut State, me: TaskId, lock: LockId) -> Stage {
    s.tasks[me as usize].preempt_off += 1;
    let failed = s.now + s.tasks[me as usize].segment.debt;
    for poller in pollers(s, lock) {
        s.refetch(failed, lock, poller);
    }
    let b = body(s, lock);
    let alone = b.pending.is_none() && b.waiters.is_empty();
    if !alone && hqlock::keeps_queues(b) {
        hqlock::join(s, me, lock);
        return if body(s, lock).waiters[0] == me { Stage::Head } else { Stage::InQueue };
    }
    s.touch_lock(me, lock, Access::Atomic);
    let b = body(s, lock);
    if alone {
        b.pending = Some(me);
        return Stage::Pending;
    }
    b.waiters.push_back(me);
    let (head, length) = (b.waiters[0], b.waiters.len());
    let sorting = b.head_polls && b.sockets.as_ref().is_some_and(|k| k.order == Order::Sort);
    if sorting && length == 3 {
        s.store_to_node(me, head); // the head, which polls its queue as well, can now move the one between
    }
    if length > 1 {
        Stage::InQueue
    } else {
        begin_as_head(s, me, lock);
        Stage::Head
    }
}

fn take_as_pending(s: &mut State, me: TaskId, lock: LockId) -> bool {
    if s.locks[lock as usize].holder.is_some() {
        return false;
    }
    s.touch_lock(me, lock, Access::Store);
    body(s, lock).pending = None;
    s.begin_hold(lock, me);
    true
}

/// The head of the queue takes the word once it is free and nobody is pending, and makes the next one head.
fn take_as_head(s: &mut State, me: TaskId, lock: LockId) -> bool {
    if s.locks[lock as usize].holder.is_some() {
        return false;
    }
    let b = body(s, lock);
    if b.pending.is_some() {
        return false;
    }
    let last = b.waiters.len() == 1 && !hqlock::keeps_queues(b);
    s.touch_lock(me, lock, if last { Access::Atomic } else { Access::Store }); // the last one clears the tail as well
    s.begin_hold(lock, me);
    let b = body(s, lock);
    b.waiters.pop_front();
    if b.policy == Policy::Cna {
        choose_next(b);
    }
    let next = if b.policy == Policy::Hq { hqlock::hand_off(s, me, lock) } else { b.waiters.front().copied() };
    if let Some(next) = next {
        s.store_to_node(me, next);
    }
    true
}

/// The word has changed: who polls it sees that when its refetch is served.
#[inline]
pub(super) fn show_word(s: &mut State, releaser: TaskId, lock: LockId) {
    for poller in pollers(s, lock) {
        s.show(releaser, lock, poller);
    }
}

/// Who polls the word.
fn pollers(s: &mut State, lock: LockId) -> impl Iterator<Item = TaskId> + use<> {
    let b = body(s, lock);
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
