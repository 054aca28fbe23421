//! Ends the runs that are under way, for who has interrupted them. A run looks at each event that it takes from its queue: who lays
//! out files, or runs alone for a part of the window, ends that first.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a run that was ended says instead of a result.
pub const STOPPED: &str = "the run was stopped";

static STOPS: AtomicU64 = AtomicU64::new(0);

/// Ends all runs of this process that have begun.
pub fn stop() {
    STOPS.fetch_add(1, Ordering::Relaxed);
}

/// How often that was asked for.
#[inline]
pub fn stops() -> u64 {
    STOPS.load(Ordering::Relaxed)
}
