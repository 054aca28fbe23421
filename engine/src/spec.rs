//! What the engine is given for one run (`docs/seams.md`, seam 1). Times are nanoseconds.

pub mod params;

use crate::kernel::sched::Class;
use crate::kernel::{roles, Rules};
use crate::machine::LockKind;
use crate::nearest::hint;
use params::Is;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run: a machine, a kernel, a filesystem, a workload, and for how long.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The scenario's seed; every random stream is derived from it and from the stream's name.
    pub seed: u64,
    /// Which replication this is; part of the seed of every stream.
    #[serde(default)]
    pub replication: u64,
    /// Simulated time before measuring starts.
    pub warmup_ns: f64,
    /// Simulated time measured.
    pub duration_ns: f64,
    /// Into how many equal parts the measured window is cut for `batch_operations`.
    #[serde(default = "twenty")]
    pub batches: u32,
    /// Whether events of the same instant are taken in a seeded random order instead of the specified one.
    #[serde(default)]
    pub shuffle_ties: bool,
    /// Whether to add up why everybody waits.
    #[serde(default)]
    pub chains: bool,
    /// The hardware.
    pub machine: MachineSpec,
    /// The kernel's scheduler and locks.
    pub kernel: KernelSpec,
    /// The filesystem.
    pub filesystem: FilesystemSpec,
    /// What it is stored on; when absent, something that takes no time.
    #[serde(default)]
    pub device: Option<DeviceSpec>,
    /// Costs of the layer above the filesystem.
    #[serde(default)]
    pub vfs: CostTable,
    /// What the tasks do; where there are groups, what they have in common, and the number of all tasks.
    pub workload: WorkloadSpec,
    /// Groups of tasks, each with a load of its own.
    #[serde(default)]
    pub groups: Vec<GroupSpec>,
    /// A counterfactual: the same run but for one lock class.
    #[serde(default)]
    pub whatif: Option<WhatIf>,
}

/// One change to all locks of one class; everything else, random streams included, stays as it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhatIf {
    /// The class as statistics name it, for example `xfs.AGI`.
    pub lock: String,
    /// What changes.
    pub change: Change,
}

/// What a counterfactual changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Factor on the CPU time that a task's program uses while the task holds such a lock exclusively.
    HoldScale(f64),
    /// The lock is neither taken nor released, and costs nothing.
    Remove,
    /// Each lock becomes so many, of which a task takes the one of its number.
    Split(u32),
    /// Another lock type.
    Kind(String),
}

fn yes() -> bool {
    true
}

fn twenty() -> u32 {
    20
}

/// CPUs, distances, costs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// Number of CPUs (hardware threads).
    pub cpus: u32,
    /// Hardware threads a core.
    pub cpus_per_core: u32,
    /// CPUs that share a last-level cache.
    pub cpus_per_llc: u32,
    /// CPUs a socket.
    pub cpus_per_socket: u32,
    /// Hardware and scheduler costs.
    pub costs: MachineCosts,
    /// Its caches; programs find theirs always warm when absent.
    #[serde(default)]
    pub caches: Option<CachesSpec>,
    /// Bytes of its memory; it never fills up when absent.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Idle states, shallowest first.
    pub idle_states: Vec<IdleState>,
    /// Power of a CPU that runs (W).
    pub watts_active: f64,
    /// Power of a CPU that spins (W).
    pub watts_spin: f64,
}

/// Costs of a machine, in nanoseconds; `speed` multiplies all program times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // each field is described in docs/models.md
pub struct MachineCosts {
    pub line_hit: f64,
    pub line_smt: f64,
    pub line_llc: f64,
    pub line_socket: f64,
    pub line_remote: f64,
    /// How many neighbouring lines a CPU fetches at once.
    pub line_overlap: f64,
    /// One round of a polling loop (`cpu_relax`).
    pub cpu_relax: f64,
    pub context_switch: f64,
    pub wakeup: f64,
    pub ipi_send: f64,
    pub ipi_deliver: f64,
    /// How much the time of the same kernel code varies: standard deviation over mean.
    pub step_cv: f64,
    /// How fast a program runs while the other CPU of its core executes too, relative to alone.
    pub smt_speed: f64,
    pub speed: f64,
}

/// The caches of a machine, and what kernel code needs of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachesSpec {
    /// Size of a core's own (L2).
    pub core_bytes: f64,
    /// Size of a last-level cache.
    pub llc_bytes: f64,
    /// A load from the last-level cache.
    pub llc_ns: f64,
    /// A load from memory.
    pub memory_ns: f64,
    /// Lines that the first microsecond of kernel code touches, by the time of the traced machine; the first n touch root of n times as many.
    pub code_lines: f64,
}

impl CachesSpec {
    fn check(&self) -> Result<(), String> {
        let size = |bytes: f64| (64.0..=2f64.powi(40)).contains(&bytes);
        require(size(self.core_bytes), "machine.caches.core_bytes", "must be between 64 and 2^40")?;
        require(size(self.llc_bytes), "machine.caches.llc_bytes", "must be between 64 and 2^40")?;
        require((0.0..=1e4).contains(&self.llc_ns), "machine.caches.llc_ns", "must be between 0 and 10,000")?;
        require((0.0..=1e4).contains(&self.memory_ns), "machine.caches.memory_ns", "must be between 0 and 10,000")?;
        require((0.0..=1e4).contains(&self.code_lines), "machine.caches.code_lines", "must be between 0 and 10,000")
    }
}

/// One idle state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    /// Its name, for example `C1`.
    pub name: String,
    /// Time to leave it while all CPUs of the socket idle: the package may sleep as well.
    pub exit_ns: f64,
    /// The same while another CPU of the socket is awake; as `exit_ns` by default.
    #[serde(default)]
    pub core_exit_ns: Option<f64>,
    /// How long a CPU must have been idle to be in it.
    pub residency_ns: f64,
    /// Power of a CPU in it (W).
    pub watts: f64,
}

/// When kernel code gives up its CPU to another task.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// Only on return to user mode or when it sleeps.
    None,
    /// Also where it asks for a lock that may sleep.
    Voluntary,
    /// Anywhere outside spinlocks.
    Full,
    /// Everywhere, also under spinlocks: the tasks are virtual CPUs, and their host knows nothing of what they hold.
    Host,
}

/// Scheduler and locks of a kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelSpec {
    /// The profile's name, for messages.
    pub name: String,
    /// Length of a scheduler tick.
    pub tick_ns: f64,
    /// EEVDF: the base slice; CFS: the minimum granularity.
    pub base_slice_ns: f64,
    /// The other times of CFS, where that is the scheduler.
    #[serde(default)]
    pub cfs: Option<CfsSpec>,
    /// When kernel code can be preempted.
    pub preemption: Preemption,
    /// Role -> lock type.
    pub locks: BTreeMap<String, String>,
    /// Everything else that kernels do differently, by name; as Linux 6.12 does it where absent.
    #[serde(default)]
    pub rules: Rules,
    /// Constants of the lock code and the scheduler.
    pub constants: KernelConstants,
    /// Kernel threads that have nothing to do with the workload; none run when absent.
    #[serde(default)]
    pub kernel_threads: Option<KernelThreadsSpec>,
}

/// How often kernel threads run that have nothing to do with the workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelThreadsSpec {
    /// From run to run of the thread bound to each CPU.
    pub bound_interval_ns: f64,
    /// Mean time from run to run of those that run anywhere.
    pub unbound_interval_ns: f64,
    /// CPU time of a run.
    pub run_ns: f64,
}

/// Times of CFS, the scheduler before Linux 6.6.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CfsSpec {
    /// The period that all runnable tasks share.
    pub latency_ns: f64,
    /// How far behind the current task a woken one must be to preempt it.
    pub wakeup_granularity_ns: f64,
}

macro_rules! constants {
    ($(#[$doc:meta])* $name:ident: $($field:ident),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(missing_docs)] // each is described, with its source, in the timeline of kernels
        pub struct $name { $(pub $field: f64),+ }

        impl $name {
            /// Their names.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];
        }
    };
}

constants! {
    /// Constants of the lock code and the scheduler: nanoseconds, but for the reader batch. None has a default, so a name that
    /// differs between the timeline and the engine is an error and never a silent fallback.
    KernelConstants: migration_cost, rwsem_handoff_wait, rwsem_reader_batch_max, rwsem_reader_spin_base,
    rwsem_reader_spin_per_reader, rwsem_reader_spin_cap, percpu_rwsem_grace_period, numa_spinlock_threshold,
}

/// The filesystem under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesystemSpec {
    /// Which one.
    pub kind: FilesystemKind,
    /// Size of the device.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// XFS: number of allocation groups; the default of `mkfs.xfs` when absent.
    #[serde(default)]
    pub agcount: Option<u32>,
    /// XFS: size of the log; the default of `mkfs.xfs` when absent.
    #[serde(default)]
    pub log_bytes: Option<u64>,
    /// ext4: whether it has a journal.
    #[serde(default = "yes")]
    pub journal: bool,
    /// XFS: what I/O through the page cache takes of the IOLOCK: `locked`, `reads-unlocked` or `writes-shared`.
    #[serde(default)]
    pub buffered_io: Option<String>,
    /// XFS: what direct I/O takes as IOLOCK: `rwsem`, `none`, or a range lock's design.
    #[serde(default)]
    pub iolock: Option<String>,
    /// btrfs: the workload's directories count as made in the running transaction.
    #[serde(default)]
    pub new_directories: bool,
    /// btrfs: mounted with `nodatacow`.
    #[serde(default)]
    pub nodatacow: bool,
    /// Step costs by name, nanoseconds.
    #[serde(default)]
    pub costs: BTreeMap<String, f64>,
}

/// The filesystems there are.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum FilesystemKind {
    Xfs,
    Btrfs,
    Ext4,
    Tmpfs,
    None,
}

/// A block device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Who serves its requests.
    pub served_by: ServedBy,
    /// How many requests it serves at once.
    pub parallelism: u32,
    /// CPU time of the submitter, from building the request to handing it over.
    pub submit_ns: f64,
    /// CPU time of a request's end besides the wake-up in it: the interrupt of hardware, the softirq after a worker.
    pub interrupt_ns: f64,
    /// CPU time of `kblockd` to issue one request of a flush sequence.
    #[serde(default)]
    pub dispatch_ns: f64,
    /// It can write data past its cache (`REQ_FUA`); without, a flush follows them.
    #[serde(default = "yes")]
    pub fua: bool,
    /// Reads.
    pub read: ServiceSpec,
    /// Writes.
    pub write: ServiceSpec,
    /// Flushes of its cache.
    pub flush: ServiceSpec,
    /// How many requests it has at most; others wait before it. Without, there is no limit.
    #[serde(default)]
    pub depth: Option<u32>,
    /// The pipe that all requests share, if there is a limit.
    #[serde(default)]
    pub bandwidth: Option<BandwidthSpec>,
    /// How many writes its flash takes, however small, if there is a limit.
    #[serde(default)]
    pub small_writes: Option<SmallWritesSpec>,
    /// Its arm and platters if it is a disk; the times of requests are then besides these.
    #[serde(default)]
    pub disk: Option<DiskSpec>,
}

impl DeviceSpec {
    /// Something that takes no time.
    pub fn instant() -> Self {
        let none = ServiceSpec { time_ns: 0.0, cv: 0.0, per_kib_ns: 0.0 };
        Self {
            served_by: ServedBy::Submitter,
            parallelism: 1,
            submit_ns: 0.0,
            interrupt_ns: 0.0,
            dispatch_ns: 0.0,
            fua: true,
            read: none,
            write: none,
            flush: none,
            depth: None,
            bandwidth: None,
            small_writes: None,
            disk: None,
        }
    }
}

/// Bytes a second that a device can move, by direction; each uses its part of one pipe.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandwidthSpec {
    /// Of reads.
    pub read: f64,
    /// Of writes.
    pub write: f64,
}

/// Writes that flash can take: for ever, and at once after a rest.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmallWritesSpec {
    /// So many a second for ever.
    pub rate: f64,
    /// So many at once.
    pub burst: f64,
}

/// The arm and the platters of a disk.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Time of one turn.
    pub revolution_ns: f64,
    /// A seek to the next track.
    pub seek_track_ns: f64,
    /// A seek over the whole disk.
    pub seek_full_ns: f64,
    /// Bytes on the disk.
    pub capacity_bytes: u64,
}

/// Who does the work of a request.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ServedBy {
    /// The task that submits it.
    Submitter,
    /// A kernel thread.
    Worker,
    /// The device itself.
    Hardware,
}

/// How long a kind of request takes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// Mean of 4 KiB.
    pub time_ns: f64,
    /// Its standard deviation relative to the mean (log-normal); 0 is always the mean.
    pub cv: f64,
    /// Each further KiB.
    pub per_kib_ns: f64,
}

/// A table of named costs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostTable {
    /// Name -> nanoseconds (or counts).
    #[serde(default)]
    pub costs: BTreeMap<String, f64>,
}

/// The workloads there are.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum WorkloadKind {
    Compile,
    Create,
    CreateUnlink,
    Tmpfile,
    FsMark,
    Mix,
    Dbench,
    LockCycle,
    RangeLock,
    Fio,
    Python,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Compile,
        Self::Create,
        Self::CreateUnlink,
        Self::Tmpfile,
        Self::FsMark,
        Self::Mix,
        Self::Dbench,
        Self::LockCycle,
        Self::RangeLock,
        Self::Fio,
        Self::Python,
    ];
}

/// Which directories the tasks work in.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Directories {
    /// All in one.
    #[default]
    Shared,
    /// One each.
    PerTask,
}

/// Which CPU each task is bound to, and all that it starts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// None: the scheduler decides.
    #[default]
    None,
    /// One of its own; a socket is filled before the next one is begun.
    Compact,
    /// One of its own; one socket after the other gets a task.
    Spread,
}

/// What the tasks do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Which program they run.
    pub kind: WorkloadKind,
    /// How many tasks.
    pub tasks: u32,
    /// Shared directory or one each.
    #[serde(default)]
    pub directories: Directories,
    /// All tasks on this one CPU.
    #[serde(default)]
    pub pin_to_cpu: Option<u32>,
    /// Each task on a CPU of its own.
    #[serde(default)]
    pub binding: Binding,
    /// Their nice level.
    #[serde(default)]
    pub nice: i32,
    /// Where the program of a Python workload is: `FILE:FUNCTION`. Who calls the engine loads it.
    #[serde(default)]
    pub program: Option<String>,
    /// SHA-256 of that file, so that the text of a spec says all its result depends on.
    #[serde(default)]
    pub program_sha256: Option<String>,
    /// Numbers of the workload (nanoseconds, counts, fractions).
    #[serde(default)]
    pub params: BTreeMap<String, serde_json::Value>,
}

/// Some of the tasks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// What results call it.
    pub name: String,
    /// What its tasks do, and how many they are.
    pub workload: WorkloadSpec,
}

/// A load and the number of its first task.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// What the tasks do.
    pub workload: &'a WorkloadSpec,
    /// Tasks are numbered through all loads.
    pub first: u32,
    /// Their nice level, where it is not that of the whole workload.
    pub nice: Option<i32>,
}

impl Load<'_> {
    /// The numbers of its tasks.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.workload.tasks
    }
}

impl WorkloadSpec {
    /// A number among the parameters, or its default. Panics for one that the workload does not have.
    pub fn number(&self, name: &str) -> f64 {
        let given = self.given(name);
        match params::is(self.kind, name) {
            Is::Number(default) => given.unwrap_or(default),
            Is::Required => given.expect("a spec is checked"),
            other => panic!("{name} is no number, but {other:?}"),
        }
    }

    /// A number that need not be there.
    pub fn given(&self, name: &str) -> Option<f64> {
        self.params.get(name).and_then(serde_json::Value::as_f64)
    }

    /// A list of times that need not be there (ns).
    pub fn times(&self, name: &str) -> Option<Vec<f64>> {
        let list = self.params.get(name)?.as_array()?;
        Some(list.iter().filter_map(serde_json::Value::as_f64).collect())
    }

    /// A word among the parameters, or its default. Panics for one that the workload does not have.
    pub fn word(&self, name: &str) -> &str {
        let Is::Word(words) = params::is(self.kind, name) else { panic!("{name} is no word") };
        self.params.get(name).and_then(serde_json::Value::as_str).unwrap_or(words[0])
    }
}

impl RunSpec {
    /// Parses and checks a spec. The error names the JSON path and what is wrong.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let spec: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        spec.check()?;
        Ok(spec)
    }

    /// The loads of all groups; the workload itself where there are none.
    pub fn loads(&self) -> Vec<Load<'_>> {
        if self.groups.is_empty() {
            return vec![Load { workload: &self.workload, first: 0, nice: None }];
        }
        let mut next = 0;
        let mut loads = Vec::new();
        for GroupSpec { workload, .. } in &self.groups {
            let nice = (workload.nice != self.workload.nice).then_some(workload.nice);
            loads.push(Load { workload, first: next, nice });
            next = next.saturating_add(workload.tasks);
        }
        loads
    }

    fn check_groups(&self) -> Result<(), String> {
        let kinds = || self.groups.iter().map(|group| group.workload.kind);
        let alone = |kind| matches!(kind, WorkloadKind::Python | WorkloadKind::RangeLock | WorkloadKind::Fio);
        if let Some(kind) = kinds().find(|kind| alone(*kind)) {
            return Err(format!("groups: tasks of {kind:?} cannot be in a group"));
        }
        let cycles = kinds().filter(|kind| *kind == WorkloadKind::LockCycle).count();
        require(cycles == 0 || cycles == self.groups.len(), "groups", "lock cycles have no filesystem, and other loads need one")?;
        let tasks: u64 = self.groups.iter().map(|group| u64::from(group.workload.tasks)).sum();
        require(self.groups.is_empty() || tasks == u64::from(self.workload.tasks), "workload.tasks", "must be those of all groups")
    }

    /// What may be wrong with a load.
    fn check_load(&self, w: &WorkloadSpec) -> Result<(), String> {
        require(w.tasks >= 1, "workload.tasks", "must be at least 1")?;
        require((-20..=19).contains(&w.nice), "workload.nice", "must be -20..=19")?;
        params::check(w.kind, &w.params)?;
        if let Some(cpu) = w.pin_to_cpu {
            require(cpu < self.machine.cpus, "workload.pin_to_cpu", "names a CPU that the machine does not have")?;
            require(w.binding == Binding::None, "workload.binding", "must be none where all tasks are on one CPU")?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let m = &self.machine;
        require((1..=crate::machine::MAX_CPUS).contains(&m.cpus), "machine.cpus", "must be 1..=256")?;
        if self.workload.kind != WorkloadKind::Python {
            if let Some(role) = self.kernel.locks.keys().find(|role| roles().all(|known| known != role.as_str())) {
                return Err(format!("kernel.locks: nothing takes '{role}'{}", hint(role, roles())));
            }
        }
        self.check_groups()?;
        self.loads().into_iter().try_for_each(|load| self.check_load(load.workload))?;
        require(self.batches >= 1, "batches", "must be at least 1")?;
        require(self.duration_ns > 0.0 && self.duration_ns < 1e15, "duration_ns", "must be positive and below 1e15")?;
        require((0.0..1e15).contains(&self.warmup_ns), "warmup_ns", "must be between 0 and 1e15")?;
        require((0.0..=10.0).contains(&m.costs.step_cv), "machine.costs.step_cv", "must be between 0 and 10")?;
        require(m.costs.smt_speed > 0.0 && m.costs.smt_speed <= 1.0, "machine.costs.smt_speed", "must be above 0 and at most 1")?;
        require(m.costs.line_overlap >= 1.0, "machine.costs.line_overlap", "must be at least 1")?;
        m.caches.as_ref().map_or(Ok(()), CachesSpec::check)?;
        require(self.kernel.tick_ns >= 1e3, "kernel.tick_ns", "must be at least 1 us")?;
        require(self.kernel.base_slice_ns >= 1e3, "kernel.base_slice_ns", "must be at least 1 us")?;
        let cfs = self.kernel.rules.class == Class::Cfs;
        require(cfs == self.kernel.cfs.is_some(), "kernel.cfs", "must be given where the rule sched.class is cfs, and nowhere else")?;
        if let Some(device) = &self.device {
            require(device.parallelism >= 1, "device.parallelism", "must be at least 1")?;
        }
        if let Some(WhatIf { change, .. }) = &self.whatif {
            match change {
                Change::HoldScale(factor) => require((0.0..=1e3).contains(factor), "whatif.change.hold_scale", "must be between 0 and 1000")?,
                Change::Split(parts) => require((1..=4096).contains(parts), "whatif.change.split", "must be 1..=4096")?,
                Change::Kind(kind) => LockKind::parse(kind).map(drop).map_err(|e| format!("whatif.change.kind: {e}"))?,
                Change::Remove => {}
            }
        }
        Ok(())
    }
}

fn require(holds: bool, path: &str, what: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("{path}: {what}"))
    }
}
