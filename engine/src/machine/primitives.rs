//! The few primitives that lock algorithms are written in: pay, spin, park, wake.

use super::chains::Reason;
use super::context::Context;
use super::lock::code::LockCode;
use super::state::State;
use crate::waist::time::Time;
use crate::waist::{LockId, Side, TaskId};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as PollContext, Poll};

/// What ends a spin besides a check asked for by the lock itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinUntil {
    /// This task leaves its CPU.
    pub owner_off_cpu: Option<TaskId>,
    /// The scheduler wants the CPU.
    pub need_resched: bool,
    /// This moment.
    pub deadline: Option<Time>,
}

/// A future that arranges something on its first poll and is done on its second: the executor polls a task again only
/// when what it asked for has come.
pub(super) struct Suspend<F>(pub(super) Option<F>);

impl<F: FnOnce() + Unpin> Future for Suspend<F> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        match self.0.take() {
            Some(arrange) => {
                arrange();
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

/// The same for what may be over at once, which `begin` says: then it is done on its first poll.
pub(super) struct GoThrough<'a, B> {
    cx: &'a Context,
    begin: Option<B>,
}

impl<B: FnOnce(&mut State, TaskId) -> bool + Unpin> Future for GoThrough<'_, B> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        let over = self.begin.take().is_none_or(|begin| begin(&mut self.cx.state(), self.cx.id));
        if over {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// A sleep until a wake-up, see [`Context::park_here`]. Written by hand, as every contended sleeping lock comes here.
pub(super) struct Park<'a, W> {
    cx: &'a Context,
    /// What it is for; nothing once it sleeps.
    why: Option<W>,
    paid: bool,
}

impl<W: FnOnce(&mut State) -> Reason + Unpin> Future for Park<'_, W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        let (me, cx) = (self.cx.id, self.cx);
        let mut s = cx.state();
        if self.why.is_some() && !std::mem::replace(&mut self.paid, true) && !s.pay(me) {
            return Poll::Pending;
        }
        let task = &mut s.tasks[me as usize];
        let woken = std::mem::take(&mut task.woken);
        match self.why.take() {
            Some(why) if !woken => {
                s.sleeps_for_lock(me);
                let reason = why(&mut s);
                s.sleep(me, reason);
                Poll::Pending
            }
            Some(_) => Poll::Ready(()),
            None => {
                task.sleeps_for = None;
                Poll::Ready(())
            }
        }
    }
}

impl Context {
    /// Spends the CPU time that the task owes.
    pub(super) fn pay(&self) -> impl Future<Output = ()> + '_ {
        self.go_through(|s, me| s.pay(me))
    }

    /// Lets the machine begin something, and go on with it unless it says that it is over at once.
    #[inline]
    pub(super) fn go_through<B: FnOnce(&mut State, TaskId) -> bool + Unpin>(&self, begin: B) -> GoThrough<'_, B> {
        GoThrough { cx: self, begin: Some(begin) }
    }

    /// The task has failed to take `lock` at once, and waits for it.
    pub(super) fn begin_wait(&self, lock: LockId, side: Side) {
        self.state().begin_wait(self.id, lock, side);
    }

    /// It has the lock that it waited for last.
    pub(super) fn end_wait(&self, slept: bool) {
        self.state().end_wait(self.id, slept);
    }

    /// The task owes the time of lock code.
    pub(super) fn runs(&self, code: fn(&LockCode) -> Time) {
        self.state().runs(self.id, code);
    }

    /// Lets the executor go on with the stretch of CPU time that has just been started.
    pub(super) async fn until_done(&self) {
        Suspend(Some(|| ())).await;
    }

    /// Stays on the CPU until a lock asks for a look ([`State::spin_check`]) or `until` comes, and at least until what
    /// the task owes is paid.
    pub(super) async fn spin(&self, until: SpinUntil) {
        Suspend(Some(|| {
            let mut s = self.state();
            let (now, id) = (s.now, self.id);
            s.begin_spin(id, until.need_resched);
            if let Some(owner) = until.owner_off_cpu {
                s.tasks[owner as usize].others().watchers.push(id);
            }
            if let Some(deadline) = until.deadline {
                s.spin_check(id, deadline.max(now));
                s.tasks[id as usize].look_due = false;
            }
        }))
        .await;
        if let Some(owner) = until.owner_off_cpu {
            let mut s = self.state();
            s.tasks[owner as usize].others().watchers.retain(|&w| w != self.id);
        }
    }

    /// Polls the line of `lock`: spins as `spin` does, among those whom [`State::show_pollers`] tells.
    pub(super) async fn poll(&self, lock: LockId, until: SpinUntil) {
        self.state().locks[lock as usize].pollers.push(self.id);
        self.spin(until).await;
        self.state().locks[lock as usize].pollers.retain(|&poller| poller != self.id);
    }

    /// Sleeps until woken. A wake-up that came since the last [`Context::forget_wakeups`] ends it at once.
    pub(super) fn park_here(&self) -> Park<'_, fn(&mut State) -> Reason> {
        self.park_for(|_| Reason::Lock)
    }

    /// The same for what `why` says.
    pub(super) fn park_for<W: FnOnce(&mut State) -> Reason + Unpin>(&self, why: W) -> Park<'_, W> {
        Park { cx: self, why: Some(why), paid: false }
    }

    /// Wake-ups so far were for something else.
    pub(super) fn forget_wakeups(&self) {
        self.state().tasks[self.id as usize].woken = false;
    }

    /// Wakes `task`, which waits for `lock`; this task pays.
    pub(super) fn wake_waiter(&self, lock: LockId, task: TaskId) {
        self.state().wake_waiter(self.id, lock, task, false);
    }

    /// The same where this task has the lines of `task` already ([`State::lines_of_waiter`]).
    pub(super) fn wake_fetched(&self, lock: LockId, task: TaskId) {
        self.state().wake_waiter(self.id, lock, task, true);
    }

    /// Gives way if the scheduler wants the CPU.
    pub(super) async fn reschedule(&self) {
        self.pay().await;
        let next = self.state().wanted_by(self.id);
        if let Some(next) = next {
            Suspend(Some(|| self.state().yield_cpu(self.id, next))).await;
        }
    }

    pub(super) fn preempt_disable(&self) {
        self.state().tasks[self.id as usize].preempt_off += 1;
    }

    pub(super) fn preempt_enable(&self) {
        self.state().preempt_enable(self.id);
    }
}
