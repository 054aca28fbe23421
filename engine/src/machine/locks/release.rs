//! A task releases a lock of any kind. Written by hand for the same reason as acquisitions are.

use super::{part, spinlock};
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::waist::{LockId, Side};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as PollContext, Poll};

/// Releases `lock`.
#[inline]
pub(in crate::machine) fn release(cx: &Context, lock: LockId, side: Side) -> Release<'_> {
    Release { cx, lock, side, begun: false, runs: None }
}

/// See [`release`].
pub(in crate::machine) struct Release<'a> {
    cx: &'a Context,
    lock: LockId,
    side: Side,
    begun: bool,
    /// What it runs through where that is not all, mostly because somebody waits.
    runs: Option<Running<'a>>,
}

/// The rest of a release.
pub(in crate::machine) type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

impl Future for Release<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, poll: &mut PollContext<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.begun, true) {
            return self.begin(poll);
        }
        self.run_on(poll)
    }
}

impl<'a> Release<'a> {
    #[inline]
    fn begin(&mut self, poll: &mut PollContext<'_>) -> Poll<()> {
        let (cx, side) = (self.cx, self.side);
        let (lock, kind) = part(cx, self.lock);
        let over = match kind {
            LockKind::Spin(_) if !spinlock::is_checked(&cx.state()) => {
                spinlock::unlock(cx, lock);
                true
            }
            LockKind::Spin(_) => {
                self.runs = Some(Box::pin(spinlock::unlock_checked(cx, lock)));
                return self.run_on(poll);
            }
            LockKind::Semaphore(_) => cx.state().up(cx.id, lock),
            _ => {
                self.runs = kind.release(cx, lock, side);
                return self.run_on(poll);
            }
        };
        if over {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn run_on(&mut self, poll: &mut PollContext<'_>) -> Poll<()> {
        self.runs.as_mut().map_or(Poll::Ready(()), |runs| runs.as_mut().poll(poll))
    }
}
