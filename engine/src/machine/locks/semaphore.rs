//! `struct semaphore`: counting, sleeping, no owner (`kernel/locking/semaphore.c`, the same from 2.6 to 6.12). XFS uses
//! one with count 1 as the buffer lock; a *counting semaphore* lets `semaphore_count` tasks hold it at once.
//!
//! No spinning at all; strict FIFO; **direct grant**: `up` with waiters leaves the count at 0 and gives the semaphore to
//! the first of them, which still has to wake. So nobody else can take it meanwhile, not even by trylock: a convoy. Anyone
//! may call `up`, from any context.

use super::inner::{lock_to_wait, LockToWait};
use super::spinlock;
use crate::machine::chains::Reason;
use crate::machine::context::Context;
use crate::machine::line::Access;
use crate::machine::lock::{Body, LockId};
use crate::machine::primitives::Park;
use crate::machine::state::State;
use crate::machine::task::TaskId;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{ready, Context as PollContext, Poll};

/// State of a semaphore.
#[derive(Debug)]
pub struct Semaphore {
    count: u64,
    waiters: VecDeque<TaskId>,
    /// It is a counting one: those who were given it and have not run since.
    granted: Option<Vec<TaskId>>,
}

impl Semaphore {
    /// A semaphore that one task may hold.
    pub fn binary() -> Self {
        Self { count: 1, waiters: VecDeque::new(), granted: None }
    }

    /// A semaphore that as many tasks may hold as [`Semaphore::allow`] says.
    pub fn counting() -> Self {
        Self { granted: Some(Vec::new()), ..Self::binary() }
    }

    /// So many tasks may hold it, if it counts.
    pub fn allow(&mut self, count: u64) {
        if self.granted.is_some() {
            self.count = count;
        }
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Semaphore {
    match &mut s.locks[lock as usize].body {
        Body::Semaphore(body) => body,
        _ => unreachable!("kind and body agree"),
    }
}

/// `down_trylock`, and the fast path of `down`: takes the inner raw spinlock, looks, leaves.
#[inline]
pub(in crate::machine) fn try_down(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Write);
    !s.inner_is_held(lock) && take_if_free(&mut s, cx.id, lock)
}

/// `down` when it did not succeed at once. Returns whether it slept.
pub(in crate::machine) fn down_slow(cx: &Context, lock: LockId) -> Down<'_> {
    let inner = cx.state().inner(lock);
    Down { cx, lock, inner, stage: Stage::Queues(lock_to_wait(cx, inner, |code| code.queue)) }
}

/// See [`down_slow`]. Written by hand, as every wait for a semaphore comes here.
pub(in crate::machine) struct Down<'a> {
    cx: &'a Context,
    lock: LockId,
    inner: LockId,
    stage: Stage<'a>,
}

/// What who waits does.
enum Stage<'a> {
    /// Takes the inner spinlock to join the queue.
    Queues(LockToWait<'a>),
    /// Sleeps.
    Parks(Park<'a, fn(&mut State) -> Reason>),
}

impl Future for Down<'_> {
    type Output = bool;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, poll: &mut PollContext<'_>) -> Poll<bool> {
        let (cx, lock, inner) = (self.cx, self.lock, self.inner);
        match &mut self.stage {
            Stage::Queues(queue) => {
                ready!(Pin::new(queue).poll(poll));
                if !joins(&mut cx.state(), cx.id, lock, inner) {
                    return Poll::Ready(false);
                }
            }
            Stage::Parks(park) => ready!(Pin::new(park).poll(poll)),
        }
        while !takes_grant(&mut cx.state(), cx.id, lock) {
            let mut park = cx.park_here();
            let slept = Pin::new(&mut park).poll(poll);
            if slept.is_pending() {
                self.stage = Stage::Parks(park);
                return Poll::Pending;
            }
        }
        cx.runs(|code| code.take);
        Poll::Ready(true)
    }
}

#[inline]
fn takes_grant(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let Some(granted) = &mut body(s, lock).granted else { return s.take_grant(lock, me) };
    let before = granted.len();
    granted.retain(|&task| task != me);
    granted.len() < before
}

#[inline]
fn take_if_free(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let b = body(s, lock);
    if b.count == 0 {
        return false;
    }
    b.count -= 1;
    if b.granted.is_some() {
        s.begin_shared(lock, me);
    } else {
        s.begin_hold(lock, me);
    }
    true
}

/// With the inner spinlock, which it gives back, `me` takes the semaphore after all, or joins the queue, which is told.
fn joins(s: &mut State, me: TaskId, lock: LockId, inner: LockId) -> bool {
    let waits = !take_if_free(s, me, lock);
    if waits {
        s.tasks[me as usize].woken = false;
        body(s, lock).waiters.push_back(me);
    }
    spinlock::release(s, me, inner);
    waits
}

/// `up` from an interrupt: nobody pays for the wake-up but the interrupted CPU.
pub(in crate::machine) fn up_from_interrupt(s: &mut State, lock: LockId) {
    s.end_hold(lock);
    if let Some(next) = hand_over(s, lock) {
        s.wake(next, None);
    }
}

/// The hold has ended: one more, or the semaphore for the first waiter, who is returned.
#[inline]
fn hand_over(s: &mut State, lock: LockId) -> Option<TaskId> {
    let b = body(s, lock);
    let next = b.waiters.pop_front();
    match (next, &mut b.granted) {
        (None, _) => b.count += 1,
        (Some(next), None) => s.grant(lock, next),
        (Some(next), Some(granted)) => {
            granted.push(next);
            s.grant_shared(lock, next);
        }
    }
    next
}

/// `up`: one more, or the semaphore for the first waiter.
pub(in crate::machine) async fn up(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    super::spin_lock(cx, inner).await;
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Write);
    if body(&mut s, lock).granted.is_some() {
        s.end_shared(lock, cx.id);
    } else {
        s.end_hold(lock);
    }
    if let Some(next) = hand_over(&mut s, lock) {
        s.runs(cx.id, |code| code.mark);
        s.wake_waiter(cx.id, lock, next, false); // inside the raw spinlock, as before the wake queue came (6.12)
    }
    spinlock::release(&mut s, cx.id, inner);
}
