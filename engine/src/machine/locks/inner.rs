//! The raw spinlock inside another lock, for locks with programs of their own.

use crate::machine::context::Context;
use crate::machine::lock::code::LockCode;
use crate::waist::time::Time;
use crate::waist::LockId;
use std::future::Future;

/// Takes a raw spinlock inside another lock.
#[inline]
pub(super) fn spin_lock(cx: &Context, inner: LockId) -> impl Future<Output = ()> + '_ {
    cx.go_through(move |s, me| s.take_spinlock(me, inner))
}

/// Takes a wait lock to queue oneself or to look again, and runs the `code` under it.
#[inline]
pub(super) fn lock_to_wait(cx: &Context, inner: LockId, code: fn(&LockCode) -> Time) -> impl Future<Output = ()> + '_ {
    cx.go_through(move |s, me| s.take_wait_lock(me, inner, code))
}
