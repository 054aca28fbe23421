//! What a family of locks gives the machine: its state and its algorithm, in a file of its own.

use super::release::Running;
use super::waitqueue::WaitQueue;
use crate::machine::context::Context;
use crate::machine::lock::{Body, LockKind};
use crate::machine::state::State;
use crate::waist::{LockId, Mode, Side};
use std::fmt::Debug;

/// A family of locks; the value is the state of one lock. [`lock_kind`](crate::machine::lock::kind) has the table of all.
#[allow(async_fn_in_trait)] // the machine has one thread
pub trait Family: InBody + Sized {
    /// What its kinds differ in: a policy, an era, or nothing.
    type Variant: Copy + Debug + Eq;

    /// The type as `perf lock contention` prints it.
    const PERF_NAME: &'static str;
    /// Whether who waits for it may sleep.
    const MAY_SLEEP: bool = true;
    /// Word and wait lock are in one cache line: a mutex has 32 to 40 bytes, an rwsem 40, a semaphore 24, a seqlock 8.
    const SHARES_LINE: bool = false;
    /// Whether its holders turn it from spinning to blocking and back.
    const HAS_MODES: bool = false;
    /// Whether readers share it, and keep writers out.
    const READERS_SHARE: bool = false;
    /// The role whose kind in the kernel profile the lock inside has, if that is told.
    const INNER_ROLE: Option<&'static str> = None;

    /// A free lock.
    fn new(variant: Self::Variant) -> Self;

    /// The lock inside such locks: how its class is called, after theirs, and its kind.
    fn inner(_variant: Self::Variant) -> Option<(&'static str, LockKind)> {
        Some(("wait_lock", LockKind::QSPINLOCK))
    }

    /// The wait queues in it.
    fn wait_queues(&mut self) -> &mut [WaitQueue] {
        &mut []
    }

    /// The one atomic attempt before any waiting.
    fn try_fast(cx: &Context, lock: LockId, side: Side) -> bool;

    /// The trylock, where that differs.
    fn try_lock(cx: &Context, lock: LockId, side: Side) -> bool {
        Self::try_fast(cx, lock, side)
    }

    /// Takes it if that needs no sleep, where it has modes.
    async fn try_lock_spinning(cx: &Context, lock: LockId, side: Side) -> bool {
        Self::try_lock(cx, lock, side)
    }

    /// Waits for it when the attempt has failed. Returns whether the task has slept.
    async fn wait(cx: &Context, lock: LockId, side: Side) -> bool;

    /// Begins to release it. Returns the rest, if that is not all.
    fn release(cx: &Context, lock: LockId, side: Side) -> Option<Running<'_>>;

    /// Changes the mode in which the task holds it, if it has modes.
    async fn convert(_cx: &Context, _lock: LockId, _side: Side, _mode: Mode) {}
}

/// What a lock's state is stored in.
pub trait InBody {
    /// The state in `body`, which is one of this family.
    fn in_body(body: &mut Body) -> &mut Self;
}

impl State {
    /// The state of `lock`, which is one of family `F`.
    #[inline(always)]
    pub(in crate::machine) fn body<F: Family>(&mut self, lock: LockId) -> &mut F {
        F::in_body(&mut self.locks[lock as usize].body)
    }
}
