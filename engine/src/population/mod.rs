//! What stands on a machine when a run begins: the tasks of the workload, and the filesystem that they use, if any.

mod locks;
#[cfg(feature = "filesystems")]
mod mounted;

#[cfg(feature = "filesystems")]
pub use mounted::cost_names;

use crate::range_locks::Design;
use crate::spec::{RunSpec, WorkloadKind};
use crate::waist::Host;
use crate::workloads::kernel_threads;

/// Puts the filesystem and the tasks of a spec on a machine. The error names what is wrong with the spec.
pub fn populate<H: Host>(host: &mut H, spec: &RunSpec) -> Result<(), String> {
    if let Some(threads) = &spec.kernel.kernel_threads {
        kernel_threads::start(host, threads, spec.machine.cpus, spec.machine.costs.speed);
    }
    match spec.workload.kind {
        WorkloadKind::LockCycle => locks::lock_cycle(host, spec),
        WorkloadKind::RangeLock => locks::range_lock(host, spec),
        WorkloadKind::Python => Err("workload.kind: a python workload runs only with its program".into()),
        #[cfg(feature = "filesystems")]
        _ => mounted::mount(host, spec),
        #[cfg(not(feature = "filesystems"))]
        _ => Err("workload.kind: this engine was built without filesystems".into()),
    }
}

/// The price of a search, by the index of a range lock, if it has one.
fn work_of(design: Design) -> Option<&'static str> {
    match design {
        Design::IntervalTree => Some("interval_tree_work_ns"),
        Design::BTree => Some("btree_work_ns"),
        Design::Optimistic => Some("optimistic_work_ns"),
        Design::Rwsem => None,
    }
}
