//! What stands on a machine when a run begins: a filesystem with its workers and its device, and the tasks of the workload.
//!
//! `mounts` makes the filesystem and its kernel threads, `files` the tasks that use it, `locks` those that need none.

mod files;
mod locks;
mod mounts;

use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::filesystems::designs::Designs;
use crate::range_locks::Design;
use crate::spec::{DeviceSpec, FilesystemKind, RunSpec, ServedBy, WorkloadKind};
use crate::waist::{Host, Life, Placement};
use crate::workloads::kernel_threads;
use std::rc::Rc;

/// The kind of a role that this kernel's code does not take.
pub(crate) const NOT_TAKEN: &str = "none";

/// Puts the filesystem and the tasks of a spec on a machine. The error names what is wrong with the spec.
pub fn populate<H: Host>(host: &mut H, spec: &RunSpec) -> Result<(), String> {
    if let Some(threads) = &spec.kernel.kernel_threads {
        kernel_threads::start(host, threads, spec.machine.cpus, spec.machine.costs.speed);
    }
    match spec.workload.kind {
        WorkloadKind::LockCycle => locks::lock_cycle(host, spec),
        WorkloadKind::RangeLock => locks::range_lock(host, spec),
        WorkloadKind::Python => Err("workload.kind: a python workload runs only with its program".into()),
        _ => mount(host, spec),
    }
}

/// Where the tasks of a workload may run.
fn placement(spec: &RunSpec) -> Placement {
    spec.workload.pin_to_cpu.map_or(Placement::Anywhere, Placement::Pinned)
}

fn mount<H: Host>(host: &mut H, spec: &RunSpec) -> Result<(), String> {
    let speed = spec.machine.costs.speed;
    let costs = Costs::new(vec![&spec.filesystem.costs, &spec.vfs.costs], speed, Designs::new(&spec.kernel.designs)?);
    let device = spec.device.as_ref().map(|device| block_device(host, device, speed));
    match spec.filesystem.kind {
        FilesystemKind::Xfs => mounts::xfs(host, spec, device, &costs),
        FilesystemKind::Btrfs => mounts::btrfs(host, spec, device, &costs),
        FilesystemKind::Ext4 => mounts::ext4(host, spec, device, &costs),
        FilesystemKind::Tmpfs => mounts::tmpfs(host, spec, &costs),
        FilesystemKind::None => Err("filesystem.kind: this workload needs a filesystem".into()),
    }
}

/// A device and the threads that serve it.
fn block_device<H: Host>(host: &mut H, spec: &DeviceSpec, speed: f64) -> Rc<BlockDevice> {
    let device = Rc::new(host.setup(|m| BlockDevice::new(m, spec, speed)));
    if spec.served_by == ServedBy::Worker {
        for _ in 0..spec.parallelism {
            let device = device.clone();
            host.spawn(Placement::Anywhere, Life::Background, move |m| BlockDevice::worker(m, device));
        }
    }
    device
}

/// The price of a search, by the index of a range lock.
fn work_of(design: Design) -> &'static str {
    match design {
        Design::IntervalTree => "interval_tree_work_ns",
        Design::BTree => "btree_work_ns",
        Design::Optimistic => "optimistic_work_ns",
        Design::Rwsem => "none",
    }
}
