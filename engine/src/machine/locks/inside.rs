//! What the machine takes a task through without its program: spinlocks and semaphores, which every contended lock comes to. The
//! executor goes on with it event by event, and with the program when it is through.

use super::spinlock;
use super::{queued, semaphore};
use crate::machine::lock::code::LockCode;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{LockId, Side, TaskId};

/// How far a task is through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inside {
    spinlock: Spinlock,
    then: Then,
}

/// The spinlock that it takes.
#[derive(Clone, Copy, Debug, Default)]
enum Spinlock {
    /// None, or it has it.
    #[default]
    Taken,
    /// It pays what it owes before it asks.
    Pays(LockId),
    /// It waits.
    Waits(LockId, queued::Stage),
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Then {
    /// Its program.
    #[default]
    Program,
    /// Code under the spinlock.
    Runs(fn(&LockCode) -> Time),
    /// The next stage of `down`.
    Down(LockId, semaphore::Stage),
    /// The rest of `up`.
    Up(LockId),
}

impl State {
    /// Goes on with what `me` is inside of. Returns whether its program goes on.
    #[inline(always)]
    pub(in crate::machine) fn goes_on(&mut self, me: TaskId) -> bool {
        let inside = self.tasks[me as usize].inside;
        let taken = match inside.spinlock {
            Spinlock::Taken => true,
            Spinlock::Pays(lock) => self.goes_on_paid(me, lock),
            Spinlock::Waits(lock, stage) => self.waits_on(me, lock, stage),
        };
        taken && (matches!(inside.then, Then::Program) || self.goes_on_with_spinlock(me))
    }

    fn goes_on_paid(&mut self, me: TaskId, lock: LockId) -> bool {
        self.tasks[me as usize].inside.spinlock = Spinlock::Taken;
        self.take_without_debt(me, lock)
    }

    #[inline(never)]
    fn goes_on_with_spinlock(&mut self, me: TaskId) -> bool {
        match std::mem::take(&mut self.tasks[me as usize].inside.then) {
            Then::Program => true,
            Then::Runs(code) => {
                self.runs(me, code);
                self.pay(me)
            }
            Then::Down(lock, stage) => semaphore::goes_down(self, me, lock, stage),
            Then::Up(lock) => self.goes_up_later(me, lock),
        }
    }

    #[inline(never)]
    fn goes_up_later(&mut self, me: TaskId, lock: LockId) -> bool {
        semaphore::goes_up(self, me, lock)
    }

    /// `then` comes next for `me`, as soon as it has the spinlock that it takes. Returns false: its program does not go on.
    pub(super) fn goes_on_later(&mut self, me: TaskId, then: Then) -> bool {
        self.tasks[me as usize].inside.then = then;
        false
    }

    /// What `me` owes before it asks for a lock: that its stores are done, too.
    #[inline(always)]
    pub(super) fn owes_before_lock(&mut self, me: TaskId) -> Time {
        let now = self.now;
        let task = &mut self.tasks[me as usize];
        task.drain(now);
        task.segment.total()
    }

    /// `me` takes a spinlock. Returns whether it has it at once. Who has to fetch the line pays first, see [`super::pay_first`].
    #[inline(always)]
    pub(in crate::machine) fn take_spinlock(&mut self, me: TaskId, lock: LockId) -> bool {
        let owed = self.owes_before_lock(me);
        if owed == 0 {
            return self.take_without_debt(me, lock);
        }
        if self.fetches(me, lock) {
            if self.pay(me) {
                return self.take_without_debt(me, lock);
            }
            self.tasks[me as usize].inside.spinlock = Spinlock::Pays(lock);
            return false;
        }
        self.forget_queues(me);
        if !spinlock::try_take(self, me, lock) {
            return self.wait_for_spinlock(me, lock);
        }
        self.begins_later(lock, me, owed);
        self.settle(me)
    }

    /// The same and then runs `code` with it. The word's own way to this CPU is paid too, so that nobody sees the task in the queue,
    /// or gives it the lock there, before it has come.
    #[inline]
    pub(super) fn take_wait_lock(&mut self, me: TaskId, lock: LockId, code: fn(&LockCode) -> Time) -> bool {
        if self.take_spinlock(me, lock) {
            self.runs(me, code);
            return self.pay(me);
        }
        self.goes_on_later(me, Then::Runs(code))
    }

    #[inline]
    fn take_without_debt(&mut self, me: TaskId, lock: LockId) -> bool {
        self.forget_queues(me);
        if spinlock::try_take(self, me, lock) {
            self.settle(me)
        } else {
            self.wait_for_spinlock(me, lock)
        }
    }

    /// `me`, which could not take a spinlock, waits for it. Returns whether it has it at once.
    pub(super) fn wait_for_spinlock(&mut self, me: TaskId, lock: LockId) -> bool {
        self.begin_wait(me, lock, Side::Write);
        let waits = queued::arrive(self, me, lock);
        self.has_after_wait(me, lock, waits)
    }

    fn waits_on(&mut self, me: TaskId, lock: LockId, stage: queued::Stage) -> bool {
        let waits = queued::wait(self, me, lock, stage);
        self.has_after_wait(me, lock, waits)
    }

    /// `me` waits in this stage for a spinlock, or has it. Returns whether it has.
    #[inline(always)]
    fn has_after_wait(&mut self, me: TaskId, lock: LockId, waits: Option<queued::Stage>) -> bool {
        self.tasks[me as usize].inside.spinlock = match waits {
            Some(stage) => Spinlock::Waits(lock, stage),
            None => Spinlock::Taken,
        };
        if waits.is_none() {
            self.end_wait(me, false);
        }
        waits.is_none()
    }
}
