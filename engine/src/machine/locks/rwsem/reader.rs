//! `down_read` when the fast path failed: `rwsem_down_read_failed`, `rwsem_down_read_slowpath`.

use super::wake::{self, Wake};
use super::{body, look_at_owner, set_reader_owned, settle_owner, spin, with, Waiter};
use crate::machine::context::Context;
use crate::machine::locks::{lock_to_wait, spin_lock, spinlock};
use crate::machine::state::State;
use crate::waist::Machine as _;
use crate::waist::{Access, LockId, Side, TaskId};

/// Returns whether it slept.
pub(in crate::machine) async fn down_read_slow(cx: &Context, lock: LockId) -> bool {
    with(cx, lock, |b| b.readers += 1); // the share that the fast path's add left behind
    let era = with(cx, lock, |b| b.era);
    if era.readers_steal() && steal_on_entry(cx, lock).await {
        return false;
    }
    if era.readers_spin() {
        look_at_owner(cx, lock).await;
    }
    let no_reader_spin = with(cx, lock, |b| b.owner.no_reader_spin);
    let mut has_share = true;
    if era.readers_spin() && may_spin(cx, lock) {
        if spin_as_reader(cx, lock).await {
            return false;
        }
        has_share = false;
    }
    wait_as_reader(cx, lock, has_share, no_reader_spin).await
}

/// 5.11: the share already counts if no writer has the lock, unless readers crowd out sleeping writers.
async fn steal_on_entry(cx: &Context, lock: LockId) -> bool {
    // in the count that the add returned
    let (beside, closed, queued) =
        with(cx, lock, |b| (b.readers > 1, b.writer || b.handoff, !b.slow.waiters.is_empty()));
    look_at_owner(cx, lock).await;
    if closed || beside && with(cx, lock, |b| b.owner.readers) {
        return false;
    }
    set_reader_owned(&mut cx.state(), cx.id, lock);
    settle_owner(cx, lock, Side::Read).await;
    if !beside && queued {
        wake_queued_readers(cx, lock).await;
    }
    true
}

async fn wake_queued_readers(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    cx.runs(|code| code.rwsem.wake);
    spin_lock(cx, inner).await;
    wake::mark_fetched(cx, lock, inner, Wake::Readers).await;
}

fn may_spin(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    !s.need_resched(cx.id) && spin::may_begin(&mut s, lock, Side::Read)
}

/// 5.3: gives the share back and spins beside the writers. Whether the lock was taken.
async fn spin_as_reader(cx: &Context, lock: LockId) -> bool {
    cx.state().touch_lock(cx.id, lock, Access::Atomic);
    give_share_back(&mut cx.state(), cx.id, lock);
    cx.settle().await;
    let before = with(cx, lock, |b| b.owner.task.filter(|_| b.owner.readers));
    cx.preempt_disable();
    let taken = spin::spin(cx, lock, Side::Read).await;
    cx.preempt_enable();
    if taken {
        if with(cx, lock, |b| !b.slow.waiters.is_empty()) {
            wake_queued_readers(cx, lock).await;
        }
        return true;
    }
    // `rwsem_reader_phase_trylock`: another phase of readers has begun meanwhile
    let new_phase = with(cx, lock, |b| b.owner.readers && b.owner.task != before);
    new_phase && spin::take_unqueued(cx, lock, Side::Read)
}

async fn wait_as_reader(cx: &Context, lock: LockId, has_share: bool, no_reader_spin: bool) -> bool {
    let inner = cx.state().inner(lock);
    cx.runs(|code| code.rwsem.ask);
    lock_to_wait(cx, inner, |code| code.rwsem.queue).await;
    let open = with(cx, lock, |b| b.era.has_phases() && b.slow.waiters.is_empty() && !b.writer && !b.handoff);
    if has_share && open {
        set_reader_owned(&mut cx.state(), cx.id, lock);
        spinlock::unlock(cx, inner);
        return false;
    }
    queue_reader(cx, lock, has_share, no_reader_spin);
    wake::issue(cx, lock, inner, false);
    while with(cx, lock, |b| !b.slow.granted.contains(&cx.id)) {
        cx.park_here().await;
    }
    with(cx, lock, |b| b.slow.granted.retain(|&reader| reader != cx.id));
    cx.runs(|code| code.rwsem.taken);
    true
}

/// A share that was not enough leaves the count, which may leave the lock free for who spins.
fn give_share_back(s: &mut State, me: TaskId, lock: LockId) {
    let b = body(s, lock);
    b.readers -= 1;
    if !b.locked() {
        s.show_pollers(me, lock);
    }
}

/// Appends the reader, gives its share back, and marks who may go now.
fn queue_reader(cx: &Context, lock: LockId, has_share: bool, no_reader_spin: bool) {
    cx.forget_wakeups();
    let mut s = cx.state();
    let since = s.now;
    if !body(&mut s, lock).era.has_phases() {
        s.touch_lock(cx.id, lock, Access::Atomic);
    }
    let b = body(&mut s, lock);
    let alone = b.slow.waiters.is_empty();
    b.slow.waiters.push_back(Waiter { task: cx.id, side: Side::Read, since, handoff: false, no_reader_spin });
    if has_share {
        give_share_back(&mut s, cx.id, lock);
    }
    wake::mark_after_queueing(&mut s, cx.id, lock, Side::Read, alone);
}
