//! `rwlock_t`: readers and writers that spin. Holders and spinners run with preemption off.
//!
//! * *biased* (x86 before 3.16, `arch/x86/include/asm/rwlock.h`): one counter; a reader takes 1 from it, a writer all of it,
//!   and who finds that it was not there puts it back: two atomic operations for every failed attempt. All waiters poll the
//!   word. No queue: readers enter whenever no writer holds it, so a stream of readers starves writers.
//! * *qrwlock* (3.16 and later, `kernel/locking/qrwlock.c` as of 6.12): who does not enter at once queues in a raw spinlock,
//!   whose holder alone polls the word. A writer there marks the word, so that later readers queue behind it; a reader there
//!   counts itself and waits for the writer to leave. FIFO, but for those who find the word free. Left out: readers in
//!   interrupts, who pass the queue.
//!
//! * *qrwlock-3.16* (until 4.2): the same, but a reader at the head waits for the writer to leave before it counts itself, so that its
//!   addition comes after the look that finds the lock free.
//!
//! A failed attempt undoes itself at once here, so it makes nobody else fail.

use super::family::Family;
use super::release::Running;
use super::spinlock;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::primitives::SpinUntil;
use crate::machine::state::State;
use crate::waist::{Access, LockId, Side, TaskId};

/// Which rwlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // described above
pub enum Policy {
    Biased,
    Queued,
    QueuedWaiting,
}

/// State of an rwlock; holder and readers are kept by the common part.
#[derive(Debug)]
pub struct Rwlock {
    policy: Policy,
    /// qrwlock: the head of the queue, which alone polls the word and has counted or marked itself in it.
    head: Option<(TaskId, Side)>,
}

impl Family for Rwlock {
    type Variant = Policy;

    const PERF_NAME: &'static str = "rwlock";
    const MAY_SLEEP: bool = false;
    const READERS_SHARE: bool = true;

    fn new(policy: Policy) -> Self {
        Self { policy, head: None }
    }

    fn inner(policy: Policy) -> Option<(&'static str, LockKind)> {
        (policy != Policy::Biased).then_some(("wait_lock", LockKind::QSPINLOCK))
    }

    fn try_fast(cx: &Context, lock: LockId, side: Side) -> bool {
        lock_fast(cx, lock, side)
    }

    fn try_lock(cx: &Context, lock: LockId, side: Side) -> bool {
        try_lock(cx, lock, side)
    }

    async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
        wait(cx, lock, side).await
    }

    fn release(cx: &Context, lock: LockId, side: Side) -> Option<Running<'_>> {
        unlock(cx, lock, side);
        None
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Rwlock {
    s.body(lock)
}

/// The first attempt of `read_lock` and `write_lock`, made without looking; a failed one is undone.
pub(super) fn lock_fast(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    let open = is_open(&mut s, lock, side);
    if open {
        enter(&mut s, cx.id, lock, side);
    } else if side == Side::Read || body(&mut s, lock).policy == Policy::Biased {
        s.touch_lock(cx.id, lock, Access::Atomic); // puts back what it took; qrwlock's writers compare first
    }
    open
}

/// `read_trylock` and `write_trylock`: look first.
pub(super) fn try_lock(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Read);
    let open = is_open(&mut s, lock, side);
    if open {
        s.touch_lock(cx.id, lock, Access::Atomic);
        enter(&mut s, cx.id, lock, side);
    }
    open
}

/// Whether a newcomer may enter: where there is a queue, not past its head if that is a writer or oneself is one.
fn is_open(s: &mut State, lock: LockId, side: Side) -> bool {
    let head = body(s, lock).head;
    let passes = match (side, head) {
        (_, None) | (Side::Read, Some((_, Side::Read))) => true,
        (Side::Write, Some((_, Side::Read))) => counts_last(s, lock, Side::Read), // the word does not tell of it yet
        (_, Some(_)) => false,
    };
    passes && is_free(s, lock, side)
}

/// Whether the present holders leave room.
fn is_free(s: &State, lock: LockId, side: Side) -> bool {
    let l = &s.locks[lock as usize];
    l.holder.is_none() && (side == Side::Read || l.readers == 0)
}

fn enter(s: &mut State, me: TaskId, lock: LockId, side: Side) {
    s.tasks[me as usize].preempt_off += 1;
    match side {
        Side::Read => s.begin_shared(lock, me),
        Side::Write => s.begin_hold(lock, me),
    }
}

/// Waits for the lock on the CPU. Returns whether it slept: never.
pub(super) async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
    cx.preempt_disable();
    let policy = body(&mut cx.state(), lock).policy;
    match policy {
        Policy::Biased => poll_with_all(cx, lock, side).await,
        Policy::Queued | Policy::QueuedWaiting => queue(cx, lock, side).await,
    }
    cx.preempt_enable();
    false
}

async fn poll_with_all(cx: &Context, lock: LockId, side: Side) {
    cx.state().locks[lock as usize].pollers.push(cx.id);
    loop {
        cx.spin(SpinUntil::default()).await;
        let mut s = cx.state();
        if is_free(&s, lock, side) {
            s.touch_lock(cx.id, lock, Access::Atomic);
            s.locks[lock as usize].pollers.retain(|&poller| poller != cx.id);
            return enter(&mut s, cx.id, lock, side);
        }
    }
}

/// `queued_read_lock_slowpath` and `queued_write_lock_slowpath`.
async fn queue(cx: &Context, lock: LockId, side: Side) {
    let inner = cx.state().inner(lock);
    cx.runs(|code| code.qrwlock.ask);
    super::spin_lock(cx, inner).await;
    {
        let mut s = cx.state();
        s.runs(cx.id, |code| code.qrwlock.count);
        let access = if counts_last(&mut s, lock, side) { Access::Read } else { Access::Atomic };
        s.touch_lock(cx.id, lock, access);
        body(&mut s, lock).head = Some((cx.id, side));
    }
    while !enter_from_queue(cx, lock, side) {
        cx.spin(SpinUntil::default()).await;
    }
    spinlock::unlock(cx, inner);
    cx.runs(|code| code.qrwlock.taken);
}

/// Whether who is at the head counts itself only once it has seen the lock free.
fn counts_last(s: &mut State, lock: LockId, side: Side) -> bool {
    side == Side::Read && body(s, lock).policy == Policy::QueuedWaiting
}

fn enter_from_queue(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    let free = is_free(&s, lock, side);
    if free {
        s.runs(cx.id, |code| code.qrwlock.enter);
        if side == Side::Write || counts_last(&mut s, lock, side) {
            s.touch_lock(cx.id, lock, Access::Atomic); // else a reader has counted itself already
        }
        if side == Side::Write {
            s.runs(cx.id, |code| code.qrwlock.leave);
        }
        body(&mut s, lock).head = None;
        enter(&mut s, cx.id, lock, side);
    }
    free
}

/// Releases the lock; if it is free then, those who poll the word see it when their refetch is served.
pub(super) fn unlock(cx: &Context, lock: LockId, side: Side) {
    let mut s = cx.state();
    let by_store = side == Side::Write && body(&mut s, lock).policy != Policy::Biased;
    s.touch_lock(cx.id, lock, if by_store { Access::Store } else { Access::Atomic });
    match side {
        Side::Read => s.end_shared(lock, cx.id),
        Side::Write => s.end_hold(lock),
    }
    s.preempt_enable(cx.id);
    if s.locks[lock as usize].readers > 0 {
        return;
    }
    let b = body(&mut s, lock);
    match (b.policy, b.head) {
        (Policy::Biased, _) => {
            s.show_in_random_order(cx.id, lock, |s, order| order.extend(&s.locks[lock as usize].pollers));
        }
        (_, Some((head, _))) => s.show(cx.id, lock, head),
        (_, None) => {}
    }
}
