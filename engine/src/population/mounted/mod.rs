//! A filesystem with its workers and its device, and the tasks that use it.
//!
//! `mounts` makes the filesystem and its kernel threads, `files` the tasks, `read` knows which costs a filesystem has.

mod files;
mod mounts;
mod read;

pub use read::cost_names;

use super::work_of;
use crate::costs::Costs;
use crate::devices::BlockDevice;
use crate::memory::{Lru, Memory};
use crate::softirq;
use crate::spec::{DeviceSpec, FilesystemKind, RunSpec};
use crate::waist::time::from_ns;
use crate::waist::Host;
use crate::workqueue::Pools;
use crate::writeback::{self, Writeback};

/// Mounts the filesystem of a spec and starts the tasks of its workload on it.
pub(super) fn mount<H: Host>(host: &mut H, spec: &RunSpec) -> Result<(), String> {
    let speed = spec.machine.costs.speed;
    let pause = from_ns(spec.machine.costs.cpu_relax);
    let costs = Costs::new(vec![&spec.filesystem.costs, &spec.vfs.costs], speed, spec.kernel.rules, pause)
        .on_nodes_of(spec.machine.cpus_per_socket)
        .ticking(from_ns(spec.kernel.tick_ns))
        .with_memory(spec.machine.memory_bytes, spec.machine.caches.as_ref().map_or(0.0, |caches| caches.memory_ns))
        .with_lists(host.setup(|m| Lru::new(m, spec)));
    read::refuse_others(spec)?;
    mount_with(host, spec, &costs)
}

fn mount_with<H: Host>(host: &mut H, spec: &RunSpec, costs: &Costs<'_>) -> Result<(), String> {
    let mount = match spec.filesystem.kind {
        FilesystemKind::Xfs => mounts::xfs,
        FilesystemKind::Btrfs => mounts::btrfs,
        FilesystemKind::Ext4 => mounts::ext4,
        FilesystemKind::Tmpfs => return mounts::tmpfs(host, spec, costs),
        FilesystemKind::None => return Err("filesystem.kind: this workload needs a filesystem".into()),
    };
    let device = spec.device.clone().unwrap_or_else(DeviceSpec::instant);
    let setting = writeback::Setting {
        memory: spec.machine.memory_bytes,
        bandwidth: device.bandwidth.map(|bandwidth| bandwidth.write),
        tasks: spec.workload.tasks,
        tick: from_ns(spec.kernel.tick_ns),
    };
    let writeback = host.setup(|m| Writeback::new(m, setting, costs))?;
    let memory = Memory::new(setting.memory, setting.tick, costs)?;
    let rules = spec.kernel.rules;
    let pools = host.setup(|m| Pools::of(m, &spec.machine, &rules));
    let kernel = (spec.machine.costs.speed, rules, pools);
    let device = BlockDevice::start(host, &device, kernel, (writeback, memory));
    softirq::start(host, spec, &device);
    mount(host, spec, device, costs)
}
