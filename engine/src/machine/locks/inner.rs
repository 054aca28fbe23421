//! The raw spinlock inside another lock. Both futures are written by hand, as every contended sleeping lock comes here.

use super::queued::{wait_qspinlock, WaitQspinlock};
use super::spinlock::{self, body};
use super::Wait;
use crate::machine::context::Context;
use crate::machine::lock::{LockId, Side};
use crate::machine::lock_code::LockCode;
use crate::machine::state::State;
use crate::machine::task::TaskId;
use crate::machine::time::Time;
use std::future::Future;
use std::pin::Pin;
use std::task::{ready, Context as PollContext, Poll};

/// Takes a raw spinlock inside another lock.
#[inline]
pub(super) fn spin_lock(cx: &Context, inner: LockId) -> SpinLock<'_> {
    SpinLock { cx, inner, stage: Stage::Asks }
}

/// See [`spin_lock`].
pub(super) struct SpinLock<'a> {
    cx: &'a Context,
    inner: LockId,
    stage: Stage<'a>,
}

/// What the task does.
enum Stage<'a> {
    Asks,
    /// It pays what it owed.
    Pays,
    /// It waits in the queue, or in one of a spinlock that no kernel of today has.
    Queues(Wait, WaitQspinlock<'a>),
    Waits(Wait, Pin<Box<dyn Future<Output = bool> + 'a>>),
}

impl Future for SpinLock<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, poll: &mut PollContext<'_>) -> Poll<()> {
        let (me, inner) = (self.cx.id, self.inner);
        let attempt = match self.stage {
            Stage::Asks => Attempt::at(&mut self.cx.state(), me, inner),
            Stage::Pays => Attempt::without_debt(&mut self.cx.state(), me, inner),
            Stage::Queues(..) | Stage::Waits(..) => Attempt::Waits,
        };
        match attempt {
            Attempt::Taken => Poll::Ready(()),
            Attempt::Pays => {
                self.stage = Stage::Pays;
                Poll::Pending
            }
            Attempt::Waits => self.wait(poll),
        }
    }
}

impl SpinLock<'_> {
    #[cold]
    fn wait(&mut self, poll: &mut PollContext<'_>) -> Poll<()> {
        let (cx, inner) = (self.cx, self.inner);
        if matches!(self.stage, Stage::Asks | Stage::Pays) {
            let wait = Wait::begin(cx, inner, Side::Write);
            let policy = body(&mut cx.state(), inner).policy;
            self.stage = match policy.queues() {
                true => Stage::Queues(wait, wait_qspinlock(cx, inner)),
                false => Stage::Waits(wait, Box::pin(spinlock::wait_older(cx, policy, inner))),
            };
        }
        let wait = match &mut self.stage {
            Stage::Asks | Stage::Pays => unreachable!("it has begun to wait"),
            Stage::Queues(wait, queue) => {
                ready!(Pin::new(queue).poll(poll));
                wait
            }
            Stage::Waits(wait, older) => {
                ready!(older.as_mut().poll(poll));
                wait
            }
        };
        wait.end(cx, false);
        Poll::Ready(())
    }
}

/// What came of asking for a raw spinlock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// The task pays what it owes first, see [`pay_first`], and asks again.
    Pays,
    /// It has the lock.
    Taken,
    /// It has to wait.
    Waits,
}

impl Attempt {
    /// The task `me` asks for `inner`.
    #[inline]
    fn at(s: &mut State, me: TaskId, inner: LockId) -> Self {
        let owed = s.tasks[me as usize].segment.total();
        if owed == 0 {
            return Self::without_debt(s, me, inner);
        }
        if s.fetches(me, inner) {
            return if s.pay(me) { Self::without_debt(s, me, inner) } else { Self::Pays };
        }
        let attempt = Self::without_debt(s, me, inner);
        if attempt == Self::Taken {
            s.begins_later(inner, me, owed);
        }
        attempt
    }

    /// The same when everything is paid.
    #[inline]
    fn without_debt(s: &mut State, me: TaskId, inner: LockId) -> Self {
        if spinlock::try_take(s, me, inner) {
            Self::Taken
        } else {
            Self::Waits
        }
    }
}

/// Takes a wait lock to queue oneself or to look again, and runs the `code` under it. The word's own way to this CPU is paid too,
/// so that nobody sees the task in the queue, or gives it the lock there, before it has come.
#[inline]
pub(super) fn lock_to_wait(cx: &Context, inner: LockId, code: fn(&LockCode) -> Time) -> LockToWait<'_> {
    LockToWait { lock: spin_lock(cx, inner), code: Some(code) }
}

/// See [`lock_to_wait`].
pub(super) struct LockToWait<'a> {
    lock: SpinLock<'a>,
    /// What is to be run; nothing once it runs.
    code: Option<fn(&LockCode) -> Time>,
}

impl Future for LockToWait<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, poll: &mut PollContext<'_>) -> Poll<()> {
        let Some(code) = self.code else { return Poll::Ready(()) };
        ready!(Pin::new(&mut self.lock).poll(poll));
        self.code = None;
        let cx = self.lock.cx;
        let mut s = cx.state();
        s.runs(cx.id, code);
        if s.pay(cx.id) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
