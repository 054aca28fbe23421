//! A mutex of user space: the default kind of glibc's `pthread_mutex_t` (`nptl/lowlevellock.c` 2.36) on a private futex
//! (`kernel/futex/waitwake.c` 6.12).
//!
//! The word is 0 where the mutex is free, 1 where it is held, 2 where it is held and somebody may wait. Nobody spins. A waiter
//! writes 2 and sleeps while it is 2; the release writes 0 and, if it was 2, wakes the first sleeper. A wake-up is a **hint**:
//! whoever comes first has the mutex, for ever. Sleeping and waking are system calls under the lock of the futex's hash bucket.

use super::family::Family;
use super::release::Running;
use super::spinlock;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::waist::{Access, LockId, Side, TaskId};
use std::collections::VecDeque;

/// State of a mutex on a futex.
#[derive(Debug, Default)]
pub struct PthreadMutex {
    word: Word,
    sleepers: VecDeque<TaskId>,
    /// Sleepers, and those on the way to the bucket's lock (`futex_hb_waiters_inc`).
    waiters: u32,
}

/// What the word says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Word {
    #[default]
    Free,
    Held,
    HeldAndWaitedFor,
}

impl Family for PthreadMutex {
    type Variant = ();

    const PERF_NAME: &'static str = "futex";
    const INNER_ROLE: Option<&'static str> = Some("futex.bucket");

    fn new((): ()) -> Self {
        Self::default()
    }

    fn inner((): ()) -> Option<(&'static str, LockKind)> {
        Some(("hash_bucket", LockKind::QSPINLOCK))
    }

    /// `lll_trylock`: compares with 0 and puts 1 there.
    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        let mut s = cx.state();
        s.runs(cx.id, |code| code.pthread);
        s.touch_lock(cx.id, lock, Access::Atomic);
        take_if_free(&mut s, cx.id, lock, Word::Held)
    }

    /// `__lll_lock_wait`.
    async fn wait(cx: &Context, lock: LockId, _side: Side) -> bool {
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.pay().await;
        let marked = body(&mut cx.state(), lock).word == Word::HeldAndWaitedFor;
        let mut slept = marked && futex_wait(cx, lock).await;
        while !exchange(cx, lock).await {
            slept |= futex_wait(cx, lock).await;
        }
        slept
    }

    /// `lll_unlock`. Who has queued for the line has not given the mutex back before it comes.
    fn release(cx: &Context, lock: LockId, _side: Side) -> Option<Running<'_>> {
        let mut s = cx.state();
        s.runs(cx.id, |code| code.pthread);
        s.forget_queues(cx.id);
        s.touch_lock(cx.id, lock, Access::Atomic);
        if s.has_queued(cx.id) {
            return Some(Box::pin(unlock_later(cx, lock)));
        }
        unlock(&mut s, lock).then(|| Box::pin(futex_wake(cx, lock)) as Running<'_>)
    }
}

fn body(s: &mut State, lock: LockId) -> &mut PthreadMutex {
    s.body(lock)
}

/// Puts 2 there; whether it was 0, and so the mutex this task's.
async fn exchange(cx: &Context, lock: LockId) -> bool {
    cx.state().touch_lock(cx.id, lock, Access::Atomic);
    cx.pay().await;
    let mut s = cx.state();
    let taken = take_if_free(&mut s, cx.id, lock, Word::HeldAndWaitedFor);
    body(&mut s, lock).word = Word::HeldAndWaitedFor;
    taken
}

fn take_if_free(s: &mut State, me: TaskId, lock: LockId, held: Word) -> bool {
    let b = body(s, lock);
    if b.word != Word::Free {
        return false;
    }
    b.word = held;
    let first = b.sleepers.front().copied();
    s.take(lock, me, first);
    true
}

/// `futex_wait`: sleeps if the word is still 2 when it is looked at under the bucket's lock. Returns whether it slept.
async fn futex_wait(cx: &Context, lock: LockId) -> bool {
    let bucket = cx.state().inner(lock);
    cx.runs(|code| code.futex);
    cx.state().touch_lock(cx.id, bucket, Access::Atomic);
    body(&mut cx.state(), lock).waiters += 1;
    super::spin_lock(cx, bucket).await;
    cx.state().touch_lock(cx.id, lock, Access::Read);
    cx.pay().await;
    let sleeps = body(&mut cx.state(), lock).word == Word::HeldAndWaitedFor;
    if sleeps {
        cx.runs(|code| code.futex_queue);
        fetch_neighbours(&mut cx.state(), cx.id, lock);
        cx.pay().await;
        cx.forget_wakeups();
        body(&mut cx.state(), lock).sleepers.push_back(cx.id);
    } else {
        body(&mut cx.state(), lock).waiters -= 1;
    }
    spinlock::unlock(cx, bucket);
    while body(&mut cx.state(), lock).sleepers.contains(&cx.id) {
        cx.park_here().await;
    }
    cx.runs(|code| code.futex_return);
    sleeps
}

/// `plist_add` looks at the first entry and changes the last, which lie on the stacks of their tasks.
fn fetch_neighbours(s: &mut State, me: TaskId, lock: LockId) {
    let sleepers = &body(s, lock).sleepers;
    let (first, last) = (sleepers.front().copied(), sleepers.back().copied());
    for sleeper in first.into_iter().chain(last.filter(|_| last != first)) {
        s.tasks[me as usize].segment.debt += s.line_of_waiter(me, sleeper);
    }
}

async fn unlock_later(cx: &Context, lock: LockId) {
    cx.pay().await;
    if unlock(&mut cx.state(), lock) {
        futex_wake(cx, lock).await;
    }
}

/// The word says that it is free. Returns whether somebody may wait: one is woken then.
fn unlock(s: &mut State, lock: LockId) -> bool {
    s.end_hold(lock);
    std::mem::take(&mut body(s, lock).word) == Word::HeldAndWaitedFor
}

/// `futex_wake`: who is woken leaves the queue under the bucket's lock, and is woken after it.
async fn futex_wake(cx: &Context, lock: LockId) {
    let bucket = cx.state().inner(lock);
    cx.runs(|code| code.futex);
    cx.state().touch_lock(cx.id, bucket, Access::Read);
    if body(&mut cx.state(), lock).waiters > 0 {
        super::spin_lock(cx, bucket).await;
        let first = marks(&mut cx.state(), cx.id, lock);
        cx.pay().await;
        spinlock::unlock(cx, bucket);
        if let Some(first) = first {
            cx.wake_fetched(lock, first);
        }
    }
    cx.runs(|code| code.futex_return);
}

/// `futex_wake_mark`: the first leaves the queue, and `plist_del` changes the entry after it. Their lines come under the bucket's lock.
fn marks(s: &mut State, me: TaskId, lock: LockId) -> Option<TaskId> {
    s.runs(me, |code| code.futex_mark);
    let b = body(s, lock);
    let first = b.sleepers.pop_front()?;
    b.waiters -= 1;
    let next = b.sleepers.front().copied();
    let lines = s.lines_of_waiter(me, first) + next.map_or(0, |next| s.line_of_waiter(me, next));
    s.tasks[me as usize].segment.debt += lines;
    Some(first)
}
