//! `struct completion` (`kernel/sched/completion.c`): a count of things done and a FIFO of those who wait for one. The idle workers of
//! a pool wait in the same way, but the last one is woken first (`worker_enter_idle`, `kernel/workqueue.c` 6.12: the list is LIFO).
//!
//! A wake-up is a hint: a task that comes in between may take the count, and the woken one sleeps again.

use super::family::Family;
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
    /// Whether the last waiter is woken first.
    last_first: bool,
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

    /// Who is to be woken.
    fn take_waiter(&mut self) -> Option<TaskId> {
        if self.last_first {
            self.waiters.pop_back()
        } else {
            self.waiters.pop_front()
        }
    }
}

/// From now on the last waiter of `lock` is woken first.
pub(in crate::machine) fn wake_last_first(s: &mut State, lock: LockId) {
    body(s, lock).last_first = true;
}

/// A device will complete `lock`.
pub(in crate::machine) fn expect(s: &mut State, lock: LockId) {
    body(s, lock).requests += 1;
}

fn body(s: &mut State, lock: LockId) -> &mut Completion {
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
    b.done += 1;
    if let Some(waiter) = b.take_waiter() {
        s.wake(waiter, None);
    }
}

/// `complete`.
pub(in crate::machine) async fn complete(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    super::spin_lock(cx, inner).await;
    body(&mut cx.state(), lock).done += 1;
    let waiter = body(&mut cx.state(), lock).take_waiter();
    if let Some(waiter) = waiter {
        cx.wake_waiter(lock, waiter);
    }
    spinlock::unlock(cx, inner);
}
