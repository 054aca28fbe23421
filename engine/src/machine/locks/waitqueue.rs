//! Wait queues (`kernel/sched/wait.c`): the list under `wait_event` and `wake_up`.
//!
//! Non-exclusive entries go to the **head**, exclusive ones to the **tail**. A wake-up goes from head to tail, wakes every
//! non-exclusive entry (so the newest first) and stops after so many exclusive ones (FIFO). It only says that something has
//! changed: whoever is woken looks again. Entry, removal and wake-up are under the queue's own spinlock.

use super::spinlock;
use crate::machine::context::Context;
use crate::machine::state::State;
use crate::waist::{Access, LockId, TaskId};
use std::collections::VecDeque;

/// How a waiter is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Woken by every wake-up.
    NonExclusive,
    /// Woken one at a time.
    Exclusive,
}

/// A queue inside some lock.
#[derive(Debug, Default)]
pub struct WaitQueue {
    /// Its raw spinlock.
    pub lock: Option<LockId>,
    entries: VecDeque<(TaskId, Entry)>,
}

impl WaitQueue {
    /// Takes off the first who waits.
    pub fn take_first(&mut self) -> Option<TaskId> {
        self.entries.pop_front().map(|(task, _)| task)
    }
}

/// Finds the queue inside a lock.
pub type Find = fn(&mut State, LockId) -> &mut WaitQueue;

fn raw_lock(cx: &Context, lock: LockId, queue: Find) -> LockId {
    queue(&mut cx.state(), lock).lock.expect("a wait queue has its spinlock from the start")
}

fn is_queued(cx: &Context, lock: LockId, queue: Find) -> bool {
    queue(&mut cx.state(), lock).entries.iter().any(|&(task, _)| task == cx.id)
}

/// `prepare_to_wait`: enters the queue, unless still in it. From here on no wake-up is lost, so what is waited for must be
/// looked at after this and before sleeping.
pub(in crate::machine) async fn prepare(cx: &Context, lock: LockId, queue: Find, entry: Entry) {
    let raw = raw_lock(cx, lock, queue);
    super::spin_lock(cx, raw).await;
    cx.forget_wakeups();
    if !is_queued(cx, lock, queue) {
        let mut s = cx.state();
        let entries = &mut queue(&mut s, lock).entries;
        match entry {
            Entry::NonExclusive => entries.push_front((cx.id, entry)),
            Entry::Exclusive => entries.push_back((cx.id, entry)),
        }
    }
    spinlock::unlock(cx, raw);
}

/// `finish_wait`: leaves the queue, unless a wake-up has removed the task already.
pub(in crate::machine) async fn finish(cx: &Context, lock: LockId, queue: Find) {
    if is_queued(cx, lock, queue) {
        let raw = raw_lock(cx, lock, queue);
        super::spin_lock(cx, raw).await;
        queue(&mut cx.state(), lock).entries.retain(|&(task, _)| task != cx.id);
        spinlock::unlock(cx, raw);
    }
}

/// `wait_event`: sleeps, as a non-exclusive waiter, until `done`. Returns whether it slept.
pub(in crate::machine) async fn wait_event(
    cx: &Context,
    lock: LockId,
    queue: Find,
    done: fn(&mut State, LockId) -> bool,
) -> bool {
    let look = || {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Read);
        done(&mut s, lock)
    };
    if look() {
        return false;
    }
    let mut slept = false;
    loop {
        prepare(cx, lock, queue, Entry::NonExclusive).await;
        if look() {
            break;
        }
        cx.park_here().await;
        slept = true;
    }
    finish(cx, lock, queue).await;
    slept
}

/// `wake_up`, if anybody waits (`waitqueue_active`): all non-exclusive waiters and `exclusive` exclusive ones.
pub(in crate::machine) async fn wake_up(cx: &Context, lock: LockId, queue: Find, exclusive: usize) {
    {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Read);
        if queue(&mut s, lock).entries.is_empty() {
            return;
        }
    }
    let raw = raw_lock(cx, lock, queue);
    super::spin_lock(cx, raw).await;
    let mut left = exclusive;
    loop {
        let next = {
            let mut s = cx.state();
            let entries = &mut queue(&mut s, lock).entries;
            match entries.front() {
                Some((_, Entry::Exclusive)) if left == 0 => None,
                Some((_, Entry::Exclusive)) => {
                    left -= 1;
                    entries.pop_front()
                }
                _ => entries.pop_front(),
            }
        };
        let Some((task, _)) = next else { break };
        cx.wake_waiter(lock, task);
    }
    spinlock::unlock(cx, raw);
}
