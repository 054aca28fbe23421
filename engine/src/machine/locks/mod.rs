//! The locks, one file a family: executable algorithms over cache lines, wait queues and the scheduler.
//!
//! How to add a lock: write its state and its `acquire`/`try_acquire`/`release` in a file of its own, in terms of
//! [`Context`](super::context::Context)'s primitives (touch the line, pay, park, spin, wake); give it a variant of
//! [`Body`](super::lock::Body) and a name in [`LockKind::parse`](super::lock::LockKind::parse); add its three arms here.

pub mod btrfs_tree_2;
pub mod btrfs_tree_3;
pub mod cohort;
pub mod completion;
pub mod futex;
pub mod hqlock;
mod inner;
pub mod mutex;
pub mod mutex_counted;
pub mod osq;
pub mod paravirt;
pub mod percpu_rwsem;
pub mod queued;
pub mod rcu;
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
use super::trace::Object;
use crate::waist::Machine;
use inner::{lock_to_wait, spin_lock};
use spinlock::Policy;

/// Acquires `lock`, waiting by its rules. A lock that only this CPU uses is taken at once and costs no event.
pub(super) async fn acquire(cx: &Context, lock: LockId, side: Side) {
    let Asked { lock, kind, gives_way, mut owed, pays } = ask(cx, lock);
    if gives_way {
        cx.reschedule().await;
        owed = pay_first(cx, lock).await;
    } else if pays {
        cx.run(Account::System, 0).await;
        owed = 0;
    }
    if try_fast(cx, kind, lock, side) {
        return took(cx, lock, owed);
    }
    let wait = Wait::begin(cx, lock, side);
    let slept = match kind {
        LockKind::Spin(Policy::Queued | Policy::Cna | Policy::Hq) => queued::wait_qspinlock(cx, lock).await,
        LockKind::Spin(_) => spinlock::wait(cx, lock).await,
        LockKind::Semaphore | LockKind::CountingSemaphore => semaphore::down_slow(cx, lock).await,
        _ => Box::pin(wait_slow(cx, kind, lock, side)).await,
    };
    wait.end(cx, slept);
}

/// Waits for `lock`, and says whether it slept. Boxed, as it is large and every program has room for what it awaits.
async fn wait_slow(cx: &Context, kind: LockKind, lock: LockId, side: Side) -> bool {
    match kind {
        LockKind::Spin(_) | LockKind::Semaphore | LockKind::CountingSemaphore => {
            unreachable!("their waits need little room")
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

/// Releases `lock`.
pub(super) async fn release(cx: &Context, lock: LockId, side: Side) {
    let (lock, kind) = part(cx, lock);
    match kind {
        LockKind::Spin(_) => spinlock::unlock(cx, lock),
        LockKind::Rwlock(_) => rwlock::unlock(cx, lock, side),
        LockKind::CountedMutex(_) => mutex_counted::unlock(cx, lock).await,
        LockKind::Semaphore | LockKind::CountingSemaphore => semaphore::up(cx, lock).await,
        LockKind::Cohorts(_) => cohort::unlock(cx, lock),
        LockKind::Paravirt => paravirt::unlock(cx, lock),
        LockKind::Mutex => mutex::unlock(cx, lock).await,
        LockKind::Rwsem(_) => match side {
            Side::Read => rwsem::up_read(cx, lock).await,
            Side::Write => rwsem::up_write(cx, lock).await,
        },
        LockKind::PercpuRwsem => percpu_rwsem::unlock(cx, lock, side).await,
        LockKind::Removed => {}
        _ => Box::pin(release_large(cx, kind, lock, side)).await,
    }
}

/// Releases a lock of a kind that few take and whose releases need much room, boxed for that reason.
async fn release_large(cx: &Context, kind: LockKind, lock: LockId, side: Side) {
    match kind {
        LockKind::Seqlock => seqlock::unlock(cx, lock, side).await,
        LockKind::PthreadMutex => futex::unlock(cx, lock).await,
        LockKind::Rcu => rcu::unlock(cx, lock, side).await,
        LockKind::BtrfsTree2 => btrfs_tree_2::unlock(cx, lock).await,
        LockKind::BtrfsTree3(_) => btrfs_tree_3::unlock(cx, lock, side).await,
        _ => unreachable!("their releases need little room"),
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
        LockKind::Semaphore | LockKind::CountingSemaphore => semaphore::try_down(cx, lock),
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

/// What is to be known of a task that asks for a lock.
struct Asked {
    /// The lock or part of one that it takes.
    lock: LockId,
    kind: LockKind,
    /// It gives way first.
    gives_way: bool,
    /// What it owes.
    owed: Time,
    /// It pays that first, see [`pay_first`].
    pays: bool,
}

/// A task asks for `lock`. With voluntary preemption it gives way where the lock may sleep (`might_sleep()`), unless it holds a
/// spinlock (a btrfs tree lock may be asked for while another one is held spinning).
#[inline]
fn ask(cx: &Context, lock: LockId) -> Asked {
    let s = cx.state();
    let l = &s.locks[lock as usize];
    let (lock, kind) = (if l.parts.is_empty() { lock } else { l.part_of(cx.id) }, l.kind);
    let task = &s.tasks[cx.id as usize];
    let owed = task.segment.total();
    let gives_way = s.cpus[task.cpu as usize].need_resched
        && s.kernel.preemption == crate::spec::Preemption::Voluntary
        && kind.may_sleep()
        && task.preempt_off == 0;
    Asked { lock, kind, gives_way, owed, pays: owed > 0 && s.fetches(cx.id, lock) }
}

/// One wait for a lock, from asking to having.
struct Wait {
    lock: LockId,
    side: Side,
    since: Time,
    /// Somebody had the lock when this task came.
    held: bool,
}

impl Wait {
    #[inline(always)]
    fn begin(cx: &Context, lock: LockId, side: Side) -> Self {
        let mut s = cx.state();
        let now = s.now;
        let l = &mut s.locks[lock as usize];
        l.mark_contended();
        let (class, held) = (l.class, l.is_held());
        s.classes[class as usize].begin_wait(now);
        s.begin_wait(cx.id, lock, side);
        s.note("wait", cx.id, Object::Lock(lock));
        Self { lock, side, since: now, held }
    }

    #[inline(always)]
    fn end(&self, cx: &Context, slept: bool) {
        let mut s = cx.state();
        let (now, window) = (s.now, s.window_start);
        let class = s.locks[self.lock as usize].class;
        let task = &s.tasks[cx.id as usize];
        let place = (task.site, task.kind);
        s.end_wait(cx.id, self.lock, self.side);
        s.classes[class as usize].end_wait(now, now - self.since.max(window), slept, self.held, place);
    }
}
