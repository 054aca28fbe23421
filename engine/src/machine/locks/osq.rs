//! OSQ, the cancellable MCS queue of optimistic spinners inside mutexes and rwsems (`kernel/locking/osq_lock.c`).
//!
//! Only the head of the queue looks at the lock; the others poll their own node until they become head or the scheduler
//! wants their CPU. Spinners run with preemption off.

use crate::machine::context::Context;
use crate::machine::primitives::SpinUntil;
use crate::machine::seldom::Empty;
use crate::machine::state::State;
use crate::waist::{Access, LockId, TaskId};
use std::collections::VecDeque;

/// The queue of one lock.
#[derive(Debug, Default)]
pub struct Osq(VecDeque<TaskId>);

impl Osq {
    /// That of a new lock.
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Nobody spins.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Empty for Osq {
    const EMPTY: &'static Self = &Self::new();
}

/// Finds the OSQ of a lock.
pub type Find = fn(&mut State, LockId) -> &mut Osq;

/// Joins the queue of `lock` and waits to be its head. False if the CPU was wanted first.
pub(in crate::machine) async fn lock(cx: &Context, lock: LockId, osq: Find) -> bool {
    join(cx, lock, osq);
    loop {
        cx.pay().await;
        let (head, wanted) = {
            let mut s = cx.state();
            (osq(&mut s, lock).0.front() == Some(&cx.id), s.need_resched(cx.id))
        };
        if head {
            return true;
        }
        if wanted {
            osq(&mut cx.state(), lock).0.retain(|&other| other != cx.id);
            return false;
        }
        cx.spin(SpinUntil { need_resched: true, ..SpinUntil::default() }).await;
    }
}

/// The same of kernels before 3.15 (a plain MCS queue): waits whoever wants the CPU.
pub(in crate::machine) async fn lock_uncancellable(cx: &Context, lock: LockId, osq: Find) {
    join(cx, lock, osq);
    cx.pay().await;
    while osq(&mut cx.state(), lock).0.front() != Some(&cx.id) {
        cx.spin(SpinUntil::default()).await;
    }
}

fn join(cx: &Context, lock: LockId, osq: Find) {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic); // exchange of the tail, in the lock's line
    s.fetch_back(cx.id, lock);
    osq(&mut s, lock).0.push_back(cx.id);
}

/// Leaves the queue as its head (`osq_unlock`): a compare-and-exchange of the tail, which fails if others are behind, and then a store to
/// the next node.
pub(in crate::machine) fn unlock(cx: &Context, lock: LockId, osq: Find) {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    leave(&mut s, cx.id, lock, osq);
}

/// The same before 3.15 (`mspin_unlock`): who knows who is next leaves the tail alone.
pub(in crate::machine) fn unlock_uncancellable(cx: &Context, lock: LockId, osq: Find) {
    let mut s = cx.state();
    if osq(&mut s, lock).0.len() == 1 {
        s.touch_lock(cx.id, lock, Access::Atomic);
    }
    leave(&mut s, cx.id, lock, osq);
}

fn leave(s: &mut State, me: TaskId, lock: LockId, osq: Find) {
    let queue = &mut osq(s, lock).0;
    queue.pop_front();
    if let Some(&next) = queue.front() {
        s.store_to_node(me, next);
    }
}
