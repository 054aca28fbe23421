//! `percpu_rw_semaphore` (`kernel/locking/percpu-rwsem.c`): freeze protection (`sb_start_write`).
//!
//! Readers count on their own CPU: no shared line, nothing to contend for. A writer that comes after a time without writers
//! waits for a grace period, in which readers go on (`rcu_sync_enter`); then it blocks new readers and waits for the last one
//! inside. Waiting tasks are granted when it leaves, up to the next writer. Writers that follow within a grace period of the
//! last one wait for none.

use super::family::Family;
use super::release::Running;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::{LockId, Machine, Side, TaskId};
use std::collections::VecDeque;

/// State of a percpu-rwsem.
#[derive(Debug, Default)]
pub struct PercpuRwsem {
    readers: u32,
    /// A writer has it or waits for the readers to leave.
    blocked: bool,
    draining: Option<TaskId>,
    waiters: VecDeque<(TaskId, Side)>,
    granted: Vec<TaskId>,
    sync: Sync,
}

/// `struct rcu_sync`: whether readers know that there are writers.
#[derive(Debug, Default)]
struct Sync {
    /// Writers that have it, wait for it, or wait for readers to know.
    writers: u32,
    /// When readers know of them.
    passed: Time,
    /// When readers, without writers, have forgotten.
    idle: Time,
}

impl Sync {
    /// `rcu_sync_enter`: when the writer may go on.
    fn enter(&mut self, now: Time, grace: Time) -> Time {
        if self.writers == 0 && now >= self.idle {
            self.passed = now + grace;
        }
        self.writers += 1;
        self.passed
    }

    /// `rcu_sync_exit`.
    fn exit(&mut self, now: Time, grace: Time) {
        self.writers -= 1;
        self.idle = now + grace;
    }
}

impl Family for PercpuRwsem {
    type Variant = ();

    const PERF_NAME: &'static str = "percpu-rwsem";
    const READERS_SHARE: bool = true;

    fn new((): ()) -> Self {
        Self::default()
    }

    fn inner((): ()) -> Option<(&'static str, LockKind)> {
        None
    }

    /// Readers enter unless a writer blocks; writers always take the slow path.
    fn try_fast(cx: &Context, lock: LockId, side: Side) -> bool {
        if side == Side::Write {
            return false;
        }
        let mut s = cx.state();
        let b = body(&mut s, lock);
        if b.blocked {
            return false;
        }
        b.readers += 1;
        s.begin_shared(lock, cx.id);
        true
    }

    async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
        wait(cx, lock, side).await
    }

    fn release(cx: &Context, lock: LockId, side: Side) -> Option<Running<'_>> {
        unlock(cx, lock, side);
        None
    }
}

fn body(s: &mut State, lock: LockId) -> &mut PercpuRwsem {
    s.body(lock)
}

/// Waits: readers for the writer to leave, a writer for the grace period, its turn, and the readers. Whether it slept.
async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut slept = side == Side::Write && sync_with_readers(cx, lock).await;
    cx.forget_wakeups();
    let queued = {
        let mut s = cx.state();
        let b = body(&mut s, lock);
        let queued = b.blocked;
        if queued {
            b.waiters.push_back((cx.id, side));
        } else {
            b.blocked = true;
        }
        queued
    };
    if queued {
        while !body(&mut cx.state(), lock).granted.contains(&cx.id) {
            cx.park_here().await;
        }
        body(&mut cx.state(), lock).granted.retain(|&task| task != cx.id);
        slept = true;
    }
    if side == Side::Write {
        slept |= drain_readers(cx, lock).await;
    }
    slept
}

async fn sync_with_readers(cx: &Context, lock: LockId) -> bool {
    let left = {
        let mut s = cx.state();
        let (now, grace) = (s.now, s.kernel.grace_period);
        body(&mut s, lock).sync.enter(now, grace).saturating_sub(now)
    };
    if left > 0 {
        cx.sleep(left).await;
    }
    left > 0
}

async fn drain_readers(cx: &Context, lock: LockId) -> bool {
    body(&mut cx.state(), lock).draining = Some(cx.id);
    let mut slept = false;
    while body(&mut cx.state(), lock).readers > 0 {
        cx.park_here().await;
        slept = true;
    }
    body(&mut cx.state(), lock).draining = None;
    cx.state().begin_hold(lock, cx.id);
    slept
}

/// Leaves; the last reader pokes a waiting writer, a writer grants those who wait up to the next writer.
fn unlock(cx: &Context, lock: LockId, side: Side) {
    match side {
        Side::Read => {
            let writer = {
                let mut s = cx.state();
                let b = body(&mut s, lock);
                b.readers -= 1;
                let writer = b.draining.filter(|_| b.readers == 0);
                s.end_shared(lock, cx.id);
                writer
            };
            if let Some(writer) = writer {
                cx.wake_waiter(lock, writer);
            }
        }
        Side::Write => {
            {
                let mut s = cx.state();
                s.end_hold(lock);
                let (now, grace) = (s.now, s.kernel.grace_period);
                let b = body(&mut s, lock);
                b.blocked = false;
                b.sync.exit(now, grace);
            }
            loop {
                let next = grant_next(&mut cx.state(), lock);
                let Some(task) = next else { return };
                cx.wake_waiter(lock, task);
            }
        }
    }
}

fn grant_next(s: &mut State, lock: LockId) -> Option<TaskId> {
    let b = body(s, lock);
    if b.blocked {
        return None; // a writer was granted: nobody behind it may enter
    }
    let (task, side) = b.waiters.pop_front()?;
    match side {
        Side::Read => b.readers += 1,
        Side::Write => b.blocked = true,
    }
    b.granted.push(task);
    let class = s.locks[lock as usize].class;
    s.classes[class as usize].handoffs += 1;
    if side == Side::Read {
        s.begin_shared(lock, task);
    }
    Some(task)
}
