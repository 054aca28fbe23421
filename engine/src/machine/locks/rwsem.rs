//! `struct rw_semaphore` of Linux 5.11 and later (`kernel/locking/rwsem.c`).
//!
//! Writers spin (OSQ) on a running writer, and for 10 to 25 us on readers; they steal. Readers never spin; they steal once,
//! on entry, when not crowded. Queued readers are **granted**, all of them (up to 256) in one phase; a queued writer gets a
//! **hint**. Who is first and has waited 4 ms marks a hand-off, which stops stealing.

use super::osq::{self, Osq};
use super::spinlock;
use crate::machine::context::{Context, SpinUntil};
use crate::machine::line::Access;
use crate::machine::lock::{Body, LockId, Side};
use crate::machine::state::State;
use crate::machine::task::TaskId;
use crate::machine::time::Time;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: TaskId,
    side: Side,
    since: Time,
    /// Marked as the one to get the lock next.
    handoff: bool,
}

/// What the owner word says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    Nobody,
    /// Readers have it or had it; `nonspinnable`: writers must not spin on them.
    Readers { nonspinnable: bool },
    Writer(TaskId),
}

/// State of an rwsem. `readers` includes the shares of readers that are still trying.
#[derive(Debug, Default)]
pub struct Rwsem {
    readers: u32,
    writer: bool,
    handoff: bool,
    owner: Owner,
    waiters: VecDeque<Waiter>,
    osq: Osq,
    /// Spinners that look at the count and owner words.
    pollers: Vec<TaskId>,
    /// Readers granted but not yet running.
    granted: Vec<TaskId>,
}

impl Rwsem {
    fn locked(&self) -> bool {
        self.writer || self.readers > 0
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Rwsem {
    match &mut s.locks[lock as usize].body {
        Body::Rwsem(body) => body,
        _ => unreachable!("kind and body agree"),
    }
}

fn osq_of(s: &mut State, lock: LockId) -> &mut Osq {
    &mut body(s, lock).osq
}

fn with<T>(cx: &Context, lock: LockId, f: impl FnOnce(&mut Rwsem) -> T) -> T {
    f(body(&mut cx.state(), lock))
}

/// The one atomic attempt before any slow path: nobody holds it against me and nobody waits.
pub(in crate::machine) fn lock_fast(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Write);
    let b = body(&mut s, lock);
    let open = b.waiters.is_empty() && !b.handoff && !b.writer;
    match side {
        Side::Read if open => {
            b.readers += 1;
            set_reader_owned(&mut s, cx.id, lock);
            true
        }
        Side::Write if open && b.readers == 0 => {
            set_writer(&mut s, cx.id, lock);
            true
        }
        _ => false,
    }
}

/// `down_read_trylock`, `down_write_trylock`.
pub(in crate::machine) fn try_lock(cx: &Context, lock: LockId, side: Side) -> bool {
    lock_fast(cx, lock, side)
}

fn set_writer(s: &mut State, task: TaskId, lock: LockId) {
    let b = body(s, lock);
    b.writer = true;
    b.owner = Owner::Writer(task);
    let class = s.locks[lock as usize].class;
    let steals = body(s, lock).waiters.front().is_some_and(|first| first.task != task);
    s.classes[class as usize].steals += u64::from(steals);
    s.begin_hold(lock, task);
    show_pollers(s, task, lock); // who polled a free but handed-off lock now has an owner to watch
}

fn set_reader_owned(s: &mut State, task: TaskId, lock: LockId) {
    let b = body(s, lock);
    if !matches!(b.owner, Owner::Readers { .. }) {
        b.owner = Owner::Readers { nonspinnable: false };
    }
    s.begin_shared(lock, task);
}

/// `rwsem_down_read_slowpath`. Returns whether it slept.
pub(in crate::machine) async fn down_read_slow(cx: &Context, lock: LockId) -> bool {
    let crowded = with(cx, lock, |b| {
        b.readers += 1; // the share that the fast path's add left behind
        !b.writer && matches!(b.owner, Owner::Readers { .. }) && b.readers > 1
    });
    let inner = cx.state().inner(lock);
    if !crowded && with(cx, lock, |b| !b.writer && !b.handoff) {
        let first = {
            let mut s = cx.state();
            set_reader_owned(&mut s, cx.id, lock);
            let b = body(&mut s, lock);
            b.readers == 1 && !b.waiters.is_empty()
        };
        if first {
            super::spin_lock(cx, inner).await;
            let woken = wake_readers_at_head(&mut cx.state(), lock);
            spinlock::unlock(cx, inner);
            wake_all(cx, lock, woken);
        }
        return false;
    }
    super::spin_lock(cx, inner).await;
    if with(cx, lock, |b| b.waiters.is_empty() && !b.writer && !b.handoff) {
        set_reader_owned(&mut cx.state(), cx.id, lock);
        spinlock::unlock(cx, inner);
        return false;
    }
    let woken = queue_reader(cx, lock);
    spinlock::unlock(cx, inner);
    wake_all(cx, lock, woken);
    while with(cx, lock, |b| !b.granted.contains(&cx.id)) {
        cx.park_here().await;
    }
    with(cx, lock, |b| b.granted.retain(|&reader| reader != cx.id));
    true
}

/// Gives the share back, appends the reader, and wakes who may go now.
fn queue_reader(cx: &Context, lock: LockId) -> Vec<TaskId> {
    cx.forget_wakeups();
    let mut s = cx.state();
    let now = s.now;
    let b = body(&mut s, lock);
    b.waiters.push_back(Waiter { task: cx.id, side: Side::Read, since: now, handoff: false });
    b.readers -= 1;
    wake_who_may_go(&mut s, lock)
}

/// `rwsem_cond_wake_waiter`: nobody while a writer holds it, queued readers beside readers, anybody if it is free.
fn wake_who_may_go(s: &mut State, lock: LockId) -> Vec<TaskId> {
    let b = body(s, lock);
    if b.writer {
        Vec::new()
    } else if b.readers > 0 {
        wake_readers_at_head(s, lock)
    } else {
        clear_nonspinnable(b);
        wake_any(s, lock)
    }
}

/// `rwsem_down_write_slowpath`. Returns whether it slept.
pub(in crate::machine) async fn down_write_slow(cx: &Context, lock: LockId) -> bool {
    cx.preempt_disable();
    let taken = spin_as_writer(cx, lock).await;
    cx.preempt_enable();
    if taken {
        return false;
    }
    cx.reschedule().await;
    wait_as_writer(cx, lock).await
}

async fn spin_as_writer(cx: &Context, lock: LockId) -> bool {
    let may = {
        let mut s = cx.state();
        !s.need_resched(cx.id) && spinnable(&mut s, lock)
    };
    if !may || !osq::lock(cx, lock, osq_of).await {
        return false;
    }
    let taken = spin_on_owner(cx, lock).await;
    osq::unlock(cx, lock, osq_of);
    taken
}

/// `rwsem_can_spin_on_owner`: a running writer, readers not marked, or nobody.
fn spinnable(s: &mut State, lock: LockId) -> bool {
    match body(s, lock).owner {
        Owner::Nobody => true,
        Owner::Readers { nonspinnable } => !nonspinnable,
        Owner::Writer(owner) => s.on_cpu(owner),
    }
}

/// `rwsem_optimistic_spin`, at the head of the OSQ.
async fn spin_on_owner(cx: &Context, lock: LockId) -> bool {
    let mut patience: Option<Time> = None; // until when to spin on readers
    loop {
        cx.state().touch_lock(cx.id, lock, Access::Read);
        cx.pay().await;
        if steal_as_writer(cx, lock) {
            return true;
        }
        let until = {
            let mut s = cx.state();
            if s.need_resched(cx.id) || !spinnable(&mut s, lock) {
                return false;
            }
            let now = s.now;
            let (base, each, cap) = s.kernel.rwsem_reader_spin;
            let b = body(&mut s, lock);
            let owner_off_cpu = if let Owner::Writer(owner) = b.owner { Some(owner) } else { None };
            let reader_owned = matches!(b.owner, Owner::Readers { .. });
            patience = reader_owned
                .then(|| patience.unwrap_or(now + (base + each * Time::from(b.readers)).min(cap)));
            if patience.is_some_and(|end| now >= end) {
                b.owner = Owner::Readers { nonspinnable: true };
                return false;
            }
            b.pollers.push(cx.id);
            SpinUntil { owner_off_cpu, need_resched: true, deadline: patience }
        };
        cx.spin(until).await;
        with(cx, lock, |b| b.pollers.retain(|&poller| poller != cx.id));
    }
}

/// `rwsem_try_write_lock_unqueued`: takes a free lock past the queue unless a hand-off is marked.
fn steal_as_writer(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    let b = body(&mut s, lock);
    if b.locked() || b.handoff {
        return false;
    }
    s.touch_lock(cx.id, lock, Access::Write);
    set_writer(&mut s, cx.id, lock);
    true
}

async fn wait_as_writer(cx: &Context, lock: LockId) -> bool {
    let inner = cx.state().inner(lock);
    super::spin_lock(cx, inner).await;
    cx.forget_wakeups();
    let woken = queue_writer(cx, lock);
    if !woken.is_empty() {
        spinlock::unlock(cx, inner);
        wake_all(cx, lock, woken);
        super::spin_lock(cx, inner).await;
    }
    let mut slept = false;
    while !take_as_queued_writer(cx, lock) {
        spinlock::unlock(cx, inner);
        let marked = with(cx, lock, |b| b.waiters.iter().any(|w| w.task == cx.id && w.handoff));
        if !(marked && spin_for_handoff(cx, lock).await) {
            cx.park_here().await;
            slept = true;
        }
        super::spin_lock(cx, inner).await;
    }
    spinlock::unlock(cx, inner);
    slept
}

/// Appends the writer; wakes readers at the head if readers hold the lock, or anybody if it is free.
fn queue_writer(cx: &Context, lock: LockId) -> Vec<TaskId> {
    let mut s = cx.state();
    let now = s.now;
    let b = body(&mut s, lock);
    let alone = b.waiters.is_empty();
    b.waiters.push_back(Waiter { task: cx.id, side: Side::Write, since: now, handoff: false });
    if alone {
        Vec::new()
    } else {
        wake_who_may_go(&mut s, lock)
    }
}

/// `rwsem_try_write_lock`, under the wait lock: takes the lock, or marks the first waiter after 4 ms.
fn take_as_queued_writer(cx: &Context, lock: LockId) -> bool {
    let mut s = cx.state();
    let (now, patience) = (s.now, s.kernel.rwsem_handoff_wait);
    let b = body(&mut s, lock);
    let first = b.waiters[0];
    if b.handoff && first.handoff && first.task != cx.id {
        return false;
    }
    if b.locked() {
        let since = b.waiters.iter().find(|w| w.task == cx.id).map_or(now, |w| w.since);
        if !b.handoff && now - since > patience {
            b.handoff = true;
            b.waiters[0].handoff = true;
        }
        return false;
    }
    b.handoff = false;
    b.waiters.retain(|w| w.task != cx.id);
    s.touch_lock(cx.id, lock, Access::Write);
    set_writer(&mut s, cx.id, lock);
    true
}

/// The marked waiter spins on a running writer. True if it should try again at once.
async fn spin_for_handoff(cx: &Context, lock: LockId) -> bool {
    cx.pay().await;
    let owner = with(cx, lock, |b| b.owner);
    match owner {
        Owner::Nobody => true,
        Owner::Readers { .. } => false,
        Owner::Writer(task) => {
            let may = {
                let s = cx.state();
                s.on_cpu(task) && !s.need_resched(cx.id)
            };
            if may {
                with(cx, lock, |b| b.pollers.push(cx.id));
                cx.spin(SpinUntil { owner_off_cpu: Some(task), need_resched: true, deadline: None }).await;
                with(cx, lock, |b| b.pollers.retain(|&poller| poller != cx.id));
                with(cx, lock, |b| b.owner == Owner::Nobody)
            } else {
                false
            }
        }
    }
}

fn clear_nonspinnable(b: &mut Rwsem) {
    if let Owner::Readers { nonspinnable } = &mut b.owner {
        *nonspinnable = false;
    }
}

/// `rwsem_mark_wake(RWSEM_WAKE_ANY)`: a writer at the head is woken; readers are granted. Returns whom to wake.
fn wake_any(s: &mut State, lock: LockId) -> Vec<TaskId> {
    match body(s, lock).waiters.front() {
        Some(Waiter { task, side: Side::Write, .. }) => vec![*task],
        Some(_) => wake_readers_at_head(s, lock),
        None => Vec::new(),
    }
}

/// If a reader is first: grants all queued readers, up to the batch limit. Returns whom to wake.
fn wake_readers_at_head(s: &mut State, lock: LockId) -> Vec<TaskId> {
    let (now, patience, batch) = (s.now, s.kernel.rwsem_handoff_wait, s.kernel.rwsem_reader_batch);
    let b = body(s, lock);
    match b.waiters.front() {
        Some(first) if first.side == Side::Read => {
            if b.writer {
                // a writer stole it: the reader asks for a hand-off once it has waited long enough
                if now - first.since > patience && !b.handoff {
                    b.handoff = true;
                    b.waiters[0].handoff = true;
                }
                return Vec::new();
            }
        }
        _ => return Vec::new(),
    }
    let readers: Vec<TaskId> =
        b.waiters.iter().filter(|w| w.side == Side::Read).map(|w| w.task).take(batch).collect();
    b.waiters.retain(|w| w.side == Side::Write || !readers.contains(&w.task));
    b.readers += readers.len() as u32;
    b.granted.extend(&readers);
    b.handoff = false;
    for &reader in &readers {
        set_reader_owned(s, reader, lock);
    }
    let class = s.locks[lock as usize].class;
    s.classes[class as usize].handoffs += readers.len() as u64;
    readers
}

fn wake_all(cx: &Context, lock: LockId, tasks: Vec<TaskId>) {
    for task in tasks {
        cx.wake_waiter(lock, task);
    }
}

/// `up_read`.
pub(in crate::machine) async fn up_read(cx: &Context, lock: LockId) {
    let wake = {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Write);
        s.end_shared(lock, cx.id);
        let b = body(&mut s, lock);
        b.readers -= 1;
        let last = b.readers == 0;
        if last {
            clear_nonspinnable(b);
            show_pollers(&mut s, cx.id, lock);
        }
        last && !body(&mut s, lock).waiters.is_empty()
    };
    if wake {
        wake_next(cx, lock).await;
    }
}

/// `up_write`.
pub(in crate::machine) async fn up_write(cx: &Context, lock: LockId) {
    let wake = {
        let mut s = cx.state();
        s.touch_lock(cx.id, lock, Access::Write);
        s.end_hold(lock);
        let b = body(&mut s, lock);
        b.writer = false;
        b.owner = Owner::Nobody;
        let wake = !b.waiters.is_empty();
        show_pollers(&mut s, cx.id, lock);
        wake
    };
    if wake {
        wake_next(cx, lock).await;
    }
}

async fn wake_next(cx: &Context, lock: LockId) {
    let inner = cx.state().inner(lock);
    super::spin_lock(cx, inner).await;
    let woken = wake_any(&mut cx.state(), lock);
    spinlock::unlock(cx, inner);
    wake_all(cx, lock, woken);
}

/// The count or owner word changed: pollers see it when their refetch is served.
fn show_pollers(s: &mut State, writer: TaskId, lock: LockId) {
    let pollers = std::mem::take(&mut body(s, lock).pollers);
    for &poller in &pollers {
        s.show(writer, lock, poller);
    }
    body(s, lock).pollers = pollers;
}
