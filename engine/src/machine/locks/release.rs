//! A task releases a lock of any kind. Written by hand for the same reason as acquisitions are.

use super::rwsem::wake;
use super::{
    btrfs_tree_2, btrfs_tree_3, cohort, futex, mutex, mutex_counted, paravirt, part, percpu_rwsem, rcu, rwlock, rwsem,
    seqlock, spinlock,
};
use crate::machine::context::Context;
use crate::machine::lock::{LockId, LockKind, Side};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as PollContext, Poll};

/// Releases `lock`.
#[inline]
pub(in crate::machine) fn release(cx: &Context, lock: LockId, side: Side) -> Release<'_> {
    Release { cx, lock, side, begun: false, runs: None }
}

/// See [`release`].
pub(in crate::machine) struct Release<'a> {
    cx: &'a Context,
    lock: LockId,
    side: Side,
    begun: bool,
    /// What it runs through where that is not all, mostly because somebody waits.
    runs: Option<Running<'a>>,
}

type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

impl Future for Release<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, poll: &mut PollContext<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.begun, true) {
            return self.begin(poll);
        }
        self.run_on(poll)
    }
}

impl<'a> Release<'a> {
    #[inline]
    fn begin(&mut self, poll: &mut PollContext<'_>) -> Poll<()> {
        let (cx, side) = (self.cx, self.side);
        let (lock, kind) = part(cx, self.lock);
        let over = match kind {
            LockKind::Spin(_) => {
                spinlock::unlock(cx, lock);
                true
            }
            LockKind::Semaphore | LockKind::CountingSemaphore => cx.state().up(cx.id, lock),
            _ => {
                self.runs = begin_other(cx, kind, lock, side);
                return self.run_on(poll);
            }
        };
        if over {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn run_on(&mut self, poll: &mut PollContext<'_>) -> Poll<()> {
        self.runs.as_mut().map_or(Poll::Ready(()), |runs| runs.as_mut().poll(poll))
    }
}

/// Begins to release a lock that the machine takes nobody through. Returns the rest, if that is not all.
fn begin_other(cx: &Context, kind: LockKind, lock: LockId, side: Side) -> Option<Running<'_>> {
    match kind {
        LockKind::Spin(_) | LockKind::Semaphore | LockKind::CountingSemaphore => unreachable!("the machine does"),
        LockKind::Rwlock(_) => rwlock::unlock(cx, lock, side),
        LockKind::Cohorts(_) => cohort::unlock(cx, lock),
        LockKind::Paravirt => paravirt::unlock(cx, lock),
        LockKind::PercpuRwsem => percpu_rwsem::unlock(cx, lock, side),
        LockKind::Mutex if mutex::unlock_fast(&mut cx.state(), cx.id, lock) => {
            return Some(Box::pin(mutex::unlock_slow(cx, lock)));
        }
        LockKind::CountedMutex(_) if mutex_counted::unlock_fast(&mut cx.state(), cx.id, lock) => {
            return Some(Box::pin(mutex_counted::unlock_slow(cx, lock)));
        }
        LockKind::Rwsem(_) if rwsem::up(&mut cx.state(), cx.id, lock, side) => {
            return Some(Box::pin(wake::next(cx, lock)));
        }
        LockKind::PthreadMutex if futex::unlock_fast(&mut cx.state(), cx.id, lock) => {
            return Some(Box::pin(futex::futex_wake(cx, lock)));
        }
        LockKind::Mutex | LockKind::CountedMutex(_) | LockKind::Rwsem(_) | LockKind::PthreadMutex => {}
        LockKind::Removed => {}
        LockKind::Seqlock => return Some(Box::pin(seqlock::unlock(cx, lock, side))),
        LockKind::Rcu => return Some(Box::pin(rcu::unlock(cx, lock, side))),
        LockKind::BtrfsTree2 => return Some(Box::pin(btrfs_tree_2::unlock(cx, lock))),
        LockKind::BtrfsTree3(_) => return Some(Box::pin(btrfs_tree_3::unlock(cx, lock, side))),
    }
    None
}
