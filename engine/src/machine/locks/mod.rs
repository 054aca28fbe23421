//! The locks, one file a family: executable algorithms over cache lines, wait queues and the scheduler.
//!
//! How to add a lock: write its state and its `acquire`/`try_acquire`/`release` in a file of its own, in terms of
//! [`Context`](super::context::Context)'s primitives (touch the line, pay, park, spin, wake); give it a variant of
//! [`Body`](super::lock::Body) and a name in [`LockKind::parse`](super::lock::LockKind::parse); add its arms here and in `release`.
//! Spinlocks and semaphores have no waits of their own: the machine takes tasks through them (`inside`).

mod acquire;
pub mod btrfs_tree_2;
pub mod btrfs_tree_3;
pub mod cohort;
pub mod completion;
pub mod futex;
pub mod hqlock;
mod inner;
mod inside;
pub mod mutex;
pub mod mutex_counted;
pub mod osq;
pub mod paravirt;
pub mod percpu_rwsem;
pub mod queued;
pub mod rcu;
mod release;
pub mod rwlock;
pub mod rwsem;
pub mod semaphore;
pub mod seqlock;
pub mod spinlock;
pub mod waitqueue;

use super::context::Context;
use super::cpu::Account;
use super::lock::{LockId, LockKind, Mode, Side};
use super::time::Time;
use crate::waist::Machine;
pub(super) use acquire::acquire;
use inner::{lock_to_wait, spin_lock};
pub use inside::Inside;
pub(super) use release::release;

/// Waits for `lock`, and says whether it slept. Boxed, as it is large and every program has room for what it awaits.
async fn wait_slow(cx: &Context, kind: LockKind, lock: LockId, side: Side) -> bool {
    match kind {
        LockKind::Spin(_) | LockKind::Semaphore | LockKind::CountingSemaphore => {
            unreachable!("the machine takes tasks through them")
        }
        LockKind::Cohorts(_) => cohort::wait(cx, lock).await,
        LockKind::Paravirt => paravirt::wait(cx, lock).await,
        LockKind::Seqlock => seqlock::wait(cx, lock, side).await,
        LockKind::Rcu => rcu::wait(cx, lock).await,
        LockKind::Rwlock(_) => rwlock::wait(cx, lock, side).await,
        LockKind::CountedMutex(_) => mutex_counted::lock_slow(cx, lock).await,
        LockKind::Mutex => mutex::lock_slow(cx, lock).await,
        LockKind::PthreadMutex => futex::wait(cx, lock).await,
        LockKind::Rwsem(_) => match side {
            Side::Read => rwsem::down_read_slow(cx, lock).await,
            Side::Write => rwsem::down_write_slow(cx, lock).await,
        },
        LockKind::PercpuRwsem => percpu_rwsem::wait(cx, lock, side).await,
        LockKind::Removed => unreachable!("it is always free"),
        LockKind::BtrfsTree2 => btrfs_tree_2::wait(cx, lock).await,
        LockKind::BtrfsTree3(_) => btrfs_tree_3::wait(cx, lock, side).await,
    }
}

/// Acquires `lock` if that needs no waiting.
pub(super) fn try_acquire(cx: &Context, lock: LockId, side: Side) -> bool {
    let (lock, kind) = part(cx, lock);
    let owed = cx.debt();
    let taken = match kind {
        LockKind::Rwlock(_) => rwlock::try_lock(cx, lock, side),
        LockKind::BtrfsTree3(_) => btrfs_tree_3::try_lock(cx, lock, side),
        LockKind::CountedMutex(_) => mutex_counted::try_lock(cx, lock),
        LockKind::Mutex => mutex::try_lock(cx, lock),
        kind => try_fast(cx, kind, lock, side),
    };
    if taken {
        took(cx, lock, owed);
    }
    taken
}

/// Acquires `lock` if that needs no sleep.
pub(super) async fn try_acquire_spinning(cx: &Context, lock: LockId, side: Side) -> bool {
    let (part, kind) = part(cx, lock);
    pay_first(cx, part).await;
    match kind {
        LockKind::BtrfsTree2 => btrfs_tree_2::try_lock_spinning(cx, part).await,
        LockKind::BtrfsTree3(_) => btrfs_tree_3::try_lock_spinning(cx, part, side).await,
        _ => try_acquire(cx, lock, side),
    }
}

/// Changes the mode in which this task holds `lock`, if that has modes.
pub(super) async fn convert(cx: &Context, lock: LockId, side: Side, mode: Mode) {
    let (lock, kind) = part(cx, lock);
    match kind {
        LockKind::BtrfsTree2 => btrfs_tree_2::convert(cx, lock, mode).await,
        LockKind::BtrfsTree3(_) => btrfs_tree_3::convert(cx, lock, side, mode).await,
        _ => {}
    }
}

#[inline(always)]
fn try_fast(cx: &Context, kind: LockKind, lock: LockId, side: Side) -> bool {
    match kind {
        LockKind::Spin(_) => spinlock::try_lock(cx, lock),
        LockKind::Rwlock(_) => rwlock::lock_fast(cx, lock, side),
        LockKind::CountedMutex(_) => mutex_counted::lock_fast(cx, lock),
        LockKind::Semaphore | LockKind::CountingSemaphore => semaphore::try_down(&mut cx.state(), cx.id, lock),
        LockKind::Cohorts(_) => cohort::try_lock(cx, lock),
        LockKind::Paravirt => paravirt::try_lock(cx, lock),
        LockKind::Seqlock => seqlock::try_lock(cx, lock, side),
        LockKind::Rcu => rcu::try_lock(cx, lock, side),
        LockKind::Mutex => mutex::lock_fast(cx, lock),
        LockKind::PthreadMutex => futex::try_lock(cx, lock),
        LockKind::Rwsem(_) => rwsem::lock_fast(cx, lock, side),
        LockKind::PercpuRwsem => percpu_rwsem::try_lock(cx, lock, side),
        LockKind::Removed => cx.state().pass(cx.id, lock),
        LockKind::BtrfsTree2 => btrfs_tree_2::try_lock(cx, lock),
        LockKind::BtrfsTree3(_) => btrfs_tree_3::lock_fast(cx, lock, side),
    }
}

/// Before an attempt at `lock`. Who has to fetch its line pays first, so that nobody waits for a holder that is not there
/// yet. Who has the line to itself was the last to use the lock and goes on in debt: nobody is about to ask for it, and
/// that saves an event. Returns what is still owed.
async fn pay_first(cx: &Context, lock: LockId) -> Time {
    let owed = cx.debt();
    if owed == 0 || !cx.state().fetches(cx.id, lock) {
        return owed;
    }
    cx.run(Account::System, 0).await;
    0
}

/// The hold of a lock that was just taken in debt begins when that is paid.
fn took(cx: &Context, lock: LockId, owed: Time) {
    if owed > 0 {
        cx.state().begins_later(lock, cx.id, owed);
    }
}

/// The lock that this task takes where `lock` is asked for, and its type: `lock` itself unless it was split.
pub(super) fn part(cx: &Context, lock: LockId) -> (LockId, LockKind) {
    let s = cx.state();
    let l = &s.locks[lock as usize];
    (if l.parts.is_empty() { lock } else { l.part_of(cx.id) }, l.kind)
}
