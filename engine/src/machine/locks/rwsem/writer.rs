//! `down_write` when the fast path failed: `rwsem_down_write_failed`, `rwsem_down_write_slowpath`.

use super::{ask_for_handoff, body, set_writer, spin, wake, with, Waiter};
use crate::machine::context::Context;
use crate::machine::locks::{lock_to_wait, spinlock};
use crate::machine::primitives::SpinUntil;
use crate::waist::{Access, LockId, Side};

/// Returns whether it slept.
pub(in crate::machine) async fn down_write_slow(cx: &Context, lock: LockId) -> bool {
    let era = with(cx, lock, |b| b.era);
    if !era.writers_spin() {
        with(cx, lock, |b| b.arriving_writers += 1); // the fast path's add stays until the wait lock is taken
        return wait_as_writer(cx, lock).await;
    }
    cx.preempt_disable();
    if !era.has_phases() {
        take_bias_back(cx, lock).await;
    }
    let taken = spin::spin(cx, lock, Side::Write).await;
    cx.preempt_enable();
    if taken {
        return false;
    }
    // 5.3: a writer that saw readers spin in vain keeps them from spinning on it
    let forbids = era.readers_spin() && with(cx, lock, |b| b.owner.no_reader_spin || b.owner.no_writer_spin);
    cx.reschedule().await;
    let slept = wait_as_writer(cx, lock).await;
    if forbids {
        with(cx, lock, |b| b.owner.no_reader_spin = true);
    }
    slept
}

async fn wait_as_writer(cx: &Context, lock: LockId) -> bool {
    let inner = cx.state().inner(lock);
    let era = with(cx, lock, |b| b.era);
    cx.runs(|code| code.rwsem.ask);
    lock_to_wait(cx, inner, |code| code.rwsem.queue).await;
    cx.forget_wakeups();
    queue_writer(cx, lock);
    if era.grants_writers() {
        wake::issue(cx, lock, inner, false);
        return sleep_until_granted(cx, lock).await;
    }
    if !era.has_phases() {
        wake::wake_marked(cx, lock, false);
    } else if with(cx, lock, |b| !b.slow.wake_list.is_empty()) {
        wake::issue(cx, lock, inner, false);
        lock_to_wait(cx, inner, |code| code.rwsem.look).await;
    }
    let mut slept = false;
    let mut tried = None;
    while !take_as_queued_writer(cx, lock) {
        spinlock::unlock(cx, inner);
        let now = Some(cx.state().now);
        let at_once = std::mem::replace(&mut tried, now) == now;
        if !(!era.sleeps_at_handoff() && is_marked(cx, lock) && spin_for_handoff(cx, lock, at_once).await) {
            sleep_until_hope(cx, lock).await;
            slept = true;
        }
        cx.runs(|code| code.rwsem.woken);
        lock_to_wait(cx, inner, |code| code.rwsem.look).await;
    }
    cx.runs(|code| code.rwsem.take);
    cx.pay().await;
    spinlock::unlock(cx, inner);
    cx.runs(|code| code.rwsem.taken);
    slept
}

/// The fast path's add is in the count until it is undone, and keeps others from a lock that is otherwise free.
async fn take_bias_back(cx: &Context, lock: LockId) {
    with(cx, lock, |b| b.arriving_writers += 1);
    cx.pay().await;
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    body(&mut s, lock).arriving_writers -= 1;
    s.show_pollers(cx.id, lock);
}

/// Appends the writer and marks who may go now.
fn queue_writer(cx: &Context, lock: LockId) {
    let mut s = cx.state();
    let since = s.now;
    if !body(&mut s, lock).era.has_phases() {
        s.touch_lock(cx.id, lock, Access::Atomic);
    }
    let b = body(&mut s, lock);
    let alone = b.slow.waiters.is_empty();
    b.slow.waiters.push_back(Waiter { task: cx.id, side: Side::Write, since, handoff: false, no_reader_spin: false });
    b.arriving_writers -= u32::from(!b.era.writers_spin());
    wake::mark_after_queueing(&mut s, cx.id, lock, Side::Write, alone);
}

async fn sleep_until_granted(cx: &Context, lock: LockId) -> bool {
    while !cx.state().take_grant(lock, cx.id) {
        cx.park_here().await;
    }
    cx.runs(|code| code.rwsem.taken);
    true
}

/// Sleeps until woken; to 5.10 a woken writer sleeps on while the lock is taken and it has no hand-off to ask for.
async fn sleep_until_hope(cx: &Context, lock: LockId) {
    loop {
        cx.park_here().await;
        if !with(cx, lock, |b| b.era.looks_before_wait_lock()) {
            return;
        }
        let was_locked = with(cx, lock, |b| b.locked());
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.pay().await;
        let mut s = cx.state();
        let b = body(&mut s, lock);
        let since = (b.era.has_phases() && b.is_first(cx.id)).then(|| b.slow.waiters[0].since);
        let asks = since.is_some_and(|since| s.may_ask_for_handoff(since));
        let b = body(&mut s, lock);
        // a release that began after this look is behind it in the line's queue: it was not seen
        if asks || !(was_locked || b.locked()) {
            return;
        }
    }
}

/// `rwsem_try_write_lock`, under the wait lock: takes the lock, or marks the first waiter after 4 ms.
fn take_as_queued_writer(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    let b = body(&mut s, lock);
    let first = b.slow.waiters[0];
    if b.handoff && first.handoff && first.task != cx.id {
        return false;
    }
    if b.locked() {
        let since = b.slow.waiters.iter().find(|w| w.task == cx.id).map(|w| w.since);
        let may_ask = !b.handoff && b.era.has_phases() && (first.task == cx.id || !b.era.only_first_asks());
        if may_ask && since.is_some_and(|since| s.may_ask_for_handoff(since)) {
            ask_for_handoff(&mut s, cx.id, lock);
        }
        return false;
    }
    b.handoff = false;
    s.touch_lock(cx.id, lock, Access::Atomic);
    set_writer(&mut s, cx.id, lock);
    body(&mut s, lock).slow.waiters.retain(|w| w.task != cx.id);
    true
}

fn is_marked(cx: &Context, lock: LockId) -> bool {
    with(cx, lock, |b| b.slow.waiters.iter().any(|w| w.task == cx.id && w.handoff))
}

/// The marked waiter spins on a running writer. True if it should try again: somebody who still tries may be in the count of a lock
/// that nobody owns (`OWNER_NULL`).
async fn spin_for_handoff(cx: &Context, lock: LockId, at_once: bool) -> bool {
    cx.pay().await;
    let owner = with(cx, lock, |b| b.owner);
    let Some(writer) = owner.writer() else { return owner.is_nobody() && next_attempt(cx, lock, at_once).await };
    loop {
        let may = {
            let s = cx.state();
            s.on_cpu(writer) && !s.need_resched(cx.id)
        };
        if !may {
            return false;
        }
        cx.poll(lock, SpinUntil { owner_off_cpu: Some(writer), need_resched: true, deadline: None }).await;
        let owner = with(cx, lock, |b| b.owner);
        if owner.writer() != Some(writer) {
            return owner.is_nobody();
        }
    }
}

/// Attempts take turns with that somebody's way to the wait lock. If they cost no time, the one that came `at_once` after another has
/// shown all that there is to see in this instant, and nobody else would ever have a turn.
async fn next_attempt(cx: &Context, lock: LockId, at_once: bool) -> bool {
    if at_once && with(cx, lock, |b| b.locked()) {
        cx.poll(lock, SpinUntil { owner_off_cpu: None, need_resched: true, deadline: None }).await;
    }
    true
}
