//! *pvqspinlock*, the queued spinlock of a guest (`kernel/locking/qspinlock_paravirt.h`, since 4.2; as since 4.15): a waiter
//! that has polled for long halts its virtual CPU, and a release kicks it. Where tasks stand for virtual CPUs, as a host
//! preempts them (`preemption: host`), who halts sleeps, and a kick is a wake-up, which the kicker pays. Elsewhere every
//! virtual CPU has a CPU of its own, and nobody halts: what is left out are waits of more than 32,768 rounds.
//!
//! Who comes takes a free lock also past the queue, as long as the head does not poll (`pv_hybrid_queued_unfair_trylock`).
//! In the queue all poll their nodes for `SPIN_THRESHOLD` rounds, and for less where the one before has halted
//! (`pv_wait_node`). The head polls the word for as many rounds, with the *pending* bit set, which keeps newcomers out; then it
//! halts, once, until the holder kicks it (`pv_wait_head_or_lock`, `__pv_queued_spin_unlock_slowpath`). Who becomes head while
//! it is halted sleeps on until then (`pv_kick_node`). Who makes the next one head looks by an atomic access whether that has
//! halted, and so waits for its store to that one's node before it goes on.

use super::family::Family;
use super::release::Running;
use super::spinlock;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::primitives::SpinUntil;
use crate::machine::state::State;
use crate::spec::Preemption;
use crate::waist::time::Time;
use crate::waist::{Access, Account, LockId, Machine, Side, TaskId};
use std::collections::VecDeque;

/// Rounds of polling (`include/asm/spinlock.h`, `SPIN_THRESHOLD`), and between two looks at the one before
/// (`PV_PREV_CHECK_MASK`).
const SPIN_THRESHOLD: Time = 1 << 15;
const PREVIOUS_EVERY: Time = 1 << 8;

/// State of such a lock.
#[derive(Debug, Default)]
pub struct Paravirt {
    waiters: VecDeque<TaskId>,
    /// Who of these has halted.
    halted: Vec<TaskId>,
    /// The head polls the word.
    pending: bool,
    /// Whom the next release kicks.
    kicked: Option<TaskId>,
    /// Who would take the lock past the queue.
    unfair: Vec<TaskId>,
}

impl Family for Paravirt {
    type Variant = ();

    const PERF_NAME: &'static str = "spinlock";
    const MAY_SLEEP: bool = false;

    fn new((): ()) -> Self {
        Self::default()
    }

    fn inner((): ()) -> Option<(&'static str, LockKind)> {
        None
    }

    /// Fails if the lock is held or somebody is in the queue.
    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Atomic);
        if !is_free(&s, lock) || !body(&mut s, lock).waiters.is_empty() {
            return false;
        }
        s.tasks[cx.id as usize].preempt_off += 1;
        s.begin_hold(lock, cx.id);
        true
    }

    /// Whether it slept: whether its virtual CPU has halted.
    async fn wait(cx: &Context, lock: LockId, _side: Side) -> bool {
        cx.preempt_disable();
        if steals(cx, lock).await {
            return false;
        }
        cx.state().touch_lock(cx.id, lock, Access::Atomic);
        body(&mut cx.state(), lock).waiters.push_back(cx.id);
        let halted = wait_in_queue(cx, lock).await;
        let slept = wait_as_head(cx, lock, halted).await || halted;
        leave_queue(&mut cx.state(), cx.id, lock);
        slept
    }

    fn release(cx: &Context, lock: LockId, _side: Side) -> Option<Running<'_>> {
        Some(Box::pin(unlock(cx, lock)))
    }
}

impl Paravirt {
    /// Who comes may not queue yet.
    fn stays_unfair(&self) -> bool {
        !self.waiters.is_empty() && !self.pending
    }

    /// The one before `task` in the queue has halted.
    fn follows_halted(&self, task: TaskId) -> bool {
        let at = self.waiters.iter().position(|&waiter| waiter == task);
        at.is_some_and(|at| at > 0 && self.halted.contains(&self.waiters[at - 1]))
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Paravirt {
    s.body(lock)
}

fn is_free(s: &State, lock: LockId) -> bool {
    s.locks[lock as usize].holder.is_none()
}

/// Takes the lock past the queue, unless its head polls or there is none.
async fn steals(cx: &Context, lock: LockId) -> bool {
    loop {
        if may_steal(&mut cx.state(), lock) {
            attempt(cx, lock).await;
            let mut s = cx.state();
            if is_free(&s, lock) {
                let first = body(&mut s, lock).waiters.front().copied();
                s.take(lock, cx.id, first);
                return true;
            }
        }
        if !body(&mut cx.state(), lock).stays_unfair() {
            return false;
        }
        body(&mut cx.state(), lock).unfair.push(cx.id);
        cx.spin(SpinUntil::default()).await;
        body(&mut cx.state(), lock).unfair.retain(|&task| task != cx.id);
    }
}

fn may_steal(s: &mut State, lock: LockId) -> bool {
    is_free(s, lock) && !body(s, lock).pending
}

/// Fetches the word for an atomic access; others may have it before.
async fn attempt(cx: &Context, lock: LockId) {
    cx.state().touch_lock(cx.id, lock, Access::Atomic);
    cx.run(Account::System, 0).await;
}

/// Until it is the head of the queue. Returns whether it has halted and been made head since.
async fn wait_in_queue(cx: &Context, lock: LockId) -> bool {
    if !may_halt(&cx.state()) {
        while body(&mut cx.state(), lock).waiters[0] != cx.id {
            cx.spin(SpinUntil::default()).await;
        }
        return false;
    }
    let mut until = deadline(&mut cx.state(), cx.id, lock);
    while body(&mut cx.state(), lock).waiters[0] != cx.id {
        cx.spin(SpinUntil { deadline: Some(until), ..SpinUntil::default() }).await;
        let waits = {
            let mut s = cx.state();
            until = until.min(deadline(&mut s, cx.id, lock));
            s.now >= until && body(&mut s, lock).waiters[0] != cx.id
        };
        if waits {
            halt(cx, lock).await;
            return true;
        }
    }
    false
}

/// Whether tasks stand for virtual CPUs, which can halt.
fn may_halt(s: &State) -> bool {
    s.kernel.preemption == Preemption::Host
}

/// When `me` has polled its node for long enough.
fn deadline(s: &mut State, me: TaskId, lock: LockId) -> Time {
    let rounds = if body(s, lock).follows_halted(me) { PREVIOUS_EVERY } else { SPIN_THRESHOLD };
    polled_until(s, rounds)
}

fn polled_until(s: &State, rounds: Time) -> Time {
    s.now + rounds * s.costs.cpu_relax
}

/// Until the head has the lock; `halted`: it is to be kicked already, or has been. Returns whether it halts.
async fn wait_as_head(cx: &Context, lock: LockId, halted: bool) -> bool {
    let mut may_halt = !halted && may_halt(&cx.state());
    let mut slept = false;
    loop {
        begin_as_head(cx, lock).await;
        let until = polled_until(&cx.state(), SPIN_THRESHOLD);
        while !is_free(&cx.state(), lock) && (!may_halt || cx.state().now < until) {
            cx.spin(SpinUntil { deadline: may_halt.then_some(until), ..SpinUntil::default() }).await;
            if is_free(&cx.state(), lock) {
                attempt(cx, lock).await;
            }
        }
        if is_free(&cx.state(), lock) {
            return slept;
        }
        may_halt = false;
        if asks_to_be_kicked(&mut cx.state(), cx.id, lock) {
            return slept;
        }
        halt(cx, lock).await;
        slept = true;
    }
}

/// Sets the pending bit, which those see who would take the lock past the queue; they may until the store is done.
async fn begin_as_head(cx: &Context, lock: LockId) {
    {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Store);
        drain(&mut s, cx.id);
    }
    cx.run(Account::System, 0).await;
    let mut s = cx.state();
    body(&mut s, lock).pending = true;
    if !is_free(&s, lock) {
        show_unfair(&mut s, cx.id, lock); // else it takes the lock before others have the line
    }
}

fn drain(s: &mut State, me: TaskId) {
    let now = s.now;
    s.tasks[me as usize].drain(now);
}

fn show_unfair(s: &mut State, me: TaskId, lock: LockId) {
    s.show_in_random_order(me, lock, |s, order| order.extend(&body(s, lock).unfair));
}

/// Clears the pending bit and has the holder kick it, unless there is none any more: then the lock is its own.
fn asks_to_be_kicked(s: &mut State, me: TaskId, lock: LockId) -> bool {
    s.touch_lock(me, lock, Access::Atomic);
    let free = is_free(s, lock);
    let b = body(s, lock);
    b.pending = false;
    b.kicked = (!free).then_some(me);
    free
}

/// `pv_wait`: the virtual CPU halts until it is kicked. Its guest does not know, so spinlocks that it holds are no matter.
async fn halt(cx: &Context, lock: LockId) {
    cx.forget_wakeups();
    let preempt_off = {
        let mut s = cx.state();
        let b = body(&mut s, lock);
        b.halted.push(cx.id);
        let at = b.waiters.iter().position(|&waiter| waiter == cx.id);
        if let Some(next) = at.and_then(|at| b.waiters.get(at + 1).copied()) {
            let now = s.now;
            s.spin_check(next, now);
        }
        std::mem::take(&mut s.tasks[cx.id as usize].preempt_off)
    };
    cx.park_here().await;
    let mut s = cx.state();
    s.tasks[cx.id as usize].preempt_off += preempt_off;
    body(&mut s, lock).halted.retain(|&task| task != cx.id);
}

/// The head takes the lock and makes the next one head; if that has halted, the release is to kick it (`pv_kick_node`).
fn leave_queue(s: &mut State, me: TaskId, lock: LockId) {
    s.touch_lock(me, lock, Access::Atomic);
    s.begin_hold(lock, me);
    let b = body(s, lock);
    b.pending = false;
    b.waiters.pop_front();
    let Some(&next) = b.waiters.front() else { return show_unfair(s, me, lock) };
    let halted = b.halted.contains(&next);
    s.store_to_node(me, next);
    drain(s, me);
    if halted {
        s.touch_lock(me, lock, Access::Store);
        body(s, lock).kicked = Some(next);
    }
}

/// Releases the lock by an atomic access, and kicks the head if it has halted. Where owners are checked, the owner is read before
/// (`debug_spin_unlock`).
async fn unlock(cx: &Context, lock: LockId) {
    if spinlock::is_checked(&cx.state()) {
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.run(Account::System, 0).await;
    }
    attempt(cx, lock).await;
    give_back(&mut cx.state(), cx.id, lock);
}

fn give_back(s: &mut State, me: TaskId, lock: LockId) {
    s.end_hold(lock);
    s.preempt_enable(me);
    let b = body(s, lock);
    let kicked = b.kicked.take();
    let head = b.waiters.front().copied().filter(|_| b.pending);
    if let Some(head) = head {
        s.show(me, lock, head);
    }
    show_unfair(s, me, lock);
    if let Some(kicked) = kicked {
        s.wake_waiter(me, lock, kicked, false);
    }
}
