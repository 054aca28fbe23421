//! `seqlock_t` (`include/linux/seqlock.h`, the same from 2.6 to 6.12): a sequence and the spinlock of its writers, in one line.
//!
//! A writer takes the spinlock and makes the sequence odd, and even again when it is done. Readers write nothing and nobody
//! waits for them: they wait until the sequence is even, and where it has changed meanwhile they do it all again
//! (`read_seqretry`). A release by a reader contains that: the CPU time that its section took, once more. Each time counts as
//! an acquisition, and all together as one wait.

use super::family::Family;
use super::release::Running;
use super::{pay_first, spinlock};
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::primitives::SpinUntil;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{Access, Account, LockId, Machine, Side, TaskId};

/// State of a seqlock.
#[derive(Debug, Default)]
pub struct Seqlock {
    /// Writers so far; while one is inside, the lock has a holder.
    writes: u64,
    readers: Vec<Reading>,
}

/// A reader inside.
#[derive(Clone, Copy, Debug)]
struct Reading {
    task: TaskId,
    /// What it has seen.
    writes: u64,
    /// The CPU time that it had used by then.
    used: Time,
}

impl Family for Seqlock {
    type Variant = ();

    const PERF_NAME: &'static str = "spinlock";
    const MAY_SLEEP: bool = false;
    const SHARES_LINE: bool = true;

    fn new((): ()) -> Self {
        Self::default()
    }

    fn inner((): ()) -> Option<(&'static str, LockKind)> {
        Some(("lock", LockKind::QSPINLOCK))
    }

    /// A writer takes the spinlock if it is free; a reader goes in unless a writer is inside.
    fn try_fast(cx: &Context, lock: LockId, side: Side) -> bool {
        let mut s = cx.state();
        if side == Side::Read {
            return reads(&mut s, cx.id, lock);
        }
        let inner = s.inner(lock);
        let taken = spinlock::try_take(&mut s, cx.id, inner);
        if taken {
            write(&mut s, cx.id, lock);
        }
        taken
    }

    /// Waits for the spinlock, or for the writer inside to leave.
    async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
        if side == Side::Read {
            poll_until_even(cx, lock).await;
            return false;
        }
        let inner = cx.state().inner(lock);
        cx.go_through(|s, me| s.wait_for_spinlock(me, inner)).await;
        write(&mut cx.state(), cx.id, lock);
        false
    }

    /// A reader whose section is empty waited for an even sequence, and does not look again.
    fn release(cx: &Context, lock: LockId, side: Side) -> Option<Running<'_>> {
        if side == Side::Read && leaves_empty(&mut cx.state(), cx.id, lock) {
            return None;
        }
        Some(Box::pin(unlock(cx, lock, side)))
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Seqlock {
    s.body(lock)
}

/// The CPU time that the running `task` has used.
fn used(s: &State, task: TaskId) -> Time {
    let times = s.times_of(task);
    times.since - times.runnable - times.sleeping
}

/// `write_seqcount_begin`.
fn write(s: &mut State, me: TaskId, lock: LockId) {
    s.touch_lock(me, lock, Access::Store);
    body(s, lock).writes += 1;
    s.begin_hold(lock, me);
}

/// `read_seqbegin`, if the sequence is even.
fn reads(s: &mut State, me: TaskId, lock: LockId) -> bool {
    s.touch_lock(me, lock, Access::Read);
    if s.locks[lock as usize].holder.is_some() {
        return false;
    }
    let used = used(s, me) + s.tasks[me as usize].segment.total();
    let b = body(s, lock);
    let writes = b.writes;
    b.readers.push(Reading { task: me, writes, used });
    s.begin_reading(lock, me);
    true
}

async fn poll_until_even(cx: &Context, lock: LockId) {
    cx.preempt_disable();
    loop {
        cx.poll(lock, SpinUntil::default()).await;
        if reads(&mut cx.state(), cx.id, lock) {
            break;
        }
    }
    cx.preempt_enable();
}

/// `write_sequnlock`, or `read_seqretry` until nothing has changed.
async fn unlock(cx: &Context, lock: LockId, side: Side) {
    if side == Side::Write {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Store);
        s.end_hold(lock);
        s.show_pollers(cx.id, lock);
        let inner = s.inner(lock);
        return spinlock::release(&mut s, cx.id, inner);
    }
    pay_first(cx, lock).await;
    let again = must_retry(&mut cx.state(), cx.id, lock);
    if let Some(section) = again {
        cx.begin_wait(lock, side);
        retry(cx, lock, section).await;
        cx.end_wait(false);
    }
}

/// Does a section of so much CPU time again until no writer comes between.
async fn retry(cx: &Context, lock: LockId, section: Time) {
    loop {
        let even = reads(&mut cx.state(), cx.id, lock);
        if !even {
            poll_until_even(cx, lock).await;
        }
        cx.run(Account::System, section).await;
        if must_retry(&mut cx.state(), cx.id, lock).is_none() {
            return;
        }
    }
}

/// The reader leaves at once if it has used no CPU time since it came.
fn leaves_empty(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let used = used(s, me) + s.tasks[me as usize].segment.total();
    let readers = &mut body(s, lock).readers;
    let at = readers.iter().rposition(|reading| reading.task == me).expect("it is inside");
    let empty = readers[at].used == used;
    if empty {
        readers.remove(at);
        s.end_reading(lock, me);
    }
    empty
}

/// The reader looks at the sequence: the CPU time of its section, if a writer has been inside since it began.
fn must_retry(s: &mut State, me: TaskId, lock: LockId) -> Option<Time> {
    s.touch_lock(me, lock, Access::Read);
    let used = used(s, me);
    let b = body(s, lock);
    let at = b.readers.iter().rposition(|reading| reading.task == me).expect("it is inside");
    let reading = b.readers.remove(at);
    let changed = b.writes != reading.writes;
    s.end_reading(lock, me);
    changed.then(|| used.saturating_sub(reading.used))
}
