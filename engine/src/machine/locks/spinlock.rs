//! Spinlocks: test-and-set, ticket, queued (qspinlock). They differ only in who polls the lock word and who may take
//! it next. Holders and spinners run with preemption off.
//!
//! * *test-and-set* (x86 before 2.6.25): every waiter polls the word; after a release all refetch it, one after the
//!   other in random order, and the first to come takes it. No queue, no fairness.
//! * *ticket* (2.6.25 to 4.1): strict FIFO, but every waiter polls the word: after a release all k refetch it one
//!   after the other in random order, and the next in line is on average k/2 refetches away.
//! * *queued* (x86 from 4.2): strict FIFO; only the next in line polls the word, the others their own lines: one
//!   transfer a hand-over, however many wait. Its promotion of the one after it overlaps with its critical section.

use crate::machine::context::{Context, SpinUntil};
use crate::machine::line::Access;
use crate::machine::lock::{Body, LockId};
use crate::machine::state::State;
use crate::machine::task::TaskId;
use rand_core::RngCore;
use std::collections::VecDeque;

/// Which spinlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // described above
pub enum Policy {
    TestAndSet,
    Ticket,
    Queued,
}

/// State of a spinlock. The holder is kept by the common part.
#[derive(Debug)]
pub struct Spinlock {
    policy: Policy,
    waiters: VecDeque<TaskId>,
}

impl Spinlock {
    /// A free spinlock.
    pub fn new(policy: Policy) -> Self {
        Self { policy, waiters: VecDeque::new() }
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Spinlock {
    match &mut s.locks[lock as usize].body {
        Body::Spin(body) => body,
        _ => unreachable!("kind and body agree"),
    }
}

/// One atomic attempt: fails if the lock is held or, where there is a queue, somebody is in it.
pub(in crate::machine) fn try_lock(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Write);
    let free = s.locks[lock as usize].holder.is_none();
    let b = body(&mut s, lock);
    if !free || (b.policy != Policy::TestAndSet && !b.waiters.is_empty()) {
        return false;
    }
    s.tasks[cx.id as usize].preempt_off += 1;
    s.begin_hold(lock, cx.id);
    true
}

/// Waits for the lock on the CPU. Returns whether it slept: never.
pub(in crate::machine) async fn wait(cx: &Context, lock: LockId) -> bool {
    {
        let mut s = cx.state();
        s.tasks[cx.id as usize].preempt_off += 1;
        body(&mut s, lock).waiters.push_back(cx.id);
    }
    loop {
        cx.spin(SpinUntil::default()).await;
        if take_if_my_turn(cx, lock) {
            return false;
        }
    }
}

fn take_if_my_turn(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    if s.locks[lock as usize].holder.is_some() {
        return false;
    }
    let b = body(&mut s, lock);
    let (policy, next) = (b.policy, b.waiters.front() == Some(&cx.id));
    if policy != Policy::TestAndSet && !next {
        return false;
    }
    if next {
        b.waiters.pop_front();
    } else {
        b.waiters.retain(|&w| w != cx.id);
    }
    if policy != Policy::Ticket {
        s.touch_lock(cx.id, lock, Access::Write); // whose ticket is up has read that already and writes nothing
    }
    s.begin_hold(lock, cx.id);
    true
}

/// Releases the lock: one store, which the pollers see when their refetch is served.
pub(in crate::machine) fn unlock(cx: &Context, lock: LockId) {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Write);
    s.end_hold(lock);
    s.preempt_enable(cx.id);
    let b = body(&mut s, lock);
    match b.policy {
        Policy::Queued => {
            if let Some(&next) = b.waiters.front() {
                s.show(cx.id, lock, next);
            }
        }
        Policy::Ticket | Policy::TestAndSet => refetch_all(&mut s, cx.id, lock),
    }
}

fn refetch_all(s: &mut State, releaser: TaskId, lock: LockId) {
    let count = body(s, lock).waiters.len();
    let mut pollers = std::mem::take(&mut body(s, lock).waiters);
    let order = random_order(s, count);
    for index in order {
        s.show(releaser, lock, pollers[index]);
    }
    std::mem::swap(&mut body(s, lock).waiters, &mut pollers);
}

/// A Fisher-Yates permutation of `0..count`.
fn random_order(s: &mut State, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        let j = (s.random.next_u64() % (i as u64 + 1)) as usize;
        order.swap(i, j);
    }
    order
}
