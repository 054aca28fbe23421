//! A bit that is a lock (`wait_on_bit_lock`, `kernel/sched/wait_bit.c`), such as `BH_Lock` of a buffer: an atomic bit, and a queue
//! of exclusive waiters.
//!
//! Nobody spins. A release clears the bit and wakes the **first** sleeper, as a **hint**, and takes it off the queue: who comes
//! meanwhile may take the bit, and its release wakes the next one. Anyone may release it, from any context.

use super::family::Family;
use super::release::Running;
use super::waitqueue::{self, Entry, WaitQueue};
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::waist::{Access, LockId, Side};

/// State of a bit.
#[derive(Debug, Default)]
pub struct BitLock {
    /// Who sleeps.
    queue: [WaitQueue; 1],
}

impl Family for BitLock {
    type Variant = ();

    const PERF_NAME: &'static str = "bit";

    fn new((): ()) -> Self {
        Self::default()
    }

    fn inner((): ()) -> Option<(&'static str, LockKind)> {
        None
    }

    fn wait_queues(&mut self) -> &mut [WaitQueue] {
        &mut self.queue
    }

    /// `test_and_set_bit_lock`.
    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Atomic);
        let free = s.locks[lock as usize].holder.is_none();
        if free {
            s.begin_hold(lock, cx.id);
        }
        free
    }

    /// `__wait_on_bit_lock`. Returns whether it slept.
    async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
        let mut slept = false;
        loop {
            waitqueue::prepare(cx, lock, queue, Entry::Exclusive).await;
            if is_set(cx, lock) {
                cx.park_here().await;
                slept = true;
            }
            if Self::try_fast(cx, lock, side) {
                break;
            }
        }
        waitqueue::finish(cx, lock, queue).await;
        slept
    }

    fn release(cx: &Context, lock: LockId, _side: Side) -> Option<Running<'_>> {
        Some(Box::pin(clear(cx, lock)))
    }
}

fn queue(s: &mut State, lock: LockId) -> &mut WaitQueue {
    let body: &mut BitLock = s.body(lock);
    &mut body.queue[0]
}

fn is_set(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Read);
    s.locks[lock as usize].holder.is_some()
}

/// `clear_bit_unlock` and `wake_up_bit`.
async fn clear(cx: &Context, lock: LockId) {
    {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Atomic);
        s.end_hold(lock);
    }
    waitqueue::wake_up(cx, lock, queue, 1).await;
}

/// The same from an interrupt: nobody pays for the wake-up but the interrupted CPU.
pub(in crate::machine) fn clear_from_interrupt(s: &mut State, lock: LockId) {
    s.end_hold(lock);
    if let Some(first) = queue(s, lock).take_first() {
        s.wake(first, None);
    }
}
