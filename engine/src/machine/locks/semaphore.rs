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
pub(in crate::machine) fn try_down(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Write);
    if s.inner_is_held(lock) || body(&mut s, lock).count == 0 {
        return false;
    }
    body(&mut s, lock).count -= 1;
    s.begin_hold(lock, cx.id);
    true
}

/// `down` when it did not succeed at once. Returns whether it slept.
pub(in crate::machine) async fn down_slow(cx: &Context, lock: LockId) -> bool {
    let inner = cx.state().inner(lock);
    super::lock_to_wait(cx, inner).await;
    let free = body(&mut cx.state(), lock).count > 0;
    if free {
        body(&mut cx.state(), lock).count -= 1;
        cx.state().begin_hold(lock, cx.id);
        spinlock::unlock(cx, inner);
        return false;
    }
    cx.forget_wakeups();
    body(&mut cx.state(), lock).waiters.push_back(cx.id);
    spinlock::unlock(cx, inner);
    while !cx.state().take_grant(lock, cx.id) {
        cx.park_here().await;
    }
    true
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
    let next = body(s, lock).waiters.pop_front();
    match next {
        None => body(s, lock).count += 1,
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
    let next = hand_over(&mut s, lock);
    drop(s);
    if let Some(next) = next {
        cx.wake_waiter(lock, next); // inside the raw spinlock, as before the wake queue came (6.12)
    }
    spinlock::unlock(cx, inner);
}
