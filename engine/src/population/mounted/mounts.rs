//! Filesystems as a spec asks for them, with their kernel threads; then the tasks start on them.

use super::{files, work_of};
use crate::costs::Costs;
use crate::devices::{kswapd, BlockDevice};
use crate::filesystems::btrfs::mount::{Btrfs, Disk, Kernel};
use crate::filesystems::btrfs::tree::search::Rules;
use crate::filesystems::ext4::{self, Ext4};
use crate::filesystems::tmpfs::Tmpfs;
use crate::filesystems::xfs::buffer_hash;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::xfs::operations::file_io;
use crate::filesystems::xfs::structures::directory::geometry::DirGeometry;
use crate::filesystems::xfs::structures::geometry::Geometry;
use crate::kernel::btrfs::MetadataReclaim;
use crate::machine::LockKind;
use crate::range_locks::{Design, Prices};
use crate::softirq::{self, Nobody};
use crate::spec::{FilesystemSpec, RunSpec, WorkloadKind};
use crate::waist::time::{from_ns, US};
use crate::waist::{Host, Placement, SpawnKind, Time};
use crate::writeback::{flusher, Flushed};
use std::ops::Range;
use std::rc::Rc;

/// jbd2 commits every 5 s (the mount option `commit`'s default).
const COMMIT_INTERVAL: Time = 5_000_000 * US;

/// Bytes of the device.
fn size(spec: &RunSpec) -> u64 {
    spec.filesystem.size_bytes.unwrap_or(8 << 30)
}

/// The sizes in directories of XFS.
fn directories(spec: &RunSpec) -> Result<DirGeometry, String> {
    let wrong = |bytes| format!("filesystem.dirblksize: {bytes} bytes: a power of two from 4 to 64 KiB");
    match spec.filesystem.dirblksize {
        Some(bytes) => DirGeometry::new(bytes).ok_or_else(|| wrong(bytes)),
        None => Ok(DirGeometry::default()),
    }
}

/// XFS with its inode workers and those of its log; where nobody waits for requests, with who ends direct writes.
pub(super) fn xfs<H: Host>(
    host: &mut H,
    spec: &RunSpec,
    device: Rc<BlockDevice>,
    costs: &Costs<'_>,
) -> Result<(), String> {
    let agcount = spec.filesystem.agcount.map(u64::from);
    let geometry = Geometry::with_log(size(spec), agcount, spec.filesystem.log_bytes);
    let geometry = geometry
        .map_err(|e| format!("filesystem: {e}"))?
        .with_directories(directories(spec)?)
        .with_parents(spec.filesystem.parent);
    let (rules, disk) = (xfs_rules(spec, costs)?, device.clone());
    let fs = Rc::new(host.setup(|m| Xfs::new(m, &geometry, device, rules, costs))?);
    fs.start(host, from_ns(spec.kernel.tick_ns));
    for cpu in dio_workers(spec) {
        let fs = fs.clone();
        host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| Xfs::dio_worker(m, fs, cpu));
    }
    start_reclaim(host, &fs, disk);
    files::start(host, spec, fs, costs)
}

/// btrfs with the workers of its delayed items, of metadata reclaim, and its transaction thread.
pub(super) fn btrfs<H: Host>(
    host: &mut H,
    spec: &RunSpec,
    device: Rc<BlockDevice>,
    costs: &Costs<'_>,
) -> Result<(), String> {
    let (rules, disk) = (costs.rules(), device.clone());
    let tree_lock = spec.kernel.locks.get("btrfs.tree").map(|kind| LockKind::parse(kind));
    let modes = matches!(tree_lock, Some(Ok(kind)) if kind.has_modes());
    let locking = Rules {
        early_unlock: rules.early_unlock,
        modes,
        clearing: rules.path_clearing,
        pushes_some: rules.pushes_some_items,
        replaces_in_one_leaf: rules.replaces_in_one_leaf,
        extends_csums_in_place: rules.extends_csums_in_place,
        joins_last_csums: true,
    };
    let FilesystemSpec { nodatacow, new_directories, subvolumes, .. } = spec.filesystem;
    let delays_new_inodes = rules.delays_new_inodes;
    let kernel = Kernel { rules: locking, delays_new_inodes, nodatacow, new_directories, subvolumes };
    let fs = Rc::new(host.setup(|m| Btrfs::new(m, kernel, Disk { size: size(spec), device }, costs))?);
    disk.pools.start(host, &fs);
    if rules.reclaim == MetadataReclaim::Preemptive {
        let worker = fs.clone();
        host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| Btrfs::reclaim_worker(m, worker));
    }
    fs.tell_tickets();
    let committer = fs.clone();
    let tick = from_ns(spec.kernel.tick_ns);
    let ticks = (fs.commit_interval() / tick).max(1);
    host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| {
        Btrfs::transaction_thread(m, committer, ticks, tick)
    });
    start_reclaim(host, &fs, disk);
    files::start(host, spec, fs, costs)
}

/// CPUs with a worker that ends direct writes: all if somebody leaves requests under way.
fn dio_workers(spec: &RunSpec) -> Range<u32> {
    let leaves = spec.workload.kind == WorkloadKind::Fio && spec.workload.number("iodepth") > 1.0;
    0..if leaves { spec.machine.cpus } else { 0 }
}

/// ext4 with its journal thread.
pub(super) fn ext4<H: Host>(
    host: &mut H,
    spec: &RunSpec,
    device: Rc<BlockDevice>,
    costs: &Costs<'_>,
) -> Result<(), String> {
    let disk = device.clone();
    let options = ext4::Options {
        journal: spec.filesystem.journal,
        inode_ratio: spec.filesystem.inode_ratio,
        orphan_file: spec.filesystem.orphan_file,
        hash_seed: spec.filesystem.hash_seed,
        below: spec.filesystem.below.clone(),
        tick: from_ns(spec.kernel.tick_ns),
    };
    let fs = Rc::new(host.setup(|m| Ext4::new(m, size(spec), device, options, costs))?);
    let journal = fs.clone();
    let ticks = (COMMIT_INTERVAL / from_ns(spec.kernel.tick_ns)).max(1);
    host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| Ext4::journal_thread(m, journal, ticks));
    for cpu in dio_workers(spec) {
        let fs = fs.clone();
        host.spawn(Placement::Pinned(cpu), SpawnKind::Background, move |m| Ext4::dio_worker(m, fs, cpu));
    }
    disk.pools.start(host, &fs);
    start_reclaim(host, &fs, disk);
    files::start(host, spec, fs, costs)
}

/// tmpfs.
pub(super) fn tmpfs<H: Host>(host: &mut H, spec: &RunSpec, costs: &Costs<'_>) -> Result<(), String> {
    let nobody = Rc::new(host.setup(Nobody::new));
    softirq::start(host, spec, &nobody);
    let fs = Rc::new(host.setup(|m| Tmpfs::new(m, costs))?);
    files::start(host, spec, fs, costs)
}

/// The flusher and `kswapd`, where memory has an end.
fn start_reclaim<H: Host, F: Flushed>(host: &mut H, fs: &Rc<F>, device: Rc<BlockDevice>) {
    if device.memory.is_limited() {
        let fs = fs.clone();
        host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| flusher(m, fs));
        host.spawn(Placement::Anywhere, SpawnKind::Background, move |m| kswapd(m, device));
    }
}

/// How XFS locks files.
fn xfs_rules(spec: &RunSpec, costs: &Costs<'_>) -> Result<file_io::Rules, String> {
    let iolock = spec.filesystem.iolock.as_deref().unwrap_or("rwsem");
    let range_lock = match iolock {
        "rwsem" | "none" => None,
        design => {
            let design = Design::parse(design).map_err(|e| format!("filesystem.iolock: {e}"))?;
            let work = |name: &str| costs.sum(&[&format!("range_lock.{name}")]);
            let pause = costs.pause();
            Some((design, Prices { work: work_of(design).map_or(Ok(0), work)?, pause, syscall: None }))
        }
    };
    let buffered = file_io::BufferedIo::parse(spec.filesystem.buffered_io.as_deref().unwrap_or("locked"))
        .map_err(|e| format!("filesystem.buffered_io: {e}"))?;
    let (logbsize, log_su, tick) = (spec.filesystem.logbsize, spec.filesystem.log_su, from_ns(spec.kernel.tick_ns));
    let price = |instructions: f64| from_ns(instructions * spec.machine.costs.instruction);
    let c = &spec.kernel.constants;
    let rehash = buffer_hash::Prices { bucket: price(c.code_rehash), free: price(c.code_free_table) };
    Ok(file_io::Rules { buffered, range_lock, unlocked: iolock == "none", logbsize, log_su, tick, rehash })
}
