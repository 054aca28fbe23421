//! Where a lock was that a counterfactual has taken away: nobody waits, and acquisitions are counted.

use super::family::Family;
use super::release::Running;
use crate::machine::context::Context;
use crate::machine::lock::LockKind;
use crate::waist::{LockId, Side};

/// No state at all.
#[derive(Debug)]
pub struct Removed;

impl Family for Removed {
    type Variant = ();

    const PERF_NAME: &'static str = "removed";
    const MAY_SLEEP: bool = false;

    fn new((): ()) -> Self {
        Self
    }

    fn inner((): ()) -> Option<(&'static str, LockKind)> {
        None
    }

    fn try_fast(cx: &Context, lock: LockId, _side: Side) -> bool {
        cx.state().pass(cx.id, lock)
    }

    async fn wait(_cx: &Context, _lock: LockId, _side: Side) -> bool {
        unreachable!("it is always free")
    }

    fn release(_cx: &Context, _lock: LockId, _side: Side) -> Option<Running<'_>> {
        None
    }
}
