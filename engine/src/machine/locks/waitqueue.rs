//! Wait queues (`kernel/sched/wait.c`) of exclusive waiters: first come, first woken, one at a time.
//!
//! A wake-up only says that something has changed: whoever is woken looks again. Entry, removal and wake-up are under the
//! queue's own spinlock.

use super::spinlock;
use crate::machine::context::Context;
use crate::machine::line::Access;
use crate::machine::lock::LockId;
use crate::machine::state::State;
use crate::machine::task::TaskId;
use std::collections::VecDeque;

/// A queue inside some lock.
#[derive(Debug, Default)]
pub struct WaitQueue {
    /// Its raw spinlock.
    pub lock: Option<LockId>,
    entries: VecDeque<TaskId>,
}

/// Finds the queue inside a lock.
pub type Find = fn(&mut State, LockId) -> &mut WaitQueue;

fn raw_lock(cx: &Context, lock: LockId, queue: Find) -> LockId {
    queue(&mut cx.state(), lock).lock.expect("a wait queue has its spinlock from the start")
}

/// `prepare_to_wait_exclusive`: enters the queue. From here on no wake-up is lost, so what is waited for must be looked at
/// after this and before sleeping.
pub(in crate::machine) async fn prepare(cx: &Context, lock: LockId, queue: Find) {
    let raw = raw_lock(cx, lock, queue);
    super::spin_lock(cx, raw).await;
    cx.forget_wakeups();
    queue(&mut cx.state(), lock).entries.push_back(cx.id);
    spinlock::unlock(cx, raw);
}

/// `finish_wait`: leaves the queue, unless a wake-up has removed the task already.
pub(in crate::machine) async fn finish(cx: &Context, lock: LockId, queue: Find) {
    let queued = queue(&mut cx.state(), lock).entries.contains(&cx.id);
    if queued {
        let raw = raw_lock(cx, lock, queue);
        super::spin_lock(cx, raw).await;
        queue(&mut cx.state(), lock).entries.retain(|&task| task != cx.id);
        spinlock::unlock(cx, raw);
    }
}

/// `wake_up`, if anybody waits (`waitqueue_active`): the first.
pub(in crate::machine) async fn wake_up(cx: &Context, lock: LockId, queue: Find) {
    {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Read);
        if queue(&mut s, lock).entries.is_empty() {
            return;
        }
    }
    let raw = raw_lock(cx, lock, queue);
    super::spin_lock(cx, raw).await;
    let first = queue(&mut cx.state(), lock).entries.pop_front();
    if let Some(first) = first {
        cx.wake_waiter(lock, first);
    }
    spinlock::unlock(cx, raw);
}
