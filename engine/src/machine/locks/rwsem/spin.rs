//! Optimistic spinning (`rwsem_optimistic_spin`): who hopes that the owner will soon be gone spins on it, one at a time.

use super::{body, set_reader_owned, set_writer, Era, LockId, Owner, Rwsem, Side};
use crate::machine::context::Context;
use crate::machine::line::Access;
use crate::machine::locks::osq::{self, Osq};
use crate::machine::primitives::SpinUntil;
use crate::machine::state::State;
use crate::machine::task::TaskId;
use crate::machine::time::Time;

fn osq_of(s: &mut State, lock: LockId) -> &mut Osq {
    &mut body(s, lock).osq
}

/// Spins as long as there is hope. Whether the lock was taken.
pub(super) async fn spin(cx: &Context, lock: LockId, side: Side) -> bool {
    let may = {
        let mut s = cx.state();
        !s.need_resched(cx.id) && may_begin(&mut s, lock, side)
    };
    if may {
        cx.runs(|code| code.spin);
    }
    if !may || !osq::lock(cx, lock, osq_of).await {
        return false;
    }
    let taken = spin_on_owner(cx, lock, side).await;
    osq::unlock(cx, lock, osq_of);
    if taken {
        cx.runs(|code| code.taken);
    }
    taken
}

/// `rwsem_can_spin_on_owner`. In 3.16 an owner word without a task may mean readers: then nobody begins.
pub(super) fn may_begin(s: &mut State, lock: LockId, side: Side) -> bool {
    let b = body(s, lock);
    let known = b.era >= Era::V4_8 || b.owner.task.is_some();
    known && spinnable(s, lock, side)
}

/// A running writer, readers that are not marked, or nobody.
fn spinnable(s: &mut State, lock: LockId, side: Side) -> bool {
    let Rwsem { owner, era, .. } = *body(s, lock);
    let marked = match side {
        Side::Read => owner.no_reader_spin,
        Side::Write => owner.no_writer_spin || era.never_spins_on_readers() && owner.readers,
    };
    !marked && owner.writer().is_none_or(|writer| s.on_cpu(writer))
}

/// At the head of the OSQ: tries whenever something has changed.
async fn spin_on_owner(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut patience: Option<Time> = None; // until when to spin on readers
    let mut watched: Option<TaskId> = None;
    loop {
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.runs(|code| code.attempt);
        cx.pay().await;
        if take_unqueued(cx, lock, side) {
            return true;
        }
        let until = {
            let mut s = cx.state();
            if s.need_resched(cx.id) || !spinnable(&mut s, lock, side) {
                return false;
            }
            let (now, limits) = (s.now, s.kernel.rwsem_reader_spin);
            let b = body(&mut s, lock);
            let owner = b.owner.writer();
            if b.era == Era::V3_16 && watched.is_some() && owner.is_some() && owner != watched {
                return false; // another writer got it: a sign of heavy contention
            }
            watched = owner;
            let bounded = side == Side::Write && b.owner.readers;
            patience = bounded.then(|| patience.unwrap_or_else(|| now + reader_spin(b, limits)));
            if patience.is_some_and(|end| now >= end) {
                set_nonspinnable(b);
                return false;
            }
            SpinUntil { owner_off_cpu: owner, need_resched: true, deadline: patience }
        };
        cx.poll(lock, until).await;
    }
}

/// `rwsem_rspin_threshold`: how long a writer spins on these readers.
fn reader_spin(b: &Rwsem, (base, each, cap): (Time, Time, Time)) -> Time {
    (base + each * Time::from(b.readers)).min(cap)
}

/// A writer has waited long enough for readers: 5.3 marks them for both sides.
fn set_nonspinnable(b: &mut Rwsem) {
    let no_reader_spin = b.era == Era::V5_3;
    b.owner = Owner { no_reader_spin, no_writer_spin: true, ..b.owner };
}

/// `rwsem_try_{read,write}_lock_unqueued`: takes the lock past the queue unless a hand-off is marked.
pub(super) fn take_unqueued(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    let b = body(&mut s, lock);
    let closed = match side {
        Side::Read => b.written(),
        Side::Write => b.locked(),
    };
    if closed || b.handoff {
        return false;
    }
    s.touch_lock(cx.id, lock, Access::Atomic);
    match side {
        Side::Read => {
            body(&mut s, lock).readers += 1;
            set_reader_owned(&mut s, cx.id, lock);
        }
        Side::Write => set_writer(&mut s, cx.id, lock),
    }
    true
}
