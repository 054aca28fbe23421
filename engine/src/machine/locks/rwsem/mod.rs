//! `struct rw_semaphore` (`lib/rwsem.c`, `kernel/locking/rwsem*.c`), in eight eras: see [`era`].
//!
//! Queued readers are always **granted** the lock; a queued writer is granted it to Linux 3.8 and gets a **hint** since.
//! `reader` and `writer` are the slow paths, `spin` is optimistic spinning, `wake` says whom a release wakes.

mod era;
mod reader;
mod spin;
mod wake;
mod writer;

pub use era::Era;

use super::family::Family;
use super::osq::Osq;
use super::release::Running;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::machine::seldom::{Empty, Seldom};
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::Machine as _;
use crate::waist::{Access, LockId, Side, TaskId};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: TaskId,
    side: Side,
    since: Time,
    /// Marked as the one to get the lock next.
    handoff: bool,
    /// 5.3: the owner word forbade readers to spin when this one came.
    no_reader_spin: bool,
}

/// The owner word: a task and flags. Before 5.3 it is the writer or nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Owner {
    /// The writer, or the reader that came last.
    task: Option<TaskId>,
    /// Readers have it or had it.
    readers: bool,
    /// Readers must not spin (5.3).
    no_reader_spin: bool,
    /// Writers must not spin on these readers.
    no_writer_spin: bool,
}

impl Owner {
    fn writer(self) -> Option<TaskId> {
        self.task.filter(|_| !self.readers)
    }

    fn is_nobody(self) -> bool {
        self.task.is_none() && !self.readers
    }
}

/// State of an rwsem. `readers` includes the shares of readers that are still trying.
#[derive(Debug)]
pub struct Rwsem {
    era: Era,
    readers: u32,
    /// Of them, those who were granted it and whom the granter has not added to the count yet.
    uncounted: u32,
    writer: bool,
    /// Writers whose failed fast path is still in the count (to 3.10).
    arriving_writers: u32,
    handoff: bool,
    owner: Owner,
    slow: Seldom<Slow>,
}

/// What the slow paths keep: most files' rwsems never come to them.
#[derive(Debug, Default)]
struct Slow {
    waiters: VecDeque<Waiter>,
    osq: Osq,
    /// Readers granted but not yet running.
    granted: Vec<TaskId>,
    /// Whom the holder of the wait lock is about to wake.
    wake_list: Vec<TaskId>,
}

impl Empty for Slow {
    const EMPTY: &'static Self =
        &Self { waiters: VecDeque::new(), osq: Osq::new(), granted: Vec::new(), wake_list: Vec::new() };
}

impl Family for Rwsem {
    type Variant = Era;

    const PERF_NAME: &'static str = "rwsem";
    const SHARES_LINE: bool = true;
    const READERS_SHARE: bool = true;

    fn new(era: Era) -> Self {
        Self {
            era,
            readers: 0,
            uncounted: 0,
            writer: false,
            arriving_writers: 0,
            handoff: false,
            owner: Owner::default(),
            slow: Seldom::default(),
        }
    }

    fn try_fast(cx: &Context, lock: LockId, side: Side) -> bool {
        lock_fast(cx, lock, side)
    }

    async fn wait(cx: &Context, lock: LockId, side: Side) -> bool {
        match side {
            Side::Read => reader::down_read_slow(cx, lock).await,
            Side::Write => writer::down_write_slow(cx, lock).await,
        }
    }

    fn release(cx: &Context, lock: LockId, side: Side) -> Option<Running<'_>> {
        let wakes = up(&mut cx.state(), cx.id, lock, side);
        wakes.then(|| Box::pin(wake::next(cx, lock)) as Running<'_>)
    }
}

impl Rwsem {
    /// A writer has it, or is in the count.
    fn written(&self) -> bool {
        self.writer || self.arriving_writers > 0
    }

    /// The active part of the count is not 0.
    fn locked(&self) -> bool {
        self.written() || self.readers > 0
    }

    fn is_first(&self, task: TaskId) -> bool {
        self.slow.waiters.front().is_some_and(|first| first.task == task)
    }

    fn clear_nonspinnable(&mut self) {
        self.owner.no_writer_spin = false;
    }
}

fn body(s: &mut State, lock: LockId) -> &mut Rwsem {
    s.body(lock)
}

fn with<T>(cx: &Context, lock: LockId, f: impl FnOnce(&mut Rwsem) -> T) -> T {
    f(body(&mut cx.state(), lock))
}

/// The one atomic attempt before any slow path, and the trylocks: nobody holds it against me and nobody waits.
fn lock_fast(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    s.touch_lock(cx.id, lock, Access::Atomic);
    let b = body(&mut s, lock);
    let open = b.slow.waiters.is_empty() && !b.handoff && !b.written();
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

/// A task that queued for the line of `lock`, if that is an rwsem, has counted itself in. A reader looks at the owner word beside the
/// count first, to keep what it forbids (`__rwsem_set_reader_owned` since 5.3). Whether it does.
pub(super) fn looks_at_owner(cx: &Context, lock: LockId, side: Side) -> bool {
    let mut s = cx.state();
    let LockKind::Rwsem(era) = s.locks[lock as usize].kind else { return false };
    let looks = side == Side::Read && era.has_phases();
    if looks {
        s.touch_lock(cx.id, lock, Access::Read);
    }
    looks
}

/// Then it writes to the owner word (`rwsem_set_owner`, `rwsem_set_reader_owned`). Who has not queued still has the line, so that this
/// costs nothing.
pub(super) fn wrote_owner(cx: &Context, lock: LockId, side: Side) {
    let mut s = cx.state();
    let LockKind::Rwsem(era) = s.locks[lock as usize].kind else { return };
    if era.writes_owner(side) {
        s.touch_lock(cx.id, lock, Access::Store);
    }
}

/// The same on a slow path.
async fn settle_owner(cx: &Context, lock: LockId, side: Side) {
    if !cx.state().has_queued(cx.id) {
        return;
    }
    cx.pay().await;
    if looks_at_owner(cx, lock, side) {
        cx.settle().await;
    }
    wrote_owner(cx, lock, side);
}

/// Who has failed at once reads the owner word, which is in the line that it has lost meanwhile.
async fn look_at_owner(cx: &Context, lock: LockId) {
    cx.settle().await;
    cx.state().touch_lock(cx.id, lock, Access::Read);
    cx.settle().await;
}

/// `task` takes the free lock for writing.
fn set_writer(s: &mut State, task: TaskId, lock: LockId) {
    let b = body(s, lock);
    b.writer = true;
    b.owner = Owner { task: Some(task), ..Owner::default() };
    let first = b.slow.waiters.front().map(|first| first.task);
    s.take(lock, task, first);
    s.show_pollers(task, lock); // who polled a free but handed-off lock now has an owner to watch
}

/// `task`, whose share is in the count, has the lock for reading, and says so in the owner word.
fn set_reader_owned(s: &mut State, task: TaskId, lock: LockId) {
    if note_reader(s, task, lock) {
        s.show_pollers(task, lock); // a writer that spins on the owner
    }
}

/// The same, for `task` by itself or by who grants it the lock. Whether the owner word was written.
fn note_reader(s: &mut State, task: TaskId, lock: LockId) -> bool {
    let b = body(s, lock);
    let Owner { readers, no_reader_spin, no_writer_spin, .. } = b.owner;
    let written = match b.era {
        Era::V2_6 | Era::V3_10 | Era::V3_16 => false,
        Era::V4_8 => !std::mem::replace(&mut b.owner, Owner { readers: true, ..Owner::default() }).readers,
        Era::V5_3 | Era::V5_4 => {
            b.owner = Owner { task: Some(task), readers: true, no_reader_spin, no_writer_spin: false };
            true
        }
        Era::V5_11 | Era::V5_16 => {
            let no_writer_spin = readers && no_writer_spin;
            b.owner = Owner { task: Some(task), readers: true, no_reader_spin: false, no_writer_spin };
            true
        }
    };
    s.begin_shared(lock, task);
    written
}

/// The first waiter is the next to have the lock: `me` says so in the count.
fn ask_for_handoff(s: &mut State, me: TaskId, lock: LockId) {
    let b = body(s, lock);
    b.handoff = true;
    b.slow.waiters[0].handoff = true;
    if b.era.sleeps_at_handoff() {
        s.show_pollers(me, lock);
    }
}

/// `up_read`, `up_write`, but for those to be woken. Returns whether there are any.
fn up(s: &mut State, me: TaskId, lock: LockId, side: Side) -> bool {
    s.touch_lock(me, lock, Access::Atomic);
    if side == Side::Write {
        return up_write(s, me, lock);
    }
    s.end_shared(lock, me);
    let b = body(s, lock);
    b.readers -= 1;
    if b.readers > 0 {
        return false;
    }
    if !b.slow.waiters.is_empty() {
        b.clear_nonspinnable();
    }
    s.show_pollers(me, lock);
    let b = body(s, lock);
    b.arriving_writers == 0 && !b.slow.waiters.is_empty()
}

fn up_write(s: &mut State, me: TaskId, lock: LockId) -> bool {
    s.end_hold(lock);
    let b = body(s, lock);
    b.writer = false;
    b.owner = Owner::default();
    let wake = !b.slow.waiters.is_empty() && (b.era.has_phases() || !b.locked());
    s.show_pollers(me, lock);
    wake
}
