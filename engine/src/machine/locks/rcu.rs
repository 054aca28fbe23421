//! RCU as a workload sees it (`kernel/rcu/tree.c`): readers write nothing and wait for nobody; an updater excludes other
//! updaters with a mutex, changes the data beside the readers, and waits for a *grace period* after that
//! (`synchronize_rcu`): until all readers are gone that might have seen the data as they were.
//!
//! A grace period takes `percpu_rwsem_grace_period`, and longer if a reader is inside that was there when it began. Who asks
//! while one is under way waits for the next, with all others who do. What the kernel does meanwhile (ticks, the kernel
//! thread that drives it) costs nothing here.

use super::family::Family;
use super::mutex;
use super::release::Running;
use crate::machine::chains::Reason;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{LockId, Machine, Side, TaskId};

/// State of what RCU protects.
#[derive(Debug, Default)]
pub struct Rcu {
    /// Readers inside, and since when.
    readers: Vec<(TaskId, Time)>,
    /// The last grace period, which may not have begun.
    begins: Time,
    ends: Time,
    /// Updaters that wait for readers although its time is over.
    waiters: Vec<TaskId>,
}

impl Family for Rcu {
    type Variant = ();

    const PERF_NAME: &'static str = "mutex";

    fn new((): ()) -> Self {
        Self::default()
    }

    fn inner((): ()) -> Option<(&'static str, LockKind)> {
        Some(("mutex", LockKind::Mutex(())))
    }

    /// `rcu_read_lock`; an updater takes the mutex if it is free.
    fn try_fast(cx: &Context, lock: LockId, side: Side) -> bool {
        if side == Side::Read {
            let mut s = cx.state();
            let now = s.now;
            body(&mut s, lock).readers.push((cx.id, now));
            s.begin_reading(lock, cx.id);
            return true;
        }
        let inner = cx.state().inner(lock);
        let taken = mutex::lock_fast(cx, inner);
        if taken {
            cx.state().begin_hold(lock, cx.id);
        }
        taken
    }

    /// An updater waits for the mutex.
    async fn wait(cx: &Context, lock: LockId, _side: Side) -> bool {
        let inner = cx.state().inner(lock);
        cx.begin_wait(inner, Side::Write);
        let slept = mutex::lock_slow(cx, inner).await;
        cx.end_wait(slept);
        cx.state().begin_hold(lock, cx.id);
        slept
    }

    fn release(cx: &Context, lock: LockId, side: Side) -> Option<Running<'_>> {
        Some(Box::pin(unlock(cx, lock, side)))
    }
}

impl Rcu {
    /// The beginning and the end of a grace period that begins at `now` or later.
    fn grace_period(&mut self, now: Time, takes: Time) -> (Time, Time) {
        if now > self.begins || self.ends == 0 {
            self.begins = now.max(self.ends);
            self.ends = self.begins + takes;
        }
        (self.begins, self.ends)
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Rcu {
    s.body(lock)
}

/// `rcu_read_unlock`, or the end of an update with `synchronize_rcu`.
async fn unlock(cx: &Context, lock: LockId, side: Side) {
    if side == Side::Read {
        return leave(&mut cx.state(), cx.id, lock);
    }
    cx.state().end_hold(lock);
    let inner = cx.state().inner(lock);
    mutex::unlock(cx, inner).await;
    synchronize(cx, lock).await;
}

/// A reader leaves; who waits for readers looks again. Nobody pays for that wake-up: a kernel thread does it.
fn leave(s: &mut State, me: TaskId, lock: LockId) {
    let b = body(s, lock);
    let at = b.readers.iter().rposition(|&(task, _)| task == me).expect("it is inside");
    b.readers.remove(at);
    let waiters = std::mem::take(&mut b.waiters);
    s.end_reading(lock, me);
    for updater in waiters {
        s.wake(updater, None);
    }
}

async fn synchronize(cx: &Context, lock: LockId) {
    cx.pay().await;
    let (begins, left) = {
        let mut s = cx.state();
        let (now, takes) = (s.now, s.kernel.grace_period);
        let (begins, ends) = body(&mut s, lock).grace_period(now, takes);
        (begins, ends - now)
    };
    cx.sleep(left).await;
    cx.forget_wakeups();
    while has_readers_since(&mut cx.state(), cx.id, lock, begins) {
        cx.park_for(|_| Reason::WakeUp).await;
    }
}

/// Whether a reader is inside that was there at `begins`; if so `me` is told when one leaves.
fn has_readers_since(s: &mut State, me: TaskId, lock: LockId, begins: Time) -> bool {
    let b = body(s, lock);
    let waits = b.readers.iter().any(|&(_, since)| since <= begins);
    if waits && !b.waiters.contains(&me) {
        b.waiters.push(me);
    }
    waits
}
