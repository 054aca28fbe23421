//! Whom a release, or a task that has just queued itself, wakes (`__rwsem_do_wake`, `rwsem_mark_wake`). Under the wait lock.

use super::{ask_for_handoff, body, note_reader, with, Era, Owner, Rwsem, Slow, Waiter};
use crate::machine::context::Context;
use crate::machine::lock::code::LockCode;
use crate::machine::lock::Body;
use crate::machine::locks::{spin_lock, spinlock};
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{LockId, Side, TaskId};

/// Whom to wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Whoever is first.
    Any,
    /// Readers, if one is first.
    Readers,
}

/// After a release.
pub(in crate::machine::locks) async fn next(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    let spinner_will = with(cx, lock, |b| b.era.leaves_wake_ups_to_spinners() && !b.slow.osq.is_empty());
    cx.runs(|code| code.rwsem.wake);
    if !spinner_will {
        spin_lock(cx, inner).await;
    } else if !spinlock::try_lock(cx, inner) {
        return;
    }
    mark_fetched(cx, lock, inner, Wake::Any).await;
}

/// Marks whom to wake, drops the wait lock `inner` and wakes them. Readers have the lock as soon as the first of them is seen
/// (`rwsem_mark_wake`: "we prefer to do the first reader grant before counting readers"). The others are in the count when the queue
/// has been gone through; what else a wake-up needs of them is fetched then.
pub(super) async fn mark_fetched(cx: &Context, lock: LockId, inner: LockId, wake: Wake) {
    if with(cx, lock, |b| b.era.wakes_under_wait_lock()) {
        cx.runs(|code| code.rwsem.mark);
        mark(&mut cx.state(), cx.id, lock, wake);
        issue(cx, lock, inner, false);
        return;
    }
    let reader = with(cx, lock, |b| b.slow.waiters.front().is_some_and(|first| first.side == Side::Read));
    let code: fn(&LockCode) -> Time = if reader { |code| code.grant } else { |code| code.rwsem.mark };
    cx.runs(code);
    let first = line_of_first(&cx.state(), cx.id, lock, wake);
    spend(cx, first).await;
    let (counting, fetching) = walk(&cx.state(), cx.id, lock, wake);
    mark(&mut cx.state(), cx.id, lock, wake);
    spend(cx, counting.saturating_sub(first)).await;
    with(cx, lock, |b| b.uncounted = 0);
    spend(cx, fetching).await;
    issue(cx, lock, inner, true);
}

async fn spend(cx: &Context, time: Time) {
    cx.state().tasks[cx.id as usize].segment.debt += time;
    cx.pay().await;
}

/// How long `me` takes to fetch the entry of the first waiter, if `wake` may be for it.
fn line_of_first(s: &State, me: TaskId, lock: LockId, wake: Wake) -> Time {
    let Body::Rwsem(b) = &s.locks[lock as usize].body else { unreachable!("kind and body agree") };
    let may = |first: &&Waiter| first.side == Side::Read || wake == Wake::Any;
    b.slow.waiters.front().filter(may).map_or(0, |first| s.line_of_waiter(me, first.task))
}

/// How long it takes `me` to go through the queue for those whom `wake` is going to mark, of whom each has an entry there, and then to
/// fetch their other lines.
fn walk(s: &State, me: TaskId, lock: LockId, wake: Wake) -> (Time, Time) {
    let Body::Rwsem(b) = &s.locks[lock as usize].body else { unreachable!("kind and body agree") };
    let Some(&Waiter { side, task: first, .. }) = b.slow.waiters.front() else { return (0, 0) };
    let (readers, phases) = (side == Side::Read, b.era.has_phases());
    if readers && b.written() {
        return (s.lock_code.undo + s.line_of_waiter(me, first), 0);
    }
    if !readers && wake == Wake::Readers {
        return (0, 0);
    }
    let others = |task| s.lines_of_waiter(me, task) - s.line_of_waiter(me, task);
    if !readers {
        return (s.line_of_waiter(me, first), others(first));
    }
    let all = if phases { s.kernel.rwsem_reader_batch } else { usize::MAX };
    let run = b.slow.waiters.iter().take_while(|w| phases || w.side == side);
    let code = &s.lock_code;
    let (mut counting, mut fetching) = (code.count, code.collect);
    for w in run.filter(|w| w.side == side).take(all) {
        counting += s.line_of_waiter(me, w.task) + code.count_reader;
        fetching += others(w.task);
    }
    (counting, fetching)
}

/// Drops the wait lock `inner` and wakes who was marked, whose lines may be `fetched` already; the early eras do it the other way
/// round.
pub(super) fn issue(cx: &Context, lock: LockId, inner: LockId, fetched: bool) {
    if !with(cx, lock, |b| b.era.wakes_under_wait_lock()) {
        spinlock::unlock(cx, inner);
        wake_marked(cx, lock, fetched);
    } else {
        wake_marked(cx, lock, false);
        spinlock::unlock(cx, inner);
    }
}

/// Wakes who was marked.
pub(super) fn wake_marked(cx: &Context, lock: LockId, fetched: bool) {
    let mut list = with(cx, lock, |b| std::mem::take(&mut b.slow.wake_list));
    for &task in &list {
        if fetched {
            cx.wake_fetched(lock, task);
        } else {
            cx.wake_waiter(lock, task);
        }
    }
    list.clear();
    with(cx, lock, |b| b.slow.wake_list = list);
}

/// After a task queued itself on `side`, `alone` in the queue: the lock may have become free, or readers may join readers.
pub(super) fn mark_after_queueing(s: &mut State, me: TaskId, lock: LockId, side: Side, alone: bool) {
    let b = body(s, lock);
    let free = !b.locked();
    let read_owned = !free && !b.written();
    let wake = match (side, b.era) {
        (Side::Read, _) if free => Some(Wake::Any),
        (Side::Read, era) if read_owned && era.reader_wakes_beside_readers(alone) => Some(Wake::Readers),
        (Side::Write, Era::V2_6) if free => Some(Wake::Any),
        (Side::Write, era) if free && !alone && era.has_phases() => Some(Wake::Any),
        (Side::Write, _) if read_owned && !alone => Some(Wake::Readers),
        _ => None,
    };
    if let Some(wake) = wake {
        if free {
            b.clear_nonspinnable();
        }
        mark(s, me, lock, wake);
        body(s, lock).uncounted = 0;
    }
}

/// Puts whom `me` is to wake on the lock's wake list, after giving them the lock if they are granted it.
pub(super) fn mark(s: &mut State, me: TaskId, lock: LockId, wake: Wake) {
    let b = body(s, lock);
    let Some(&first) = b.slow.waiters.front() else { return };
    match (first.side, wake) {
        (Side::Read, _) => grant_readers(s, me, lock, first),
        (Side::Write, Wake::Readers) => {}
        (Side::Write, Wake::Any) if !b.era.grants_writers() => b.slow.wake_list.push(first.task),
        (Side::Write, Wake::Any) => grant_writer(s, lock),
    }
}

fn grant_writer(s: &mut State, lock: LockId) {
    let b = body(s, lock);
    if b.locked() {
        return; // somebody who has just come is in the count: it will look again under the wait lock
    }
    let Some(first) = b.slow.waiters.pop_front() else { return };
    b.writer = true;
    b.slow.wake_list.push(first.task);
    s.grant(lock, first.task);
}

/// Grants the readers of a phase, unless a writer has taken the lock meanwhile.
fn grant_readers(s: &mut State, me: TaskId, lock: LockId, first: Waiter) {
    let (impatient, batch) = (s.may_ask_for_handoff(first.since), s.kernel.rwsem_reader_batch);
    let b = body(s, lock);
    if b.written() {
        // a writer stole it: the reader asks for a hand-off once it has waited long enough
        if b.era.has_phases() && impatient && !b.handoff {
            ask_for_handoff(s, me, lock);
        }
        return;
    }
    let from = b.slow.wake_list.len();
    if b.era.has_phases() {
        move_all_readers(b, batch);
        b.handoff = false;
    } else {
        move_run_of_readers(b);
    }
    let granted = b.slow.wake_list.len() - from;
    b.readers += granted as u32;
    b.uncounted = (granted as u32).saturating_sub(1);
    let mut told = false;
    for at in from..from + granted {
        let reader = body(s, lock).slow.wake_list[at];
        told |= note_reader(s, reader, lock);
    }
    let b = body(s, lock);
    if b.era.readers_spin() {
        b.owner = Owner { task: Some(first.task), readers: true, no_reader_spin: first.no_reader_spin, ..b.owner };
    }
    let class = s.locks[lock as usize].class;
    s.classes[class as usize].handoffs += granted as u64;
    if told {
        s.show_pollers(me, lock); // "an early indication that readers now have the lock"
    }
}

/// Phase-fair: readers wherever they are in the queue.
fn move_all_readers(b: &mut Rwsem, batch: usize) {
    let Slow { waiters, wake_list, granted, .. } = &mut *b.slow;
    let mut left = batch;
    waiters.retain(|w| {
        let goes = w.side == Side::Read && left > 0;
        if goes {
            left -= 1;
            wake_list.push(w.task);
            granted.push(w.task);
        }
        !goes
    });
}

/// First come, first served: readers up to the first writer.
fn move_run_of_readers(b: &mut Rwsem) {
    let Slow { waiters, wake_list, granted, .. } = &mut *b.slow;
    let run = waiters.iter().take_while(|w| w.side == Side::Read).count();
    for reader in waiters.drain(..run) {
        wake_list.push(reader.task);
        granted.push(reader.task);
    }
}
