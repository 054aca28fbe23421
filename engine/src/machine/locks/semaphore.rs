//! `struct semaphore`: counting, sleeping, no owner (`kernel/locking/semaphore.c`, the same from 2.6 to 6.18, but for where it wakes). XFS uses
//! one with count 1 as the buffer lock; a *counting semaphore* lets `semaphore_count` tasks hold it at once.
//!
//! No spinning at all; strict FIFO; **direct grant**: `up` with waiters leaves the count at 0 and gives the semaphore to
//! the first of them, which still has to wake. So nobody else can take it meanwhile, not even by trylock: a convoy. Anyone
//! may call `up`, from any context.

use super::family::{Family, InBody};
use super::inside::Then;
use super::release::Running;
use super::spinlock;
use crate::machine::chains::Reason;
use crate::machine::context::Context;
use crate::machine::state::State;
use crate::waist::{Access, LockId, Side, TaskId};
use std::collections::VecDeque;

/// State of a semaphore.
#[derive(Debug)]
pub struct Semaphore {
    count: u64,
    waiters: VecDeque<TaskId>,
    /// It is a counting one: those who were given it and have not run since.
    granted: Option<Vec<TaskId>>,
}

/// How many may hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One task.
    One,
    /// As many as [`Semaphore::allow`] says.
    Many,
}

impl Family for Semaphore {
    type Variant = Count;

    const PERF_NAME: &'static str = "semaphore";
    const SHARES_LINE: bool = true;

    fn new(count: Count) -> Self {
        let granted = (count == Count::Many).then(Vec::new);
        Self { count: 1, waiters: VecDeque::new(), granted }
    }

    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        try_down(&mut cx.state(), cx.id, lock)
    }

    async fn wait(_cx: &Context, _lock: LockId, _side: Side) -> bool {
        unreachable!("the machine takes tasks through it")
    }

    fn release(_cx: &Context, _lock: LockId, _side: Side) -> Option<Running<'_>> {
        unreachable!("the machine takes tasks through it")
    }
}

impl Semaphore {
    /// So many tasks may hold it, if it counts.
    pub fn allow(&mut self, count: u64) {
        if self.granted.is_some() {
            self.count = count;
        }
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Semaphore {
    s.body(lock)
}

/// `down_trylock`, and the fast path of `down`: takes the inner raw spinlock, looks, leaves.
#[inline]
fn try_down(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let mut at = s.at_lock(me, lock);
    at.task.queued_until = 0;
    at.touch(Access::Atomic);
    let free = Semaphore::in_body(&mut at.lock.body).count > 0;
    let takes = free && !s.inner_is_held(lock);
    if takes {
        take(s, me, lock);
    }
    takes
}

/// How far a task is in `down`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// It pays what it owes before it asks.
    Asks,
    /// It takes the inner spinlock to join the queue.
    Locks,
    /// It runs code under that.
    Joins,
    /// It pays what it owes before it sleeps.
    Pays,
    /// It sleeps.
    Sleeps,
}

impl State {
    /// `down`. Returns whether `me` has the semaphore at once.
    #[inline(never)]
    pub(super) fn down(&mut self, me: TaskId, lock: LockId) -> bool {
        let owed = self.owes_before_lock(me);
        let pays = owed > 0 && self.fetches(me, lock);
        if pays && !self.pay(me) {
            return self.goes_on_later(me, Then::Down(lock, Stage::Asks));
        }
        let taken = try_down(self, me, lock);
        if taken && owed > 0 && !pays {
            self.begins_later(lock, me, owed);
        }
        if taken {
            self.settle(me)
        } else {
            down_slow(self, me, lock)
        }
    }

    /// `up`: one more, or the semaphore for the first waiter. Returns whether `me` is through at once.
    #[inline(never)]
    pub(super) fn up(&mut self, me: TaskId, lock: LockId) -> bool {
        let inner = self.inner(lock);
        if self.take_spinlock(me, inner) {
            return goes_up(self, me, lock);
        }
        self.goes_on_later(me, Then::Up(lock))
    }
}

/// `down` when it did not succeed at once.
#[inline(always)]
fn down_slow(s: &mut State, me: TaskId, lock: LockId) -> bool {
    s.begin_wait(me, lock, Side::Write);
    let inner = s.inner(lock);
    if s.take_spinlock(me, inner) {
        return goes_down(s, me, lock, Stage::Locks);
    }
    s.goes_on_later(me, Then::Down(lock, Stage::Locks))
}

/// `me` has paid what it owed and asks.
#[inline(never)]
fn asks(s: &mut State, me: TaskId, lock: LockId) -> bool {
    if try_down(s, me, lock) {
        s.settle(me)
    } else {
        down_slow(s, me, lock)
    }
}

/// `me` goes on with `down`, when what it did at this stage is over. Returns whether it is through.
pub(super) fn goes_down(s: &mut State, me: TaskId, lock: LockId, mut stage: Stage) -> bool {
    loop {
        stage = match stage {
            Stage::Asks => return asks(s, me, lock),
            Stage::Locks => {
                s.runs(me, |code| code.semaphore_queue);
                if !s.pay(me) {
                    return s.goes_on_later(me, Then::Down(lock, Stage::Joins));
                }
                Stage::Joins
            }
            Stage::Joins if joins(s, me, lock) => {
                if !s.pay(me) {
                    return s.goes_on_later(me, Then::Down(lock, Stage::Pays));
                }
                Stage::Pays
            }
            Stage::Joins => {
                s.end_wait(me, false);
                return true;
            }
            Stage::Pays if !std::mem::take(&mut s.tasks[me as usize].woken) => {
                s.sleeps_for_lock(me);
                s.sleep(me, Reason::Lock);
                return s.goes_on_later(me, Then::Down(lock, Stage::Sleeps));
            }
            Stage::Pays | Stage::Sleeps => {
                if wakes_with(s, me, lock) {
                    return true;
                }
                if !s.pay(me) {
                    return s.goes_on_later(me, Then::Down(lock, Stage::Pays));
                }
                Stage::Pays
            }
        }
    }
}

/// `me` is awake. Whether that is because it has the semaphore.
#[inline(always)]
fn wakes_with(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let takes = s.lock_code.semaphore_taken;
    let mut at = s.at_lock(me, lock);
    (at.task.sleeps_for, at.task.woken) = (None, false);
    let granted = match &mut Semaphore::in_body(&mut at.lock.body).granted {
        Some(granted) => {
            let before = granted.len();
            granted.retain(|&task| task != me);
            granted.len() < before
        }
        None => at.take_grant(me),
    };
    if granted {
        at.task.segment.debt += takes;
        s.end_wait(me, true);
    }
    granted
}

/// The free semaphore.
#[inline]
fn take(s: &mut State, me: TaskId, lock: LockId) {
    let mut at = s.at_lock(me, lock);
    let b = Semaphore::in_body(&mut at.lock.body);
    b.count -= 1;
    if b.granted.is_some() {
        s.begin_shared(lock, me);
    } else {
        let taken = at.take(me);
        s.has_taken(lock, me, taken);
    }
}

/// With the inner spinlock, which it gives back, `me` takes the semaphore after all, or joins the queue, which is told.
fn joins(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let inner = s.inner(lock);
    let at = s.at_lock(me, lock);
    let b = Semaphore::in_body(&mut at.lock.body);
    let waits = b.count == 0;
    if waits {
        b.waiters.push_back(me);
        at.task.woken = false;
    } else {
        take(s, me, lock);
    }
    spinlock::release(s, me, inner);
    waits
}

/// `up` from an interrupt: nobody pays for the wake-up but the interrupted CPU.
pub(in crate::machine) fn up_from_interrupt(s: &mut State, lock: LockId) {
    s.end_hold(lock);
    if let Some(next) = hand_over(s, lock) {
        s.wake(next, None);
    }
}

/// The hold has ended: one more, or the semaphore for the first waiter, who is returned.
#[inline]
fn hand_over(s: &mut State, lock: LockId) -> Option<TaskId> {
    let b = body(s, lock);
    let next = b.waiters.pop_front();
    match (next, &mut b.granted) {
        (None, _) => b.count += 1,
        (Some(next), None) => s.grant(lock, next),
        (Some(next), Some(granted)) => {
            granted.push(next);
            s.grant_shared(lock, next);
        }
    }
    next
}

/// `me` goes on with `up` when it has the inner spinlock. Returns that it is through.
#[inline(always)]
pub(super) fn goes_up(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let mut at = s.at_lock(me, lock);
    at.touch(Access::Write);
    let counts = Semaphore::in_body(&mut at.lock.body).granted.is_some();
    if counts {
        s.end_shared(lock, me);
    } else {
        s.end_hold(lock);
    }
    let (next, inner) = (hand_over(s, lock), s.inner(lock));
    if next.is_some() {
        s.runs(me, |code| code.semaphore_mark);
    }
    let inside = !s.kernel.rules.semaphore_wake_queue;
    if let Some(next) = next.filter(|_| inside) {
        s.wake_waiter(me, lock, next, false);
    }
    spinlock::release(s, me, inner);
    if let Some(next) = next.filter(|_| !inside) {
        s.wake_waiter(me, lock, next, false);
    }
    true
}
