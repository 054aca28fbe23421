//! `struct mutex` of Linux 4.10 and later (`kernel/locking/mutex.c`): owner word with flags, OSQ spinning, stealing, and
//! hand-off to the first sleeper after its first failed attempt following a wake-up.
//!
//! A wake-up is a **hint**: the lock is free meanwhile and a spinner or newcomer may take it, until a hand-off is asked for.

use super::family::Family;
use super::osq::{self, Osq};
use super::release::Running;
use super::spinlock;
use crate::machine::context::Context;
use crate::machine::primitives::SpinUntil;
use crate::machine::seldom::Seldom;
use crate::machine::state::State;
use crate::waist::Machine as _;
use crate::waist::{Access, LockId, Side, TaskId};
use std::collections::VecDeque;

/// State of a mutex; the owner is the common part's holder.
#[derive(Debug, Default)]
pub struct Mutex {
    waiters: VecDeque<TaskId>,
    /// The first waiter asks for the lock itself.
    handoff: bool,
    /// Ownership waits for this task to pick it up.
    pickup: Option<TaskId>,
    osq: Seldom<Osq>,
}

impl Family for Mutex {
    type Variant = ();

    const PERF_NAME: &'static str = "mutex";
    const SHARES_LINE: bool = true;

    fn new((): ()) -> Self {
        Self::default()
    }

    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        lock_fast(cx, lock)
    }

    fn try_lock(cx: &Context, lock: LockId, _side: Side) -> bool {
        try_lock(cx, lock)
    }

    async fn wait(cx: &Context, lock: LockId, _side: Side) -> bool {
        lock_slow(cx, lock).await
    }

    fn release(cx: &Context, lock: LockId, _side: Side) -> Option<Running<'_>> {
        let somebody_waits = unlock_fast(&mut cx.state(), cx.id, lock);
        somebody_waits.then(|| Box::pin(unlock_slow(cx, lock)) as Running<'_>)
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Mutex {
    s.body(lock)
}

fn osq_of(s: &mut State, lock: LockId) -> &mut Osq {
    &mut body(s, lock).osq
}

/// `__mutex_trylock_fast`: only when no flag is set.
pub(super) fn lock_fast(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    let free = s.locks[lock as usize].holder.is_none();
    let b = body(&mut s, lock);
    let plain = b.waiters.is_empty() && !b.handoff && b.pickup.is_none();
    if free && plain {
        s.begin_hold(lock, cx.id);
    }
    free && plain
}

/// `__mutex_trylock`: takes a free lock whoever waits (stealing), unless it is kept for somebody else.
fn try_lock(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    try_lock_in(&mut s, cx.id, lock)
}

fn try_lock_in(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let holder = s.locks[lock as usize].holder;
    let b = body(s, lock);
    if b.pickup == Some(me) {
        b.pickup = None;
        return s.take_grant(lock, me); // ownership was handed over already
    }
    if holder.is_some() || b.pickup.is_some() {
        return false;
    }
    let first = b.waiters.front().copied();
    s.take(lock, me, first);
    true
}

/// `mutex_lock` when the fast path failed. Returns whether it slept.
pub(super) async fn lock_slow(cx: &Context, lock: LockId) -> bool {
    cx.preempt_disable();
    cx.settle().await;
    if try_lock(cx, lock) || spin_as_newcomer(cx, lock).await {
        cx.preempt_enable();
        return false;
    }
    cx.preempt_enable();
    cx.reschedule().await; // the spinner gave up because its CPU is wanted
    wait_in_queue(cx, lock).await
}

async fn spin_as_newcomer(cx: &Context, lock: LockId) -> bool {
    if !may_spin(&cx.state(), cx.id, lock) {
        return false;
    }
    cx.runs(|code| code.mutex.spin);
    if !osq::lock(cx, lock, osq_of).await {
        return false;
    }
    let taken = spin_on_owner(cx, lock).await;
    osq::unlock(cx, lock, osq_of);
    if taken {
        cx.runs(|code| code.mutex.taken);
    }
    taken
}

/// `mutex_can_spin_on_owner`: the owner runs and nobody wants my CPU.
fn may_spin(s: &State, me: TaskId, lock: LockId) -> bool {
    !s.need_resched(me) && s.locks[lock as usize].holder.is_none_or(|owner| s.on_cpu(owner))
}

/// Tries for the lock as long as its owner runs and nobody wants the CPU, after one `cpu_relax` if it was not free at first
/// (`mutex_optimistic_spin`).
async fn spin_on_owner(cx: &Context, lock: LockId) -> bool {
    let mut relax = 0;
    loop {
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.runs(|code| code.mutex.attempt);
        cx.state().tasks[cx.id as usize].segment.debt += relax;
        cx.pay().await;
        relax = cx.state().costs.cpu_relax;
        let open = {
            let mut s = cx.state();
            s.locks[lock as usize].holder.is_none() || body(&mut s, lock).pickup == Some(cx.id)
        };
        if open && try_lock(cx, lock) {
            cx.settle().await;
            return true;
        }
        let owner = {
            let s = cx.state();
            if !may_spin(&s, cx.id, lock) {
                return false;
            }
            s.locks[lock as usize].holder
        };
        cx.poll(lock, SpinUntil { owner_off_cpu: owner, need_resched: true, deadline: None }).await;
    }
}

async fn wait_in_queue(cx: &Context, lock: LockId) -> bool {
    let inner = cx.state().inner(lock);
    cx.runs(|code| code.mutex.ask);
    super::lock_to_wait(cx, inner, |code| code.mutex.queue).await;
    if try_lock(cx, lock) {
        spinlock::unlock(cx, inner);
        return false;
    }
    cx.forget_wakeups();
    body(&mut cx.state(), lock).waiters.push_back(cx.id);
    let mut taken = false;
    while !taken && !try_lock(cx, lock) {
        spinlock::unlock(cx, inner);
        cx.park_here().await;
        cx.runs(|code| code.mutex.woken);
        taken = try_or_ask_for_handoff(cx, lock);
        let first = body(&mut cx.state(), lock).waiters.front() == Some(&cx.id);
        taken = taken || (first && spin_as_first_waiter(cx, lock).await);
        super::lock_to_wait(cx, inner, if taken { |code| code.mutex.take } else { |code| code.mutex.look }).await;
    }
    if !taken {
        cx.runs(|code| code.mutex.take);
        cx.pay().await;
    }
    leave_queue(cx, lock);
    spinlock::unlock(cx, inner);
    cx.runs(|code| code.mutex.taken);
    true
}

fn try_or_ask_for_handoff(cx: &Context, lock: LockId) -> bool {
    let taken = try_lock(cx, lock);
    let mut s = cx.state();
    let b = body(&mut s, lock);
    if !taken && b.waiters.front() == Some(&cx.id) {
        b.handoff = true;
    }
    taken
}

/// The first waiter spins beside the OSQ head.
async fn spin_as_first_waiter(cx: &Context, lock: LockId) -> bool {
    if !may_spin(&cx.state(), cx.id, lock) {
        return false;
    }
    cx.preempt_disable();
    let taken = spin_on_owner(cx, lock).await;
    cx.preempt_enable();
    taken
}

fn leave_queue(cx: &Context, lock: LockId) {
    let mut s = cx.state();
    let b = body(&mut s, lock);
    b.waiters.retain(|&waiter| waiter != cx.id);
    if b.waiters.is_empty() {
        b.handoff = false;
    }
}

/// `mutex_unlock`: frees the lock and wakes the first waiter, or hands it over if that was asked for.
pub(super) async fn unlock(cx: &Context, lock: LockId) {
    let somebody_waits = unlock_fast(&mut cx.state(), cx.id, lock);
    if somebody_waits {
        unlock_slow(cx, lock).await;
    }
}

/// The beginning of it. Returns whether that is not all.
#[inline]
fn unlock_fast(s: &mut State, me: TaskId, lock: LockId) -> bool {
    s.touch_lock(me, lock, Access::Atomic);
    s.end_hold(lock);
    let b = body(s, lock);
    let first = b.waiters.front().copied();
    match first.filter(|_| b.handoff) {
        None => s.show_pollers(me, lock), // free from here on
        Some(first) => {
            (b.pickup, b.handoff) = (Some(first), false);
            s.grant(lock, first);
        }
    }
    first.is_some()
}

/// The rest, where somebody waits.
async fn unlock_slow(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    cx.runs(|code| code.mutex.wake);
    super::spin_lock(cx, inner).await;
    let first = body(&mut cx.state(), lock).waiters.front().copied();
    cx.runs(|code| code.mutex.mark);
    if let Some(first) = first {
        let mut s = cx.state();
        let lines = s.lines_of_waiter(cx.id, first);
        s.tasks[cx.id as usize].segment.debt += lines;
    }
    cx.pay().await;
    spinlock::unlock(cx, inner);
    cx.state().show_pollers(cx.id, lock);
    if let Some(first) = first {
        cx.wake_fetched(lock, first);
    }
}
