//! Optimistic spinning (`rwsem_optimistic_spin`): who hopes that the owner will soon be gone spins on it, one at a time.

use super::{body, look_at_owner, set_reader_owned, set_writer, settle_owner, Era, Owner, Rwsem};
use crate::machine::context::Context;
use crate::machine::locks::osq::{self, Osq};
use crate::machine::primitives::SpinUntil;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{Access, LockId, Side, TaskId};

/// Rounds on readers after which a writer reads the clock (`rwsem_optimistic_spin`).
const CLOCK_EVERY: Time = 16;

fn osq_of(s: &mut State, lock: LockId) -> &mut Osq {
    &mut body(s, lock).slow.osq
}

/// Spins as long as there is hope. Whether the lock was taken.
pub(super) async fn spin(cx: &Context, lock: LockId, side: Side) -> bool {
    if side == Side::Write {
        look_at_owner(cx, lock).await; // rwsem_can_spin_on_owner
    }
    let may = {
        let mut s = cx.state();
        !s.need_resched(cx.id) && may_begin(&mut s, lock, side)
    };
    if may {
        cx.runs(|code| code.rwsem.spin);
    }
    if !may || !osq::lock(cx, lock, osq_of).await {
        return false;
    }
    let taken = spin_on_owner(cx, lock, side).await;
    osq::unlock(cx, lock, osq_of);
    if taken {
        cx.runs(|code| code.rwsem.taken);
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

/// 5.3: the lock that a writer has is going to somebody else (`rwsem_spin_on_owner`).
fn stops_for_handoff(b: &Rwsem) -> bool {
    b.era.sleeps_at_handoff() && b.handoff && b.writer
}

/// How long a writer spins on readers. The limit is set when it sees them after nobody, or after one writer behind another. Who
/// waits for a single writer to go is told the next owner only: if that is readers again, the limit of those before is still in
/// force. The clock is read every 16 rounds on readers.
#[derive(Default)]
struct Patience {
    limit: Option<Time>,
    /// Time on readers since the limit was set.
    spun: Time,
    /// Since when readers are seen.
    since: Option<Time>,
}

impl Patience {
    /// What is seen is nothing to be patient with.
    fn reset(&mut self) {
        *self = Self::default();
    }

    /// The spinner looks up from readers, if it spun on them. Whether it has read the clock meanwhile and the limit is over.
    fn ends(&mut self, now: Time, every: Time) -> bool {
        let before = self.spun;
        self.spun += self.since.take().map_or(0, |since| now - since);
        let last_read = now - self.spun % every;
        self.spun / every > before / every && self.limit.is_some_and(|limit| last_read > limit)
    }

    /// It sees readers. When it reads the clock and the limit is over.
    fn on_readers(&mut self, now: Time, every: Time, limit: impl FnOnce() -> Time) -> Time {
        let limit = *self.limit.get_or_insert_with(limit);
        self.since = Some(now);
        let next = now + every - self.spun % every;
        next + (limit + 1).saturating_sub(next).next_multiple_of(every)
    }
}

/// At the head of the OSQ: tries whenever something has changed.
async fn spin_on_owner(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut patience = Patience::default();
    let mut watched: Option<TaskId> = None;
    loop {
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.runs(|code| code.rwsem.attempt);
        cx.pay().await;
        if take_unqueued(cx, lock, side) {
            settle_owner(cx, lock, side).await;
            return true;
        }
        let until = {
            let mut s = cx.state();
            if s.need_resched(cx.id) || !spinnable(&mut s, lock, side) || stops_for_handoff(body(&mut s, lock)) {
                return false;
            }
            let (now, limits, every) = (s.now, s.kernel.rwsem_reader_spin, (CLOCK_EVERY * s.costs.cpu_relax).max(1));
            let b = body(&mut s, lock);
            let owner = b.owner.writer();
            let another = watched.is_some() && owner.is_some() && owner != watched;
            if b.era == Era::V3_16 && another {
                return false; // a sign of heavy contention
            }
            watched = owner;
            let over = patience.ends(now, every);
            if another || b.owner.is_nobody() {
                patience.reset();
            }
            let bounded = side == Side::Write && b.owner.readers;
            if bounded && over {
                set_nonspinnable(b);
                return false;
            }
            let deadline = bounded.then(|| patience.on_readers(now, every, || now + reader_spin(b, limits)));
            SpinUntil { owner_off_cpu: owner, need_resched: true, deadline }
        };
        cx.poll(lock, until).await;
    }
}

/// `rwsem_rspin_threshold`: how long a writer spins on these readers, by what the count has of them. Of readers that were just granted
/// it has one at first.
fn reader_spin(b: &Rwsem, (base, each, cap): (Time, Time, Time)) -> Time {
    (base + each * Time::from(b.readers.saturating_sub(b.uncounted))).min(cap)
}

/// A writer has waited long enough for readers: 5.3 marks them for both sides.
fn set_nonspinnable(b: &mut Rwsem) {
    let no_reader_spin = b.era.readers_spin();
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
