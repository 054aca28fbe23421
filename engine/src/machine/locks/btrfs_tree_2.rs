//! The btrfs tree lock of 2009 to Linux 3.0 (`fs/btrfs/locking.c` 2.6.32): a spinlock, a BLOCKING bit and an exclusive wait
//! queue; always exclusive.
//!
//! Who has the lock holds the spinlock (**spinning**: it must not sleep) or, once it has converted, only the bit
//! (**blocking**: it may). Waiters spin on the spinlock; against the bit they poll 512 times, then sleep. A release wakes
//! exactly **one** sleeper, as a **hint**: it competes with those who spin.

use super::family::Family;
use super::release::Running;
use super::spinlock;
use super::waitqueue::{self, Entry, WaitQueue};
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::primitives::SpinUntil;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{Access, LockId, Mode, Side};

/// Rounds of `btrfs_spin_on_block`.
const POLLS: Time = 512;
/// Attempts of `btrfs_try_spin_lock`.
const SPINS: u32 = 3;

/// State of a tree lock; its spinlock is the inner lock.
#[derive(Debug, Default)]
pub struct BtrfsTree2 {
    blocking: bool,
    /// Who sleeps.
    queue: [WaitQueue; 1],
}

impl Family for BtrfsTree2 {
    type Variant = ();

    const PERF_NAME: &'static str = "spinlock";
    const HAS_MODES: bool = true;

    fn new((): ()) -> Self {
        Self::default()
    }

    fn inner((): ()) -> Option<(&'static str, LockKind)> {
        Some(("lock", LockKind::Spin(spinlock::Policy::Ticket)))
    }

    fn wait_queues(&mut self) -> &mut [WaitQueue] {
        &mut self.queue
    }

    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        try_lock(cx, lock)
    }

    async fn try_lock_spinning(cx: &Context, lock: LockId, _side: Side) -> bool {
        try_lock_spinning(cx, lock).await
    }

    async fn wait(cx: &Context, lock: LockId, _side: Side) -> bool {
        wait(cx, lock).await
    }

    fn release(cx: &Context, lock: LockId, _side: Side) -> Option<Running<'_>> {
        Some(Box::pin(unlock(cx, lock)))
    }

    async fn convert(cx: &Context, lock: LockId, _side: Side, mode: Mode) {
        convert(cx, lock, mode).await;
    }
}

fn body(s: &mut State, lock: LockId) -> &mut BtrfsTree2 {
    s.body(lock)
}

fn queue(s: &mut State, lock: LockId) -> &mut WaitQueue {
    &mut body(s, lock).queue[0]
}

fn is_blocking(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Read);
    body(&mut s, lock).blocking
}

/// `btrfs_try_tree_lock`: a trylock of the spinlock; fails against the bit.
fn try_lock(cx: &Context, lock: LockId) -> bool {
    let inner = cx.state().inner(lock);
    let taken = !is_blocking(cx, lock) && spinlock::try_lock(cx, inner);
    if taken {
        cx.state().begin_hold(lock, cx.id);
    }
    taken
}

/// `btrfs_try_spin_lock`, which searches use: spins for the spinlock, and polls the bit as long as somebody clears it, three
/// times at most.
async fn try_lock_spinning(cx: &Context, lock: LockId) -> bool {
    if try_lock(cx, lock) {
        return true;
    }
    let inner = cx.state().inner(lock);
    cx.begin_wait(lock, Side::Write);
    let mut taken = false;
    for _ in 0..SPINS {
        if !poll_bit(cx, lock).await {
            break;
        }
        super::spin_lock(cx, inner).await;
        if !is_blocking(cx, lock) {
            cx.state().begin_hold(lock, cx.id);
            taken = true;
            break;
        }
        spinlock::unlock(cx, inner);
    }
    cx.end_wait(false);
    taken
}

/// `btrfs_tree_lock` when the first look was in vain. Returns whether it slept.
async fn wait(cx: &Context, lock: LockId) -> bool {
    let inner = cx.state().inner(lock);
    let (mut clear, mut slept) = (poll_bit(cx, lock).await, false);
    loop {
        if !clear {
            slept |= sleep_once(cx, lock).await;
        }
        super::spin_lock(cx, inner).await;
        if !is_blocking(cx, lock) {
            cx.state().begin_hold(lock, cx.id);
            return slept;
        }
        spinlock::unlock(cx, inner);
        clear = poll_bit(cx, lock).await;
    }
}

/// `btrfs_spin_on_block`: polls the bit for a while. Whether it is clear.
async fn poll_bit(cx: &Context, lock: LockId) -> bool {
    let end = {
        let s = cx.state();
        s.now + POLLS * (s.topology.hit + s.costs.cpu_relax)
    };
    loop {
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.pay().await;
        let (clear, now, wanted) = {
            let mut s = cx.state();
            (!body(&mut s, lock).blocking, s.now, s.need_resched(cx.id))
        };
        if clear || wanted || now >= end {
            return clear;
        }
        cx.poll(lock, SpinUntil { need_resched: true, deadline: Some(end), ..SpinUntil::default() }).await;
    }
}

async fn sleep_once(cx: &Context, lock: LockId) -> bool {
    waitqueue::prepare(cx, lock, queue, Entry::Exclusive).await;
    let sleeps = is_blocking(cx, lock);
    if sleeps {
        cx.park_here().await;
    }
    waitqueue::finish(cx, lock, queue).await;
    sleeps
}

/// `btrfs_set_lock_blocking`, `btrfs_clear_lock_blocking`.
async fn convert(cx: &Context, lock: LockId, mode: Mode) {
    let inner = cx.state().inner(lock);
    let blocking = body(&mut cx.state(), lock).blocking;
    match mode {
        Mode::Blocking if !blocking => {
            set_bit(cx, lock, true);
            spinlock::unlock(cx, inner);
        }
        Mode::Spinning if blocking => {
            super::spin_lock(cx, inner).await;
            set_bit(cx, lock, false);
        }
        _ => {}
    }
}

/// `btrfs_tree_unlock`.
async fn unlock(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    cx.state().end_hold(lock);
    let blocking = body(&mut cx.state(), lock).blocking;
    if blocking {
        set_bit(cx, lock, false);
    } else {
        spinlock::unlock(cx, inner);
    }
    waitqueue::wake_up(cx, lock, queue, 1).await;
}

/// Writes the bit, which those who poll it see when their refetch is served.
fn set_bit(cx: &Context, lock: LockId, blocking: bool) {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    body(&mut s, lock).blocking = blocking;
    s.show_pollers(cx.id, lock);
}
