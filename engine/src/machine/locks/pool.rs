//! Unbound workqueues (`WQ_UNBOUND`) have no workers of their own: those with the same attributes share a pool of workers in each pod of
//! CPUs (`struct worker_pool`, `kernel/workqueue.c` 6.12). Who queues work wakes the first idle worker, which went to sleep last; a worker
//! that begins a piece of work wakes the next one if there is more (`kick_pool`), and goes on until nothing is left.
//!
//! The manager, which makes a worker when the last idle one has come to work, is left out: a pool has as many as can be at work.

use super::completion;
use crate::machine::chains::Reason;
use crate::machine::context::Context;
use crate::machine::locks::spinlock;
use crate::machine::state::State;
use crate::waist::{LockId, TaskId};
use std::collections::VecDeque;

/// The pool of a pod.
#[derive(Debug, Default)]
pub struct Pool {
    /// What is to be done, by its queue (`worklist`).
    worklist: VecDeque<LockId>,
    /// Workers that wait for work, and whether they have been woken and have not come to run (`idle_list`).
    idle: Vec<(TaskId, bool)>,
}

/// What a workqueue has in a pod (`struct pool_workqueue`).
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pool: LockId,
    /// So many pieces may be in the work list or at work (`max_active`); others wait.
    most: u32,
    active: u32,
    inactive: u32,
    /// It is one piece (`struct work_struct`) that is queued again and again; else each is another.
    is_one: bool,
    /// Of one piece: it is queued (`WORK_STRUCT_PENDING`); a worker does it; he is to do it again.
    pending: bool,
    executing: bool,
    again: bool,
}

impl Part {
    pub(super) fn new(pool: LockId, most: u32, is_one: bool) -> Self {
        Self { pool, most, active: 0, inactive: 0, is_one, pending: false, executing: false, again: false }
    }
}

fn part(s: &mut State, work: LockId) -> &mut Part {
    completion::body(s, work).part.as_mut().expect("part of a workqueue")
}

fn pool(s: &mut State, pool: LockId) -> &mut Pool {
    completion::body(s, pool).pool.as_mut().expect("a pool")
}

/// `__queue_work`: a piece of work for the pool. Returns who is to be woken for it.
pub(in crate::machine) fn insert_work(s: &mut State, work: LockId) -> Option<TaskId> {
    let p = part(s, work);
    if p.is_one && std::mem::replace(&mut p.pending, true) {
        return None;
    }
    if p.active >= p.most {
        p.inactive += 1;
        return None;
    }
    p.active += 1;
    let of = p.pool;
    pool(s, of).worklist.push_back(work);
    kick(s, of)
}

/// The first idle worker, if there is work and he has not been woken yet (`kick_pool`).
fn kick(s: &mut State, of: LockId) -> Option<TaskId> {
    let pool = pool(s, of);
    let (worker, woken) = pool.idle.last_mut().filter(|_| !pool.worklist.is_empty())?;
    (!std::mem::replace(woken, true)).then_some(*worker)
}

/// A worker has done a piece (`pwq_dec_nr_in_flight`). Returns whether he is to do it again at once.
fn finish(s: &mut State, work: LockId) -> bool {
    let p = part(s, work);
    p.executing = false;
    if std::mem::take(&mut p.again) {
        (p.pending, p.executing) = (false, true);
        return true;
    }
    p.active -= 1;
    if p.inactive > 0 {
        (p.inactive, p.active) = (p.inactive - 1, p.active + 1);
        let of = p.pool;
        pool(s, of).worklist.push_back(work);
    }
    false
}

/// The next piece that nobody is doing: one that somebody is doing he does once more (`find_worker_executing_work`).
fn take(s: &mut State, of: LockId) -> Option<LockId> {
    loop {
        let work = pool(s, of).worklist.pop_front()?;
        let p = part(s, work);
        if p.is_one && p.executing {
            p.again = true;
            p.active -= 1; // his piece counts
            continue;
        }
        (p.pending, p.executing) = (false, true);
        return Some(work);
    }
}

/// `worker_thread`: the worker has done what he did, and waits until there is something to do.
pub(in crate::machine) async fn wait_for_work(cx: &Context, of: LockId) {
    let inner = cx.state().inner(of);
    super::spin_lock(cx, inner).await;
    let done = cx.state().tasks[cx.id as usize].others().work.take();
    let again = done.filter(|&done| finish(&mut cx.state(), done));
    cx.forget_wakeups();
    let work = match again {
        Some(work) => work,
        None => next(cx, of, inner).await,
    };
    cx.state().tasks[cx.id as usize].others().work = Some(work);
    cx.state().tasks[cx.id as usize].function = 0;
    let next = kick(&mut cx.state(), of);
    if let Some(worker) = next {
        cx.wake_waiter(of, worker);
    }
    spinlock::unlock(cx, inner);
}

async fn next(cx: &Context, of: LockId, inner: LockId) -> LockId {
    loop {
        if let Some(work) = take(&mut cx.state(), of) {
            return work;
        }
        pool(&mut cx.state(), of).idle.push((cx.id, false));
        spinlock::unlock(cx, inner);
        cx.park_for(|_| Reason::Completion).await;
        super::spin_lock(cx, inner).await;
        pool(&mut cx.state(), of).idle.retain(|&(worker, _)| worker != cx.id);
    }
}

/// `queue_work`.
pub(super) async fn queue_work(cx: &Context, work: LockId, of: LockId) {
    let inner = cx.state().inner(of);
    super::spin_lock(cx, inner).await;
    let worker = insert_work(&mut cx.state(), work);
    if let Some(worker) = worker {
        cx.wake_waiter(of, worker);
    }
    spinlock::unlock(cx, inner);
}

/// The pool that does a piece of work, if it is one.
pub(super) fn pool_of(s: &mut State, work: LockId) -> Option<LockId> {
    completion::body(s, work).part.as_ref().map(|part| part.pool)
}
