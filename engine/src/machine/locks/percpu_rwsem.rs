//! `percpu_rw_semaphore` (`kernel/locking/percpu-rwsem.c`): freeze protection (`sb_start_write`).
//!
//! Readers count on their own CPU: no shared line, nothing to contend for. A writer blocks new readers, waits for a grace
//! period and then for the last reader; waiting readers are granted when it leaves.

use crate::machine::context::Context;
use crate::machine::lock::{Body, LockId, Side};
use crate::machine::state::State;
use crate::machine::task::TaskId;
use crate::waist::Machine;
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
}

fn body(s: &mut State, lock: LockId) -> &mut PercpuRwsem {
    match &mut s.locks[lock as usize].body {
        Body::PercpuRwsem(body) => body,
        _ => unreachable!("kind and body agree"),
    }
}

/// Readers enter unless a writer blocks; writers always take the slow path.
pub(in crate::machine) fn try_lock(cx: &Context, lock: LockId, side: Side) -> bool {
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

/// Waits: readers for the writer to leave, a writer for its turn and for the readers to leave. Always sleeps.
pub(in crate::machine) async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
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
    }
    if side == Side::Write {
        drain_readers(cx, lock).await;
    }
    true
}

async fn drain_readers(cx: &Context, lock: LockId) {
    let grace = cx.state().kernel.grace_period;
    cx.sleep(grace).await;
    body(&mut cx.state(), lock).draining = Some(cx.id);
    while body(&mut cx.state(), lock).readers > 0 {
        cx.park_here().await;
    }
    body(&mut cx.state(), lock).draining = None;
    cx.state().begin_hold(lock, cx.id);
}

/// Leaves; the last reader pokes a waiting writer, a writer grants those who wait up to the next writer.
pub(in crate::machine) async fn unlock(cx: &Context, lock: LockId, side: Side) {
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
            cx.state().end_hold(lock);
            body(&mut cx.state(), lock).blocked = false;
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
