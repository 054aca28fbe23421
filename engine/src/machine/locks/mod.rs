//! The locks, one file a family: executable algorithms over cache lines, wait queues and the scheduler.
//!
//! How to add a lock: write a [`Family`](family::Family) in a file of its own, its state and its algorithm in terms of
//! [`Context`](super::context::Context)'s primitives (touch the line, pay, park, spin, wake), and give it a line in the table of
//! [`lock_kind`](super::lock_kind). Spinlocks and semaphores have no programs: the machine takes tasks through them (`inside`).

mod acquire;
pub mod bit_lock;
pub mod btrfs_tree_2;
pub mod btrfs_tree_3;
pub mod cohort;
pub mod completion;
pub mod family;
pub mod futex;
pub mod hqlock;
mod inner;
mod inside;
pub mod mutex;
pub mod mutex_counted;
pub mod osq;
pub mod paravirt;
pub mod percpu_rwsem;
pub(in crate::machine) mod pool;
pub mod queued;
pub mod rcu;
pub(super) mod release;
pub mod removed;
pub mod rwlock;
pub mod rwsem;
pub mod semaphore;
pub mod seqlock;
pub mod spinlock;
pub mod waitqueue;

use super::context::Context;
use super::lock::LockKind;
use crate::waist::time::Time;
use crate::waist::{Account, LockId, Machine, Mode, Side};
pub(super) use acquire::acquire;
use inner::{lock_to_wait, spin_lock};
pub use inside::Inside;
pub(super) use release::release;

/// Acquires `lock` if that needs no waiting.
pub(super) fn try_acquire(cx: &Context, lock: LockId, side: Side) -> bool {
    let (lock, kind) = part(cx, lock);
    let owed = {
        let mut s = cx.state();
        s.forget_queues(cx.id);
        s.owes_before_lock(cx.id)
    };
    let taken = kind.try_lock(cx, lock, side);
    if taken {
        took(cx, lock, owed);
    }
    taken
}

/// Acquires `lock` if that needs no sleep.
pub(super) async fn try_acquire_spinning(cx: &Context, lock: LockId, side: Side) -> bool {
    let (part, kind) = part(cx, lock);
    pay_first(cx, part).await;
    if kind.has_modes() {
        kind.try_lock_spinning(cx, part, side).await
    } else {
        try_acquire(cx, lock, side)
    }
}

/// Changes the mode in which this task holds `lock`, if that has modes.
pub(super) async fn convert(cx: &Context, lock: LockId, side: Side, mode: Mode) {
    let (lock, kind) = part(cx, lock);
    kind.convert(cx, lock, side, mode).await;
}

/// Before an attempt at `lock`. Who has to fetch its line pays first, so that nobody waits for a holder that is not there
/// yet. Who has the line to itself was the last to use the lock and goes on in debt: nobody is about to ask for it, and
/// that saves an event. Returns what is still owed.
async fn pay_first(cx: &Context, lock: LockId) -> Time {
    let owed = cx.state().owes_before_lock(cx.id);
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
