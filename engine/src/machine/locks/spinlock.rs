//! Spinlocks whose waiters all poll the lock word, and what these share with the queued ones (`queued.rs`). Holders and
//! spinners run with preemption off.
//!
//! * *test-and-set* (x86 before 2.6.25; in guests without paravirtual locks still, `virt_spin_lock`): every waiter polls the
//!   word; after a release all refetch it, one after the other in random order, and the first to come takes it. No queue, no
//!   fairness.
//! * *ticket* (2.6.25 to 4.1): strict FIFO, but every waiter polls the word: after a release all k refetch it one
//!   after the other in random order, and the next in line is on average k/2 refetches away.

use super::family::Family;
use super::hqlock::Queues;
use super::queued::{self, Sockets};
use super::release::Running;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::waist::{Access, Account, LockId, Machine, Side, TaskId};
use std::collections::VecDeque;

/// Which spinlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // described above, in `queued.rs` and `hqlock.rs`
pub enum Policy {
    TestAndSet,
    Ticket,
    Mcs,
    Queued,
    Cna,
    Hq,
}

impl Policy {
    /// Whether it is a qspinlock or one of its kind.
    #[inline]
    pub(super) fn queues(self) -> bool {
        matches!(self, Self::Queued | Self::Cna | Self::Hq)
    }
}

/// State of a spinlock. The holder is kept by the common part.
#[derive(Debug)]
pub struct Spinlock {
    pub(super) policy: Policy,
    /// Who waits, in order of arrival.
    pub(super) waiters: VecDeque<TaskId>,
    /// qspinlock: who waits beside the queue and polls the word.
    pub(super) pending: Option<TaskId>,
    /// qspinlock: who polls the word until that one has taken the lock.
    pub(super) watchers: Option<Box<Watchers>>,
    /// qspinlock: the head of the queue polls the word.
    pub(super) head_polls: bool,
    /// CNA: what it knows of sockets.
    pub(super) sockets: Option<Box<Sockets>>,
    /// hqlock: its queues by socket.
    pub(super) queues: Option<Box<Queues>>,
}

/// In the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Watchers(pub(super) Vec<TaskId>);

impl Family for Spinlock {
    type Variant = Policy;

    const PERF_NAME: &'static str = "spinlock";
    const MAY_SLEEP: bool = false;

    fn new(policy: Policy) -> Self {
        let sockets = (policy == Policy::Cna).then(Box::default);
        let queues = (policy == Policy::Hq).then(|| Box::new(Queues::new()));
        Self { policy, waiters: VecDeque::new(), pending: None, watchers: None, head_polls: false, sockets, queues }
    }

    fn inner(_policy: Policy) -> Option<(&'static str, LockKind)> {
        None
    }

    #[inline]
    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        try_lock(cx, lock)
    }

    async fn wait(_cx: &Context, _lock: LockId, _side: Side) -> bool {
        unreachable!("the machine takes tasks through it")
    }

    fn release(_cx: &Context, _lock: LockId, _side: Side) -> Option<Running<'_>> {
        unreachable!("the machine takes tasks through it")
    }
}

#[inline]
pub(super) fn body(s: &mut State, lock: LockId) -> &mut Spinlock {
    s.body(lock)
}

/// One atomic attempt: fails if the lock is held or, where there is a queue, somebody is in it.
#[inline]
pub(in crate::machine) fn try_lock(cx: &Context, lock: LockId) -> bool {
    try_take(&mut cx.state(), cx.id, lock)
}

/// The same of the running task `me`.
#[inline(always)]
pub(super) fn try_take(s: &mut State, me: TaskId, lock: LockId) -> bool {
    let mut at = s.at_lock(me, lock);
    at.touch(Access::Atomic);
    let held = at.lock.holder.is_some();
    let b = at.spinlock();
    let queued = b.policy != Policy::TestAndSet && (b.pending.is_some() || !b.waiters.is_empty());
    if held || queued {
        return false;
    }
    at.task.preempt_off += 1;
    let taken = at.take(me);
    s.has_taken(lock, me, taken);
    true
}

/// `me` looks at a spinlock that no kernel of today has, and takes it if it may.
#[cold]
pub(super) fn take_if_my_turn(s: &mut State, me: TaskId, lock: LockId) -> bool {
    if s.locks[lock as usize].holder.is_some() {
        return false;
    }
    let b = body(s, lock);
    let (policy, next) = (b.policy, b.waiters.front() == Some(&me));
    if policy != Policy::TestAndSet && !next {
        return false;
    }
    if next {
        b.waiters.pop_front();
    } else {
        b.waiters.retain(|&w| w != me);
    }
    if policy == Policy::TestAndSet {
        s.touch_lock(me, lock, Access::Atomic); // whose ticket is up, or to whom the lock is passed, has read that and writes nothing
    }
    s.begin_hold(lock, me);
    true
}

/// Whether owners are checked (`CONFIG_DEBUG_SPINLOCK`). Left out: those of wait locks, and what the checks take beside the line.
#[inline(always)]
pub(super) fn is_checked(s: &State) -> bool {
    s.kernel.rules.debug_spinlock
}

/// `debug_spin_lock_before`: who asks for the lock reads its owner first. That it is stored then is done while the line is there.
#[inline(always)]
pub(super) fn checked_before(s: &mut State, me: TaskId, lock: LockId) {
    if is_checked(s) {
        s.touch_lock(me, lock, Access::Read);
    }
}

/// `debug_spin_unlock` and the release: the owner is read, which others' attempts have taken away, before both are stored.
pub(super) async fn unlock_checked(cx: &Context, lock: LockId) {
    cx.state().touch_lock(cx.id, lock, Access::Read);
    cx.run(Account::System, 0).await;
    unlock(cx, lock);
}

/// Releases the lock: one store, which the pollers see when their refetch is served.
#[inline(always)]
pub(in crate::machine) fn unlock(cx: &Context, lock: LockId) {
    release(&mut cx.state(), cx.id, lock);
}

/// The same of the running task `me`.
#[inline(always)]
pub(super) fn release(s: &mut State, me: TaskId, lock: LockId) {
    let chained = s.chains.is_waited_for(lock);
    let mut at = s.at_lock(me, lock);
    let b = at.spinlock();
    if !b.policy.queues() {
        return release_older(s, me, lock);
    }
    let pollers = queued::pollers(b);
    at.touch(Access::Store);
    at.task.preempt_off -= 1;
    let given_back = !chained && at.give_back(me);
    s.has_given_back(lock, me, given_back);
    for poller in pollers {
        s.show(me, lock, poller);
    }
}

#[cold]
fn release_older(s: &mut State, me: TaskId, lock: LockId) {
    let policy = body(s, lock).policy;
    if policy == Policy::Mcs {
        return queued::unlock_mcs(s, me, lock);
    }
    s.touch_lock(me, lock, Access::Store);
    s.end_hold(lock);
    s.preempt_enable(me);
    s.show_in_random_order(me, lock, |s, order| order.extend(&body(s, lock).waiters));
}
