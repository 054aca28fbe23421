//! `struct mutex` before Linux 4.10 (`kernel/mutex.c`): a counter (1 free, 0 held, less: held and somebody may wait), an owner
//! field in the same line, and a FIFO of sleepers. A wake-up is a **hint**, there is no hand-off: a sleeper may lose
//! against newcomers for ever.
//!
//! An attempt takes 1 from the counter without looking, so a failed one makes it negative, and the next unlock takes the slow
//! path even if nobody sleeps: the inner raw spinlock, then the store that frees the mutex.
//!
//! The eras differ in who spins, all of them as long as the owner runs and nobody wants the CPU:
//!
//! * *2.6.16*: nobody.
//! * *2.6.30*: everybody at once, on the owner field and the counter in one line, also on the next owner.
//! * *3.0*: the same, but who sees another owner gives up and sleeps (`mutex_spin_on_owner` returns `owner == NULL`).
//! * *3.10* (to 3.14): only the head of an MCS queue, whose members cannot leave it; it gives up like those of 3.0, and reads
//!   the counter before it tries.

use super::family::Family;
use super::osq::{self, Osq};
use super::release::Running;
use super::spinlock;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::primitives::SpinUntil;
use crate::machine::seldom::Seldom;
use crate::machine::state::State;
use crate::waist::Machine as _;
use crate::waist::{Access, LockId, Side, TaskId};
use std::collections::VecDeque;

/// Which kernels' mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // described above
pub enum Era {
    Since2_6_16,
    Since2_6_30,
    Since3_0,
    Since3_10,
}

/// State of a mutex; the owner is the common part's holder.
#[derive(Debug)]
pub struct CountedMutex {
    era: Era,
    count: i32,
    waiters: VecDeque<TaskId>,
    spinners: Seldom<Osq>,
}

impl Family for CountedMutex {
    type Variant = Era;

    const PERF_NAME: &'static str = "mutex";
    const SHARES_LINE: bool = true;

    fn new(era: Era) -> Self {
        Self { era, count: 1, waiters: VecDeque::new(), spinners: Seldom::default() }
    }

    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        lock_fast(cx, lock)
    }

    fn try_lock(cx: &Context, lock: LockId, _side: Side) -> bool {
        try_lock(cx, lock)
    }

    async fn wait(cx: &Context, lock: LockId, _side: Side) -> bool {
        lock_slow(cx, lock).await
    }

    fn release(cx: &Context, lock: LockId, _side: Side) -> Option<Running<'_>> {
        let frees_it = !unlock_fast(&mut cx.state(), cx.id, lock);
        (!frees_it).then(|| Box::pin(unlock_slow(cx, lock)) as Running<'_>)
    }
}

fn body(s: &mut State, lock: LockId) -> &mut CountedMutex {
    s.body(lock)
}

fn spinners(s: &mut State, lock: LockId) -> &mut Osq {
    &mut body(s, lock).spinners
}

/// `__mutex_fastpath_lock`: takes 1; it was free if nothing is missing.
fn lock_fast(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    let b = body(&mut s, lock);
    b.count -= 1;
    let taken = b.count >= 0;
    if taken {
        become_owner(&mut s, cx.id, lock);
    }
    taken
}

/// `mutex_trylock`, and a spinner's attempt: 1 becomes 0.
fn try_lock(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    let b = body(&mut s, lock);
    let taken = b.count == 1;
    if taken {
        b.count = 0;
        become_owner(&mut s, cx.id, lock);
    }
    taken
}

fn become_owner(s: &mut State, me: TaskId, lock: LockId) {
    let first = body(s, lock).waiters.front().copied();
    s.take(lock, me, first);
}

/// Who has the mutex and queued for its line writes to the owner word beside the counter (`mutex_set_owner`, since 2.6.30), for which it
/// fetches the line again.
pub(super) fn wrote_owner(cx: &Context, lock: LockId) {
    let mut s = cx.state();
    let LockKind::CountedMutex(era) = s.locks[lock as usize].kind else { return };
    if era != Era::Since2_6_16 {
        s.touch_lock(cx.id, lock, Access::Store);
    }
}

/// The same of a spinner.
async fn settle_owner(cx: &Context, lock: LockId) {
    if cx.state().has_queued(cx.id) {
        cx.pay().await;
        wrote_owner(cx, lock);
    }
}

/// `__mutex_lock_common`. Returns whether it slept.
async fn lock_slow(cx: &Context, lock: LockId) -> bool {
    let era = body(&mut cx.state(), lock).era;
    cx.preempt_disable();
    cx.settle().await;
    let taken = match era {
        Era::Since2_6_16 => false,
        Era::Since2_6_30 | Era::Since3_0 => spin_with_all(cx, lock, era).await,
        Era::Since3_10 => spin_in_turn(cx, lock).await,
    };
    cx.preempt_enable();
    if taken {
        return false;
    }
    wait_in_queue(cx, lock, era).await
}

async fn spin_with_all(cx: &Context, lock: LockId, era: Era) -> bool {
    while let Seen::Free = poll_owner(cx, lock, era).await {
        if try_lock(cx, lock) {
            settle_owner(cx, lock).await;
            return true;
        }
        if !wait_for_the_counter(cx, lock).await {
            return false;
        }
    }
    false
}

async fn spin_in_turn(cx: &Context, lock: LockId) -> bool {
    let may_spin = {
        let s = cx.state();
        s.locks[lock as usize].holder.is_none_or(|owner| s.on_cpu(owner))
    };
    if !may_spin {
        return false;
    }
    loop {
        osq::lock_uncancellable(cx, lock, spinners).await;
        let seen = poll_owner(cx, lock, Era::Since3_10).await;
        let free = seen == Seen::Free && body(&mut cx.state(), lock).count == 1;
        let taken = free && try_lock(cx, lock);
        if taken {
            settle_owner(cx, lock).await;
        }
        let goes_on = !taken && seen == Seen::Free && wait_for_the_counter(cx, lock).await;
        osq::unlock_uncancellable(cx, lock, spinners);
        if !goes_on {
            return taken;
        }
    }
}

/// What a spinner sees when the owner that it spun on is gone.
#[derive(PartialEq, Eq)]
enum Seen {
    /// No owner.
    Free,
    /// A reason to stop spinning.
    Stop,
}

/// `mutex_spin_on_owner`: polls while the owner runs and nobody wants the CPU.
async fn poll_owner(cx: &Context, lock: LockId, era: Era) -> Seen {
    let mut spun_on = None;
    loop {
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.pay().await;
        let owner = {
            let s = cx.state();
            let Some(owner) = s.locks[lock as usize].holder else { return Seen::Free };
            let another = spun_on.is_some_and(|before| before != owner) && era != Era::Since2_6_30;
            if another || !s.on_cpu(owner) || s.need_resched(cx.id) {
                return Seen::Stop;
            }
            owner
        };
        spun_on = Some(owner);
        poll(cx, lock, Some(owner)).await;
    }
}

/// The owner is gone, but the counter not yet 1 or taken by somebody else: waits for the next store. False if the CPU is
/// wanted.
async fn wait_for_the_counter(cx: &Context, lock: LockId) -> bool {
    let wanted = {
        let s = cx.state();
        s.need_resched(cx.id)
    };
    if !wanted && cx.state().locks[lock as usize].holder.is_none() {
        poll(cx, lock, None).await;
    }
    !wanted
}

async fn poll(cx: &Context, lock: LockId, owner: Option<TaskId>) {
    cx.poll(lock, SpinUntil { owner_off_cpu: owner, need_resched: true, deadline: None }).await;
}

async fn wait_in_queue(cx: &Context, lock: LockId, era: Era) -> bool {
    let inner = cx.state().inner(lock);
    cx.runs(|code| code.mutex.ask);
    super::lock_to_wait(cx, inner, |code| code.mutex.queue).await;
    cx.forget_wakeups();
    body(&mut cx.state(), lock).waiters.push_back(cx.id);
    let mut slept = false;
    while !take_as_waiter(cx, lock, era) {
        spinlock::unlock(cx, inner);
        cx.park_here().await;
        slept = true;
        super::lock_to_wait(cx, inner, |code| code.mutex.look).await;
    }
    cx.runs(|code| code.mutex.take);
    cx.pay().await;
    spinlock::unlock(cx, inner);
    cx.runs(|code| code.mutex.taken);
    slept
}

/// Under the inner raw spinlock: exchanges the counter for -1 (somebody waits); it was free if that was 1.
fn take_as_waiter(cx: &Context, lock: LockId, era: Era) -> bool {
    let mut s = cx.state();
    let marked = era == Era::Since3_10 && body(&mut s, lock).count < 0;
    s.touch_lock(cx.id, lock, if marked { Access::Read } else { Access::Atomic });
    let b = body(&mut s, lock);
    let taken = b.count == 1;
    b.count = b.count.min(-1);
    if taken {
        become_owner(&mut s, cx.id, lock);
        let b = body(&mut s, lock);
        b.waiters.retain(|&waiter| waiter != cx.id);
        if b.waiters.is_empty() {
            b.count = 0;
        }
    }
    taken
}

/// `mutex_unlock`: gives 1 back. Returns whether that does not free it.
fn unlock_fast(s: &mut State, me: TaskId, lock: LockId) -> bool {
    s.touch_lock(me, lock, Access::Atomic);
    s.end_hold(lock);
    let b = body(s, lock);
    b.count += 1;
    let freed = b.count > 0;
    show_pollers(s, me, lock);
    !freed
}

/// The rest, if it does not: sets the counter to 1 and wakes the first sleeper.
async fn unlock_slow(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    cx.runs(|code| code.mutex.wake);
    super::spin_lock(cx, inner).await;
    cx.runs(|code| code.mutex.mark);
    let first = {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Store);
        body(&mut s, lock).count = 1;
        show_pollers(&mut s, cx.id, lock);
        body(&mut s, lock).waiters.front().copied()
    };
    if let Some(first) = first {
        cx.wake_waiter(lock, first);
    }
    spinlock::unlock(cx, inner);
}

/// Counter or owner have changed: who polls them sees it when its refetch is served.
fn show_pollers(s: &mut State, writer: TaskId, lock: LockId) {
    s.show_in_random_order(writer, lock, |s, order| order.extend(&s.locks[lock as usize].pollers));
}
