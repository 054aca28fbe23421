//! A task acquires a lock of any kind. Written by hand, as programs do hardly anything else as often, and all have room for it.

use super::{mutex_counted, rwsem, spinlock, took};
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::spec::Preemption;
use crate::waist::time::Time;
use crate::waist::{LockId, Side, TaskId};
use std::cell::RefMut;
use std::future::Future;
use std::pin::Pin;
use std::task::{ready, Context as PollContext, Poll};

/// Acquires `lock`, waiting by its rules. A lock that only this CPU uses is taken at once and costs no event.
#[inline]
pub(in crate::machine) fn acquire(cx: &Context, lock: LockId, side: Side) -> Acquire<'_> {
    Acquire { cx, lock, side, stage: Stage::Asks, runs: None }
}

/// See [`acquire`].
pub(in crate::machine) struct Acquire<'a> {
    cx: &'a Context,
    lock: LockId,
    side: Side,
    stage: Stage,
    /// What it runs through to give way, or to wait: whether it has slept.
    runs: Option<Pin<Box<dyn Future<Output = bool> + 'a>>>,
}

/// What the task does.
#[derive(Clone, Copy)]
enum Stage {
    Asks,
    /// It gives way to who should have its CPU.
    GivesWay,
    /// The machine takes it through, see [`super::Inside`].
    Inside,
    /// It pays what it owes before it tries, see [`super::pay_first`].
    Pays,
    /// It has the lock and pays, see [`Acquire::settle`].
    Settles,
    /// It has looked at the owner word of an rwsem, and pays for that.
    LooksAtOwner,
    Waits,
}

impl Future for Acquire<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, poll: &mut PollContext<'_>) -> Poll<()> {
        match self.stage {
            Stage::Asks => self.ask(poll),
            Stage::Inside => Poll::Ready(()),
            Stage::Pays => self.attempt(poll, 0),
            Stage::Settles => self.settled(),
            Stage::LooksAtOwner => self.looked_at_owner(),
            Stage::GivesWay | Stage::Waits => self.run_on(poll),
        }
    }
}

impl<'a> Acquire<'a> {
    /// Of a split lock it asks for its own part.
    #[inline]
    fn ask(&mut self, poll: &mut PollContext<'_>) -> Poll<()> {
        let (cx, me) = (self.cx, self.cx.id);
        let s = cx.state();
        let l = &s.locks[self.lock as usize];
        if !l.parts.is_empty() {
            self.lock = l.part_of(me);
        }
        if !(l.kind.may_sleep() && s.gives_way(me)) {
            return self.begin(s, poll);
        }
        drop(s);
        let gives_way = async {
            cx.reschedule().await;
            false
        };
        self.run(Stage::GivesWay, Box::pin(gives_way), poll)
    }

    #[inline]
    fn begin(&mut self, mut s: RefMut<'a, State>, poll: &mut PollContext<'_>) -> Poll<()> {
        let (me, lock) = (self.cx.id, self.lock);
        let has = match s.locks[lock as usize].kind {
            LockKind::Spin(_) => {
                spinlock::checked_before(&mut s, me, lock);
                s.take_spinlock(me, lock)
            }
            LockKind::Semaphore(_) => s.down(me, lock),
            kind => {
                if matches!(kind, LockKind::Paravirt(())) {
                    spinlock::checked_before(&mut s, me, lock);
                }
                drop(s);
                return self.pay_first(poll);
            }
        };
        if has {
            return Poll::Ready(());
        }
        self.stage = Stage::Inside;
        Poll::Pending
    }

    fn pay_first(&mut self, poll: &mut PollContext<'_>) -> Poll<()> {
        let (me, lock) = (self.cx.id, self.lock);
        let mut s = self.cx.state();
        let owed = s.owes_before_lock(me);
        let pays = owed > 0 && s.fetches(me, lock);
        if pays && !s.pay(me) {
            self.stage = Stage::Pays;
            return Poll::Pending;
        }
        drop(s);
        self.attempt(poll, if pays { 0 } else { owed })
    }

    /// It tries, and waits if that is in vain.
    fn attempt(&mut self, poll: &mut PollContext<'_>, owed: Time) -> Poll<()> {
        let (cx, lock, side) = (self.cx, self.lock, self.side);
        let kind = {
            let mut s = cx.state();
            s.forget_queues(cx.id);
            s.locks[lock as usize].kind
        };
        if kind.try_fast(cx, lock, side) {
            took(cx, lock, owed);
            return self.settle();
        }
        cx.begin_wait(lock, side);
        self.run(Stage::Waits, Box::pin(kind.wait(cx, lock, side)), poll)
    }

    /// It has the lock. Where it queued for the line, those who come until the line is there find the lock held.
    #[inline]
    fn settle(&mut self) -> Poll<()> {
        let mut s = self.cx.state();
        if !s.has_queued(self.cx.id) {
            return Poll::Ready(());
        }
        if !s.pay(self.cx.id) {
            self.stage = Stage::Settles;
            return Poll::Pending;
        }
        drop(s);
        self.settled()
    }

    #[inline(never)]
    fn settled(&mut self) -> Poll<()> {
        let (cx, me) = (self.cx, self.cx.id);
        if rwsem::looks_at_owner(cx, self.lock, self.side) && !cx.state().settle(me) {
            self.stage = Stage::LooksAtOwner;
            return Poll::Pending;
        }
        self.looked_at_owner()
    }

    fn looked_at_owner(&self) -> Poll<()> {
        rwsem::wrote_owner(self.cx, self.lock, self.side);
        mutex_counted::wrote_owner(self.cx, self.lock);
        Poll::Ready(())
    }

    fn run(
        &mut self,
        stage: Stage,
        runs: Pin<Box<dyn Future<Output = bool> + 'a>>,
        poll: &mut PollContext<'_>,
    ) -> Poll<()> {
        (self.stage, self.runs) = (stage, Some(runs));
        self.run_on(poll)
    }

    #[inline(never)]
    fn run_on(&mut self, poll: &mut PollContext<'_>) -> Poll<()> {
        let Some(runs) = &mut self.runs else { unreachable!("it has begun") };
        let slept = ready!(runs.as_mut().poll(poll));
        self.runs = None;
        if matches!(self.stage, Stage::GivesWay) {
            return self.begin(self.cx.state(), poll);
        }
        self.cx.end_wait(slept);
        Poll::Ready(())
    }
}

impl State {
    /// With voluntary preemption a task gives way where it may sleep (`might_sleep()`), unless it holds a spinlock (a btrfs tree lock
    /// may be asked for while another one is held spinning).
    #[inline]
    pub(in crate::machine) fn gives_way(&self, me: TaskId) -> bool {
        let task = &self.tasks[me as usize];
        self.kernel.preemption == Preemption::Voluntary
            && task.preempt_off == 0
            && self.cpus[task.cpu as usize].need_resched
    }
}
