//! `struct completion` (`kernel/sched/completion.c`): a count of things done and a FIFO of those who wait for one. What is completed may
//! be work for a [`pool`](super::pool) of workers instead.
//!
//! A wake-up is a hint: a task that comes in between may take the count, and the woken one sleeps again.

use super::family::Family;
use super::pool::{self, Part, Pool};
use super::release::Running;
use super::spinlock;
use crate::machine::chains::Reason;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::waist::{ClassId, LockId, Side, TaskId};
use std::collections::VecDeque;

/// State of a completion.
#[derive(Debug, Default)]
pub struct Completion {
    done: u32,
    /// Requests of devices that will complete it.
    requests: u32,
    waiters: VecDeque<TaskId>,
    /// It is where workers wait for work.
    pub(super) pool: Option<Box<Pool>>,
    /// It is work for a pool.
    pub(super) part: Option<Box<Part>>,
}

impl Family for Completion {
    type Variant = ();

    const PERF_NAME: &'static str = "semaphore";
    const SHARES_LINE: bool = true;

    fn new((): ()) -> Self {
        Self::default()
    }

    fn try_fast(_cx: &Context, _lock: LockId, _side: Side) -> bool {
        unreachable!("nobody acquires a completion")
    }

    async fn wait(_cx: &Context, _lock: LockId, _side: Side) -> bool {
        unreachable!("nobody acquires a completion")
    }

    fn release(_cx: &Context, _lock: LockId, _side: Side) -> Option<Running<'_>> {
        unreachable!("nobody acquires a completion")
    }
}

impl Completion {
    fn why(&self) -> Reason {
        if self.requests > 0 {
            Reason::Device
        } else {
            Reason::Completion
        }
    }
}

/// From now on workers wait at `lock`.
pub(in crate::machine) fn become_pool(s: &mut State, lock: LockId) {
    body(s, lock).pool = Some(Box::default());
}

/// From now on completing `lock` is work for `pool`, of which so many pieces are done at a time; or it is one that is queued again.
pub(in crate::machine) fn become_work(s: &mut State, lock: LockId, pool: LockId, (most, is_one): (u32, bool)) {
    body(s, lock).part = Some(Box::new(Part::new(pool, most, is_one)));
}

/// A device will complete `lock`.
pub(in crate::machine) fn expect(s: &mut State, lock: LockId) {
    body(s, lock).requests += 1;
}

pub(super) fn body(s: &mut State, lock: LockId) -> &mut Completion {
    s.body(lock)
}

/// The class of all completions.
pub(in crate::machine) fn class(s: &mut State) -> ClassId {
    s.class("completion", "completion", LockKind::Completion(()))
}

/// `wait_for_completion`.
pub(in crate::machine) async fn wait(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    super::spin_lock(cx, inner).await;
    cx.forget_wakeups();
    while body(&mut cx.state(), lock).done == 0 {
        body(&mut cx.state(), lock).waiters.push_back(cx.id);
        spinlock::unlock(cx, inner);
        cx.park_for(|s| body(s, lock).why()).await;
        super::spin_lock(cx, inner).await;
        body(&mut cx.state(), lock).waiters.retain(|&waiter| waiter != cx.id);
    }
    body(&mut cx.state(), lock).done -= 1;
    cx.state().tasks[cx.id as usize].function = 0;
    spinlock::unlock(cx, inner);
}

/// `complete` from an interrupt.
pub(in crate::machine) fn complete_from_interrupt(s: &mut State, lock: LockId) {
    let b = body(s, lock);
    b.requests -= 1;
    let waiter = if b.part.is_some() {
        pool::insert_work(s, lock)
    } else {
        b.done += 1;
        b.waiters.pop_front()
    };
    if let Some(waiter) = waiter {
        s.wake(waiter, None);
    }
}

/// `complete`.
pub(in crate::machine) async fn complete(cx: &Context, lock: LockId) {
    let pool = pool::pool_of(&mut cx.state(), lock);
    if let Some(pool) = pool {
        return pool::queue_work(cx, lock, pool).await;
    }
    let inner = cx.state().inner(lock);
    super::spin_lock(cx, inner).await;
    body(&mut cx.state(), lock).done += 1;
    let waiter = body(&mut cx.state(), lock).waiters.pop_front();
    if let Some(waiter) = waiter {
        cx.wake_waiter(lock, waiter);
    }
    spinlock::unlock(cx, inner);
}
