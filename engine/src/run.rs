//! One run from spec to result: builds the machine, the filesystem and the tasks, runs, reports.

use crate::devices::BlockDevice;
use crate::filesystems::btrfs::mount::{Btrfs, Disk, Kernel};
use crate::filesystems::btrfs::search::Rules;
use crate::filesystems::costs::Costs;
use crate::filesystems::designs::{Designs, MetadataReclaim};
use crate::filesystems::ext4::file_io::DioWrites;
use crate::filesystems::ext4::{self, Ext4};
use crate::filesystems::tmpfs::Tmpfs;
use crate::filesystems::xfs::file_io;
use crate::filesystems::xfs::geometry::Geometry;
use crate::filesystems::xfs::mount::Xfs;
use crate::filesystems::{DirId, Filesystem};
use crate::machine::time::{from_ns, US};
use crate::machine::trace::Entry;
use crate::machine::{CpuId, LockKind, Native, Outcome, TaskId, Time};
use crate::range_locks::{Design, Prices, RangeLock};
use crate::report::RunResult;
use crate::spec::{Change, DeviceSpec, Directories, FilesystemKind, ServedBy, RunSpec, WorkloadKind};
use crate::waist::{Host, Life, Machine, Placement};
use crate::workloads::acts::{Actor, Full, Pool};
use crate::workloads::binding::{placements, Binding};
use crate::workloads::draw::Draw;
use crate::workloads::fio::{self, Jobs};
use crate::workloads::lock_cycle::{self, Cycle};
use crate::workloads::metadata::{self, Turn};
use crate::workloads::range_lock::{self, Load};
use crate::workloads::mix::{self, Mix};
use crate::workloads::{compile, dbench, fs_mark, kernel_threads};
use std::rc::Rc;

/// Runs a spec (JSON) and returns the result (JSON). The error names what is wrong with the spec.
pub fn run_json(spec: &str) -> Result<String, String> {
    run_json_with(spec, populate)
}

/// The same with programs that `populate` brings.
pub fn run_json_with(spec: &str, populate: impl Populate) -> Result<String, String> {
    let spec = RunSpec::from_json(spec)?;
    let (native, outcome) = ran(&spec, populate, false)?;
    let result = RunResult::new(&spec, &native.state(), outcome);
    serde_json::to_string(&result).map_err(|e| e.to_string())
}

/// Runs a spec.
pub fn run(spec: &RunSpec) -> Result<RunResult, String> {
    let (native, outcome) = ran(spec, populate, false)?;
    let result = RunResult::new(spec, &native.state(), outcome);
    Ok(result)
}

/// Runs a spec (JSON) and records everything that happens. Returns the result (JSON) and the trace.
pub fn trace_json(spec: &str) -> Result<(String, Vec<NamedEntry>), String> {
    trace_json_with(spec, populate)
}

/// The same with programs that `populate` brings.
pub fn trace_json_with(spec: &str, populate: impl Populate) -> Result<(String, Vec<NamedEntry>), String> {
    let spec = RunSpec::from_json(spec)?;
    let (native, outcome) = ran(&spec, populate, true)?;
    let mut state = native.state();
    let entries = state.take_trace();
    let named = |e: &Entry| (e.time, e.task, e.cpu, e.what, state.name_of(e.object));
    let entries = entries.iter().map(named).collect();
    let result = RunResult::new(&spec, &state, outcome);
    Ok((serde_json::to_string(&result).map_err(|e| e.to_string())?, entries))
}

/// Puts programs on a native machine.
pub trait Populate: FnOnce(&mut Native, &RunSpec) -> Result<(), String> {}

impl<P: FnOnce(&mut Native, &RunSpec) -> Result<(), String>> Populate for P {}

/// A native machine after its run.
fn ran(spec: &RunSpec, populate: impl Populate, traced: bool) -> Result<(Native, Outcome), String> {
    let mut native = ready(spec, populate)?;
    if traced {
        native.state().record_trace();
    }
    let outcome = native.run(spec);
    let problem = native.state().vain_what_if();
    problem.map_or(Ok((native, outcome)), Err)
}

/// An event of a trace: time (ps), task, CPU, what, about what.
pub type NamedEntry = (Time, Option<TaskId>, CpuId, &'static str, String);

/// A native machine with everything on it that a spec asks for.
fn ready(spec: &RunSpec, populate: impl Populate) -> Result<Native, String> {
    for (role, kind) in spec.kernel.locks.iter().filter(|(_, kind)| *kind != NOT_TAKEN) {
        LockKind::parse(kind).map_err(|e| format!("kernel.locks.{role}: {e}"))?;
    }
    let mut native = Native::new(spec);
    populate(&mut native, spec)?;
    let problem = native.state().take_problem();
    problem.map_or(Ok(native), Err)
}

/// The kind of a role that this kernel's code does not take.
const NOT_TAKEN: &str = "none";

/// Puts the filesystem and the tasks of a spec on a machine.
pub fn populate<H: Host>(host: &mut H, spec: &RunSpec) -> Result<(), String> {
    let w = &spec.workload;
    let placement = w.pin_to_cpu.map_or(Placement::Anywhere, Placement::Pinned);
    if let Some(threads) = &spec.kernel.kernel_threads {
        kernel_threads::start(host, threads, spec.machine.cpus, spec.machine.costs.speed);
    }
    if w.kind == WorkloadKind::LockCycle {
        return lock_cycle_tasks(host, spec, placement);
    }
    if w.kind == WorkloadKind::RangeLock {
        return range_lock_tasks(host, spec, placement);
    }
    if w.kind == WorkloadKind::Python {
        return Err("workload.kind: a python workload runs only with its program".into());
    }
    let speed = spec.machine.costs.speed;
    let costs = Costs::new(vec![&spec.filesystem.costs, &spec.vfs.costs], speed, Designs::new(&spec.kernel.designs)?);
    let size = spec.filesystem.size_bytes.unwrap_or(8 << 30);
    let device = spec.device.as_ref().map(|device| block_device(host, device, speed));
    match spec.filesystem.kind {
        FilesystemKind::Xfs => {
            let agcount = spec.filesystem.agcount.map(u64::from);
            let geometry = Geometry::new(size, agcount).map_err(|e| format!("filesystem: {e}"))?;
            let rules = xfs_rules(spec, &costs)?;
            let fs = Rc::new(host.setup(|m| Xfs::new(m, &geometry, device, rules, &costs))?);
            fs.start_workers(|placement, worker| host.spawn(placement, Life::Background, |m| worker.run(m)));
            fs.start_log_workers(|fs| {
                host.spawn(Placement::Anywhere, Life::Background, move |m| Xfs::push_worker(m, fs));
            });
            let ender = fs.clone();
            host.spawn(Placement::Anywhere, Life::Background, move |m| Xfs::log_ender(m, ender));
            if w.number("iodepth", 1.0) > 1.0 {
                host.setup(|m| fs.prepare_dio_workers(m));
                for cpu in 0..spec.machine.cpus {
                    let fs = fs.clone();
                    host.spawn(Placement::Pinned(cpu), Life::Background, move |m| Xfs::dio_worker(m, fs, cpu as usize));
                }
            }
            file_tasks(host, spec, fs, placement, &costs)
        }
        FilesystemKind::Btrfs => {
            let tree_lock = spec.kernel.locks.get("btrfs.tree").map_or("", String::as_str);
            let modes = tree_lock.starts_with("btrfs-tree");
            let early_unlock = spec.filesystem.early_unlock.unwrap_or(!modes); // no profile lies between 5.11 and 5.19
            let delays_new_inodes = spec.filesystem.delays_new_inodes.unwrap_or(modes);
            let rules = Rules { early_unlock, modes, clearing: costs.designs().path_clearing };
            let (nodatacow, new_directories) = (spec.filesystem.nodatacow, spec.filesystem.new_directories);
            let kernel = Kernel { rules, delays_new_inodes, nodatacow, new_directories };
            let fs = Rc::new(host.setup(|m| Btrfs::new(m, kernel, Disk { size, device }, &costs))?);
            for _ in 0..fs.worker_count(spec.machine.cpus) {
                let worker = fs.clone();
                host.spawn(Placement::Anywhere, Life::Background, move |m| Btrfs::delayed_worker(m, worker));
            }
            if costs.designs().reclaim == MetadataReclaim::Preemptive {
                let worker = fs.clone();
                host.spawn(Placement::Anywhere, Life::Background, move |m| Btrfs::reclaim_worker(m, worker));
            }
            let committer = fs.clone();
            let ticks = (fs.commit_interval() / from_ns(spec.kernel.tick_ns)).max(1);
            host.spawn(Placement::Anywhere, Life::Background, move |m| Btrfs::transaction_thread(m, committer, ticks));
            file_tasks(host, spec, fs, placement, &costs)
        }
        FilesystemKind::Ext4 => {
            let options = ext4_options(spec)?;
            let fs = Rc::new(host.setup(|m| Ext4::new(m, size, device, options, &costs))?);
            let journal = fs.clone();
            let ticks = (COMMIT_INTERVAL / from_ns(spec.kernel.tick_ns)).max(1);
            host.spawn(Placement::Anywhere, Life::Background, move |m| Ext4::journal_thread(m, journal, ticks));
            file_tasks(host, spec, fs, placement, &costs)
        }
        FilesystemKind::Tmpfs => {
            let fs = Rc::new(host.setup(|m| Tmpfs::new(m, &costs))?);
            file_tasks(host, spec, fs, placement, &costs)
        }
        FilesystemKind::None => Err("filesystem.kind: this workload needs a filesystem".into()),
    }
}

/// How ext4 is made and mounted.
fn ext4_options(spec: &RunSpec) -> Result<ext4::Options, String> {
    let f = &spec.filesystem;
    let held = f.dio_writes.as_deref().unwrap_or("shared");
    let dio_writes = DioWrites::parse(held).map_err(|e| format!("filesystem.dio_writes: {e}"))?;
    let rules = ext4::file_io::Rules { dio_writes, write_handles: f.write_handles };
    Ok(ext4::Options { journal: f.journal, rules })
}

/// How XFS locks files, by the kernel and the scenario.
fn xfs_rules(spec: &RunSpec, costs: &Costs<'_>) -> Result<file_io::Rules, String> {
    let iolock = spec.filesystem.iolock.as_deref().unwrap_or("rwsem");
    let range_lock = match iolock {
        "rwsem" | "none" => None,
        design => {
            let design = Design::parse(design).map_err(|e| format!("filesystem.iolock: {e}"))?;
            let work = |name: &str| costs.sum(&[&format!("range_lock.{name}")]);
            let pause = from_ns(spec.machine.costs.cpu_relax);
            Some((design, Prices { work: work(work_of(design))?, pause, syscall: None }))
        }
    };
    let flags_lock = spec.kernel.locks.get("xfs.i_flags_lock").ok_or("kernel.locks has no role 'xfs.i_flags_lock'")?;
    let buffered = file_io::BufferedIo::parse(spec.filesystem.buffered_io.as_deref().unwrap_or("locked"))
        .map_err(|e| format!("filesystem.buffered_io: {e}"))?;
    Ok(file_io::Rules { buffered, range_lock, unlocked: iolock == "none", flags_lock: flags_lock != NOT_TAKEN, tick: from_ns(spec.kernel.tick_ns) })
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

/// jbd2 commits every 5 s (the mount option `commit`'s default).
const COMMIT_INTERVAL: Time = 5_000_000 * US;

/// One setup task makes the directories, then starts the tasks of the workload.
fn file_tasks<H: Host, F: Filesystem<H::Handle>>(
    host: &mut H,
    spec: &RunSpec,
    fs: Rc<F>,
    placement: Placement,
    costs: &Costs<'_>,
) -> Result<(), String> {
    let w = &spec.workload;
    let work = Work::new(spec, costs)?;
    let (tasks, own) = (w.tasks, w.directories == Directories::PerTask);
    let each = (w.number("subdirectories", 1.0) as u32).max(1);
    let initial_files = w.number("initial_files", 0.0) as u64;
    if let Work::Fio(jobs) = work {
        return fio_tasks(host, fs, jobs, tasks, placement);
    }
    host.spawn(Placement::Anywhere, Life::Background, move |m: H::Handle| async move {
        let sets = if own { tasks } else { 1 };
        let mut directories = Vec::new();
        for number in 0..sets * each {
            match fs.mkdir(&m, format!("d{number:03}").as_bytes()).await {
                Ok(directory) => directories.push(directory),
                Err(_) => return m.give_up("no space left for the directories"),
            }
        }
        if initial_files > 0 && fs.fill(&directories, initial_files, work.name_length()).is_err() {
            return m.give_up("no space left for the initial files");
        }
        if work.prepare(&m, &fs, &directories).await.is_err() {
            return;
        }
        for task in 0..tasks {
            let dirs = directories.chunks(each as usize).nth((task % sets) as usize).expect("one set a task");
            work.start(&m, fs.clone(), dirs.into(), task, placement);
        }
    });
    Ok(())
}

/// One setup task lays the files out, then starts the jobs.
fn fio_tasks<H: Host, F: Filesystem<H::Handle>>(host: &mut H, fs: Rc<F>, jobs: Jobs, tasks: u32, placement: Placement) -> Result<(), String> {
    host.spawn(Placement::Anywhere, Life::Background, move |m: H::Handle| async move {
        let Ok(dir) = fs.mkdir(&m, b"fio").await else { return m.give_up("no space left for the directory") };
        let mut files = Vec::new();
        for number in 0..if jobs.own_file { tasks } else { 1 } {
            let name = format!("fio.{number}.0");
            match fs.lay_out(&m, dir, name.as_bytes(), jobs.file).await {
                Ok(file) => files.push(file),
                Err(_) => return m.give_up("no space left for the files"),
            }
        }
        for task in 0..tasks {
            let (fs, file) = (fs.clone(), files[task as usize % files.len()]);
            m.spawn(placement, Life::Foreground, move |m| fio::run(m, fs, file, jobs, task));
        }
    });
    Ok(())
}

/// What each task of a file workload does.
enum Work {
    Loop(Turn, Time),
    Compile(Rc<compile::Params>),
    FsMark(Rc<fs_mark::Params>),
    Mix(Rc<Mix>, Pool),
    Dbench(Rc<dbench::Params>),
    Fio(Jobs),
}

impl Work {
    fn new(spec: &RunSpec, costs: &Costs<'_>) -> Result<Self, String> {
        let w = &spec.workload;
        let user = costs.sum(&["user.loop"])?;
        let turn = match w.kind {
            WorkloadKind::Create => Turn::Create,
            WorkloadKind::CreateUnlink => Turn::CreateUnlink,
            WorkloadKind::Tmpfile => {
                Turn::Tmpfile { bytes: w.number("write_bytes", 4096.0) as u32, fsync: w.number("fsync", 0.0) > 0.0 }
            },
            WorkloadKind::Compile => {
                return Ok(Self::Compile(Rc::new(compile::Params::new(w, spec.machine.costs.speed)?)))
            }
            WorkloadKind::FsMark => return Ok(Self::FsMark(Rc::new(fs_mark::Params::new(w, user)?))),
            WorkloadKind::Dbench => return Ok(Self::Dbench(Rc::new(dbench::Params::new(w, spec.machine.costs.speed)?))),
            WorkloadKind::Mix => return Ok(Self::Mix(Rc::new(Mix::new(w, user)?), Pool::default())),
            WorkloadKind::Fio => return Ok(Self::Fio(fio_jobs(spec)?)),
            WorkloadKind::LockCycle | WorkloadKind::RangeLock | WorkloadKind::Python => {
                return Err("workload.kind: needs no filesystem".into())
            }
        };
        Ok(Self::Loop(turn, user))
    }

    /// What all tasks find when they start.
    /// Bytes of the names that it gives to files.
    fn name_length(&self) -> usize {
        match self {
            Self::FsMark(_) => fs_mark::NAME_LENGTH,
            _ => 12,
        }
    }

    async fn prepare<M: Machine, F: Filesystem<M>>(&self, m: &M, fs: &Rc<F>, dirs: &[DirId]) -> Result<(), Full> {
        match self {
            Self::Mix(mix, pool) if mix.shared => {
                let mut actor = Actor::new(m.clone(), fs.clone(), dirs.into(), pool.clone(), Actor::<M, F>::NOBODY);
                mix::prepare(&mut actor, mix).await
            }
            _ => Ok(()),
        }
    }

    fn start<M: Machine, F: Filesystem<M>>(&self, m: &M, fs: Rc<F>, dirs: Rc<[DirId]>, task: u32, placement: Placement) {
        let dir = dirs[0];
        match self {
            Self::Loop(turn, user) => {
                let (turn, user) = (*turn, *user);
                m.spawn(placement, Life::Foreground, move |m| metadata::run(m, fs, dir, task, turn, user));
            }
            Self::Fio(_) => unreachable!("jobs start on their files"),
            Self::Compile(params) => {
                let params = params.clone();
                m.spawn(placement, Life::Foreground, move |m| compile::run(m, fs, dir, task, params, placement));
            }
            Self::FsMark(params) => {
                let params = params.clone();
                m.spawn(placement, Life::Foreground, move |m| fs_mark::run(m, fs, dirs, task, params));
            }
            Self::Dbench(params) => {
                let params = params.clone();
                m.spawn(placement, Life::Foreground, move |m| {
                    dbench::run(m.clone(), Actor::new(m, fs, dirs, Pool::default(), task), params)
                });
            }
            Self::Mix(mix, all) => {
                let pool = if mix.shared { all.clone() } else { Pool::default() };
                let mix = mix.clone();
                m.spawn(placement, Life::Foreground, move |m| {
                    mix::run(m.clone(), Actor::new(m, fs, dirs, pool, task), mix)
                });
            }
        }
    }
}

fn fio_jobs(spec: &RunSpec) -> Result<Jobs, String> {
    let jobs = Jobs::of(&spec.workload, spec.machine.costs.speed)?;
    let kind = spec.filesystem.kind;
    if jobs.direct && kind == FilesystemKind::Btrfs {
        return Err("workload.params.direct: btrfs has no direct I/O here".into());
    }
    if kind != FilesystemKind::Xfs && jobs.iodepth > 1 {
        return Err("workload.params.iodepth: only XFS has requests that nobody waits for".into());
    }
    if spec.device.is_none() && matches!(kind, FilesystemKind::Xfs | FilesystemKind::Ext4) {
        return Err("device: fio needs one on this filesystem".into());
    }
    Ok(jobs)
}

fn lock_cycle_tasks<H: Host>(host: &mut H, spec: &RunSpec, placement: Placement) -> Result<(), String> {
    let w = &spec.workload;
    let draw = |what: &str, default: f64| Draw::of(w, what, default);
    let write = match w.number("device_ns", 0.0) {
        ns if ns > 0.0 => Some(draw("device", ns)?),
        _ => None,
    };
    let spins_or_sleeps = spec.whatif.as_ref().is_some_and(|w| matches!(&w.change, Change::Kind(k) if k != "semaphore"));
    if write.is_some() && spins_or_sleeps {
        return Err("whatif.change.kind: only a semaphore can be released by a device".into());
    }
    if write.is_some() && spec.kernel.locks.get("lock").map(String::as_str) != Some("semaphore") {
        return Err("workload.params.device_ns: only a semaphore can be released by a device".into());
    }
    let (nested, opposite) = (w.number("locks", 1.0) > 1.0, w.word("order", "same") == "opposite");
    let lines = w.number("data_lines", 0.0) as u32;
    let (first, second, device, data) = host.setup(|m| {
        let class = m.class("lock", "lock");
        let device = m.new_device(w.number("device_parallelism", 1.0) as u32, 0);
        let data = (lines > 0).then(|| m.new_line(lines));
        (m.new_lock(class), nested.then(|| m.new_lock(class)), device, data)
    });
    let cycle = Cycle {
        outer: first,
        inner: second,
        think: draw("think", 1000.0)?,
        hold: draw("hold", 50.0)?,
        thinks_on_cpu: w.word("think", "cpu") == "cpu",
        data,
        readers: w.number("readers", 0.0),
        blocking: w.number("blocking", 0.0),
        write: write.map(|service| (device, service)),
    };
    let binding = Binding::parse(w.word("binding", "none"))?;
    for (task, placement) in (0..w.tasks).zip(placements(binding, spec, placement)) {
        let cycle = match second {
            Some(second) if opposite && task % 2 == 1 => Cycle { outer: second, inner: Some(first), ..cycle },
            _ => cycle,
        };
        host.spawn(placement, Life::Foreground, |m| lock_cycle::run(m, cycle, format!("task {task}")));
    }
    Ok(())
}

fn range_lock_tasks<H: Host>(host: &mut H, spec: &RunSpec, placement: Placement) -> Result<(), String> {
    let w = &spec.workload;
    let load = Load::of(w)?;
    let time = |name: &str| from_ns(w.number(name, 0.0) * spec.machine.costs.speed);
    let work = time(work_of(load.design));
    let syscall = (w.word("index_lock", "kernel") == "pthread").then(|| time("syscall_ns"));
    let prices = Prices { work, pause: from_ns(spec.machine.costs.cpu_relax), syscall };
    let lock = Rc::new(host.setup(|m| RangeLock::new(m, load.design, prices)));
    let ledger = load.ledger();
    for task in 0..w.tasks {
        let (lock, ledger) = (lock.clone(), ledger.clone());
        host.spawn(placement, Life::Foreground, move |m| range_lock::run(m, lock, load, task, ledger));
    }
    Ok(())
}
