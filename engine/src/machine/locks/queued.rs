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

use super::spinlock::{body, Policy, Spinlock};
use crate::machine::context::{Context, SpinUntil};
use crate::machine::line::Access;
use crate::machine::lock::LockId;
use crate::machine::state::State;
use crate::machine::task::TaskId;
use crate::machine::time::Time;
use rand_core::RngCore;
use std::collections::VecDeque;

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

/// Waits as the pending waiter, or in the queue.
pub(super) async fn wait_qspinlock(cx: &Context, lock: LockId) {
    if become_pending(cx, lock) {
        while !take_as_pending(cx, lock) {
            cx.spin(SpinUntil::default()).await;
        }
        return;
    }
    if join(cx, lock) {
        loop {
            cx.spin(SpinUntil::default()).await;
            if body(&mut cx.state(), lock).waiters.front() == Some(&cx.id) {
                break;
            }
        }
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.pay().await;
    }
    begin_as_head(cx, lock);
    while !take_as_head(cx, lock) {
        if !sort(cx, lock).await {
            body(&mut cx.state(), lock).head_polls = true;
            cx.spin(SpinUntil::default()).await;
            body(&mut cx.state(), lock).head_polls = false;
        }
    }
}

/// The pending bit: for the first waiter, unless there is a queue already.
fn become_pending(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    let b = body(&mut s, lock);
    let first = b.pending.is_none() && b.waiters.is_empty();
    if first {
        b.pending = Some(cx.id);
    }
    first
}

fn take_as_pending(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    if s.locks[lock as usize].holder.is_some() {
        return false;
    }
    s.touch_lock(cx.id, lock, Access::Write);
    body(&mut s, lock).pending = None;
    s.begin_hold(lock, cx.id);
    true
}

/// Joins the queue. Returns whether somebody is before this task.
fn join(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    let b = body(&mut s, lock);
    b.waiters.push_back(cx.id);
    let (head, length) = (b.waiters[0], b.waiters.len());
    let sorting = b.head_polls && b.sockets.as_ref().is_some_and(|k| k.order == Order::Sort);
    if sorting && length == 3 {
        s.store_to_node(cx.id, head); // the head, which polls its queue as well, can now move the one between
    }
    length > 1
}

/// The head of the queue takes the word once it is free and nobody is pending, and makes the next one head.
fn take_as_head(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    if s.locks[lock as usize].holder.is_some() || body(&mut s, lock).pending.is_some() {
        return false;
    }
    let last = body(&mut s, lock).waiters.len() == 1;
    s.touch_lock(cx.id, lock, if last { Access::Atomic } else { Access::Write }); // the last one clears the tail as well
    s.begin_hold(lock, cx.id);
    body(&mut s, lock).waiters.pop_front();
    choose_next(&mut s, lock);
    if let Some(&next) = body(&mut s, lock).waiters.front() {
        s.store_to_node(cx.id, next);
    }
    true
}

/// The word has changed: who polls it sees that when its refetch is served.
pub(super) fn show_word(s: &mut State, releaser: TaskId, lock: LockId) {
    let b = body(s, lock);
    let (pending, head) = (b.pending, b.waiters.front().copied().filter(|_| b.head_polls));
    for poller in pending.into_iter().chain(head) {
        s.show(releaser, lock, poller);
    }
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

fn begin_as_head(cx: &Context, lock: LockId) {
    let mut s = cx.state();
    let (now, threshold, socket) = (s.now, s.kernel.cna_threshold, s.socket_of(cx.id));
    let Some(k) = &body(&mut s, lock).sockets else { return };
    let (alone, since) = (k.secondary.is_empty(), k.since);
    let order = if alone && !s.random.next_u64().is_multiple_of(SORT_ONE_IN) {
        Order::Keep
    } else if alone || now - since <= threshold {
        Order::Sort
    } else {
        Order::Flush
    };
    let k = sockets(&mut s, lock);
    k.order = order;
    if alone {
        k.preferred = socket;
    }
}

/// Looks at the next waiter while the lock is busy, and moves it to the secondary queue if it is of another socket and not
/// the last; a look once begun is completed (`cna_order_queue`). Returns false where there is nothing to look at.
async fn sort(cx: &Context, lock: LockId) -> bool {
    {
        let mut s = cx.state();
        let b = body(&mut s, lock);
        let sorts = b.sockets.as_ref().is_some_and(|k| k.order == Order::Sort);
        if !sorts || b.waiters.len() < 3 {
            return false;
        }
        let next = b.waiters[1];
        s.read_node(cx.id, next);
    }
    cx.pay().await;
    let mut s = cx.state();
    let next = body(&mut s, lock).waiters[1];
    let (now, socket) = (s.now, s.socket_of(next));
    let Spinlock { waiters, sockets: Some(k), .. } = body(&mut s, lock) else { return false };
    if socket == k.preferred {
        k.order = Order::Keep;
        return true; // the word may have become free meanwhile
    }
    if k.secondary.is_empty() {
        k.since = now;
    }
    waiters.remove(1);
    k.secondary.push_back(next);
    true
}

/// CNA: puts the secondary queue back in front if its time has come or nobody else waits.
fn choose_next(s: &mut State, lock: LockId) {
    let Spinlock { policy: Policy::Cna, waiters, sockets: Some(k), .. } = body(s, lock) else { return };
    if k.order == Order::Flush || waiters.is_empty() {
        while let Some(last) = k.secondary.pop_back() {
            waiters.push_front(last);
        }
    }
}

fn sockets(s: &mut State, lock: LockId) -> &mut Sockets {
    body(s, lock).sockets.as_mut().expect("only CNA asks")
}
