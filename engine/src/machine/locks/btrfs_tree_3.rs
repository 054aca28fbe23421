//! The btrfs tree lock of Linux 3.1 to 5.10 (`fs/btrfs/locking.c` 3.6 and 5.1): an `rwlock_t`, counts of blocking readers
//! and writers, and two wait queues.
//!
//! A holder is **spinning** (it holds the rwlock and must not sleep, waiters spin) or, once it has converted, **blocking**
//! (it is only counted, the rwlock is free, and who comes takes that, sees the count, gives it back and sleeps). There is no
//! other spin policy. The last blocking holder that leaves wakes **everybody** who sleeps, the newest first, as a **hint**:
//! readers enter together, writers one by one, and the first to go blocking sends the others back to sleep.
//!
//! Left out: a task that reads under its own write lock (`lock_nested`).

use super::family::Family;
use super::release::Running;
use super::rwlock::{self, Policy};
use super::waitqueue::{self, Find, WaitQueue};
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::waist::{Access, LockId, Mode, Side, TaskId};

/// State of a tree lock; its rwlock is the inner lock.
#[derive(Debug)]
pub struct BtrfsTree3 {
    rwlock: Policy,
    blocking_readers: Vec<TaskId>,
    blocking_writer: bool,
    /// Writers that wait for blocking readers; everybody who waits for a blocking writer.
    queues: [WaitQueue; 2],
}

impl Family for BtrfsTree3 {
    type Variant = Policy;

    const PERF_NAME: &'static str = "rwlock";
    const HAS_MODES: bool = true;
    const READERS_SHARE: bool = true;

    fn new(rwlock: Policy) -> Self {
        Self { rwlock, blocking_readers: Vec::new(), blocking_writer: false, queues: Default::default() }
    }

    fn inner(rwlock: Policy) -> Option<(&'static str, LockKind)> {
        Some(("lock", LockKind::Rwlock(rwlock)))
    }

    fn wait_queues(&mut self) -> &mut [WaitQueue] {
        &mut self.queues
    }

    fn try_fast(cx: &Context, lock: LockId, side: Side) -> bool {
        lock_fast(cx, lock, side)
    }

    fn try_lock(cx: &Context, lock: LockId, side: Side) -> bool {
        try_lock(cx, lock, side)
    }

    async fn try_lock_spinning(cx: &Context, lock: LockId, side: Side) -> bool {
        try_lock_spinning(cx, lock, side).await
    }

    async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
        wait(cx, lock, side).await
    }

    fn release(cx: &Context, lock: LockId, side: Side) -> Option<Running<'_>> {
        Some(Box::pin(unlock(cx, lock, side)))
    }

    async fn convert(cx: &Context, lock: LockId, side: Side, mode: Mode) {
        convert(cx, lock, side, mode).await;
    }
}

fn body(s: &mut State, lock: LockId) -> &mut BtrfsTree3 {
    s.body(lock)
}

/// `read_lock_wq`, which the last blocking reader wakes.
fn behind_readers(s: &mut State, lock: LockId) -> &mut WaitQueue {
    &mut body(s, lock).queues[0]
}

/// `write_lock_wq`, which a blocking writer wakes.
fn behind_writer(s: &mut State, lock: LockId) -> &mut WaitQueue {
    &mut body(s, lock).queues[1]
}

fn no_blocking_readers(s: &mut State, lock: LockId) -> bool {
    body(s, lock).blocking_readers.is_empty()
}

fn no_blocking_writer(s: &mut State, lock: LockId) -> bool {
    !body(s, lock).blocking_writer
}

/// Whether no blocking holder keeps `side` out.
fn is_open(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Read);
    no_blocking_writer(&mut s, lock) && (side == Side::Read || no_blocking_readers(&mut s, lock))
}

fn enter(cx: &Context, lock: LockId, side: Side) {
    match side {
        Side::Read => cx.state().begin_shared(lock, cx.id),
        Side::Write => cx.state().begin_hold(lock, cx.id),
    }
}

/// The first attempt of the lock calls.
fn lock_fast(cx: &Context, lock: LockId, side: Side) -> bool {
    let inner = cx.state().inner(lock);
    let taken = is_open(cx, lock, side) && rwlock::lock_fast(cx, inner, side);
    if taken {
        enter(cx, lock, side);
    }
    taken
}

/// `btrfs_try_tree_read_lock` since 3.16: with a trylock of the rwlock.
fn try_lock(cx: &Context, lock: LockId, side: Side) -> bool {
    let inner = cx.state().inner(lock);
    let taken = is_open(cx, lock, side) && rwlock::try_lock(cx, inner, side);
    if taken {
        enter(cx, lock, side);
    }
    taken
}

/// `btrfs_try_tree_write_lock` and `btrfs_tree_read_lock_atomic` (to 3.15 `btrfs_try_tree_read_lock`), which searches use: fails
/// against blocking holders, but spins for the rwlock before it looks again.
async fn try_lock_spinning(cx: &Context, lock: LockId, side: Side) -> bool {
    if !is_open(cx, lock, side) {
        return false;
    }
    let inner = cx.state().inner(lock);
    if !rwlock::lock_fast(cx, inner, side) {
        cx.begin_wait(lock, side);
        cx.begin_wait(inner, side);
        rwlock::wait(cx, inner, side).await;
        cx.end_wait(false);
        cx.end_wait(false);
    }
    let open = is_open(cx, lock, side);
    if open {
        enter(cx, lock, side);
    } else {
        rwlock::unlock(cx, inner, side);
    }
    open
}

/// `btrfs_tree_read_lock`, `btrfs_tree_lock` when the first attempt failed. Returns whether it slept.
async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
    let inner = cx.state().inner(lock);
    let waits_first = side == Side::Write || body(&mut cx.state(), lock).rwlock == Policy::Biased;
    let mut slept = waits_first && wait_for_blocking(cx, lock, side).await;
    loop {
        lock_inner(cx, inner, side).await;
        if is_open(cx, lock, side) {
            enter(cx, lock, side);
            return slept;
        }
        rwlock::unlock(cx, inner, side);
        slept |= wait_for_blocking(cx, lock, side).await;
    }
}

async fn wait_for_blocking(cx: &Context, lock: LockId, side: Side) -> bool {
    let behind_readers = match side {
        Side::Write => waitqueue::wait_event(cx, lock, behind_readers, no_blocking_readers).await,
        Side::Read => false,
    };
    waitqueue::wait_event(cx, lock, behind_writer, no_blocking_writer).await || behind_readers
}

async fn lock_inner(cx: &Context, inner: LockId, side: Side) {
    super::pay_first(cx, inner).await;
    if !rwlock::lock_fast(cx, inner, side) {
        cx.begin_wait(inner, side);
        rwlock::wait(cx, inner, side).await;
        cx.end_wait(false);
    }
}

/// `btrfs_set_lock_blocking_{read,write}`, `btrfs_clear_lock_blocking_{read,write}`.
async fn convert(cx: &Context, lock: LockId, side: Side, mode: Mode) {
    let inner = cx.state().inner(lock);
    match (mode, is_blocking(cx, lock, side)) {
        (Mode::Blocking, false) => {
            count(cx, lock, side);
            rwlock::unlock(cx, inner, side);
        }
        (Mode::Spinning, true) => {
            lock_inner(cx, inner, side).await;
            discount(cx, lock, side).await;
        }
        _ => {}
    }
}

/// `btrfs_tree_read_unlock`, `btrfs_tree_read_unlock_blocking`, `btrfs_tree_unlock`.
async fn unlock(cx: &Context, lock: LockId, side: Side) {
    let inner = cx.state().inner(lock);
    match side {
        Side::Read => cx.state().end_shared(lock, cx.id),
        Side::Write => cx.state().end_hold(lock),
    }
    if is_blocking(cx, lock, side) {
        discount(cx, lock, side).await;
    } else {
        rwlock::unlock(cx, inner, side);
    }
}

fn is_blocking(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    let b = body(&mut s, lock);
    match side {
        Side::Read => b.blocking_readers.contains(&cx.id),
        Side::Write => b.blocking_writer,
    }
}

fn count(cx: &Context, lock: LockId, side: Side) {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    let b = body(&mut s, lock);
    match side {
        Side::Read => b.blocking_readers.push(cx.id),
        Side::Write => b.blocking_writer = true,
    }
}

/// One blocking holder less; the last one wakes who waits for it.
async fn discount(cx: &Context, lock: LockId, side: Side) {
    let queue: Find = {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Atomic);
        let b = body(&mut s, lock);
        match side {
            Side::Read => {
                b.blocking_readers.retain(|&reader| reader != cx.id);
                if !b.blocking_readers.is_empty() {
                    return;
                }
                behind_readers
            }
            Side::Write => {
                b.blocking_writer = false;
                behind_writer
            }
        }
    };
    waitqueue::wake_up(cx, lock, queue, 1).await;
}
