//! `struct semaphore`: counting, sleeping, no owner (`kernel/locking/semaphore.c`, the same from 2.6 to 6.12). XFS uses
//! one with count 1 as the buffer lock.
//!
//! No spinning at all; strict FIFO; **direct grant**: `up` with waiters leaves the count at 0 and gives the semaphore to
//! the first of them, which still has to wake. So nobody else can take it meanwhile, not even by trylock: a convoy. Anyone
//! may call `up`, from any context.

use super::spinlock;
use crate::machine::context::Context;
use crate::machine::line::Access;
use crate::machine::lock::{Body, LockId};
use crate::machine::state::State;
use crate::machine::task::TaskId;
use std::collections::VecDeque;

/// State of a semaphore.
#[derive(Debug)]
pub struct Semaphore {
    count: u32,
    waiters: VecDeque<TaskId>,
}

impl Semaphore {
    /// A semaphore that `count` tasks may hold at once.
    pub fn new(count: u32) -> Self {
        Self { count, waiters: VecDeque::new() }
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
pub(in crate::machine) async fn down_slow(cx: &Context, lock: LockId) -> bool {
    let inner = cx.state().inner(lock);
    super::lock_to_wait(cx, inner, |code| code.queue).await;
    if !joins(&mut cx.state(), cx.id, lock, inner) {
        return false;
    }
    while !cx.state().take_grant(lock, cx.id) {
        cx.park_here().await;
    }
    cx.runs(|code| code.take);
    true
}

fn take_if_free(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let b = body(s, lock);
    if b.count == 0 {
        return false;
    }
    b.count -= 1;
    s.begin_hold(lock, me);
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
    if let Some(next) = hand_over(s, lock) {
        s.wake(next, None);
    }
}

/// Ends the hold: one more, or the semaphore for the first waiter, who is returned.
fn hand_over(s: &mut State, lock: LockId) -> Option<TaskId> {
    s.end_hold(lock);
    let b = body(s, lock);
    let next = b.waiters.pop_front();
    match next {
        None => b.count += 1,
        Some(next) => s.grant(lock, next),
    }
    next
}

/// `up`: one more, or the semaphore for the first waiter.
pub(in crate::machine) async fn up(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    super::spin_lock(cx, inner).await;
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Write);
    if let Some(next) = hand_over(&mut s, lock) {
        s.runs(cx.id, |code| code.mark);
        s.wake_waiter(cx.id, lock, next, false); // inside the raw spinlock, as before the wake queue came (6.12)
    }
    spinlock::release(&mut s, cx.id, inner);
}
