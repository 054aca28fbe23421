//! What the engine is given for one run (`docs/seams.md`, seam 1). Times are nanoseconds.

mod check;
mod device;
mod kernel;
mod machine;
pub mod params;
mod workload;

pub use device::{BandwidthSpec, DeviceSpec, DiskSpec, FirstWriteSpec, ServedBy, ServiceSpec, SmallWritesSpec};
pub use kernel::{CfsSpec, KernelConstants, KernelSpec, KernelThreadsSpec, Preemption};
pub use machine::{BodySpec, CachesSpec, IdleState, MachineCosts, MachineSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use workload::{Binding, Directories, GroupSpec, Load, WorkloadKind, WorkloadSpec};

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

/// `mkfs.ext4` without a word.
fn inode_ratio() -> u64 {
    16 << 10
}

fn twenty() -> u32 {
    20
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
    /// Bytes that are free when the tasks start, the rest being other files'; when absent, what the files of the load leave.
    #[serde(default)]
    pub free_bytes: Option<u64>,
    /// XFS: number of allocation groups; the default of `mkfs.xfs` when absent.
    #[serde(default)]
    pub agcount: Option<u32>,
    /// XFS: size of the log; the default of `mkfs.xfs` when absent.
    #[serde(default)]
    pub log_bytes: Option<u64>,
    /// XFS: size of a log buffer; 32 KiB when absent.
    #[serde(default)]
    pub logbsize: Option<u64>,
    /// XFS: the log's stripe unit; none when absent.
    #[serde(default)]
    pub log_su: Option<u64>,
    /// XFS: size of a block of a directory; 4 KiB when absent.
    #[serde(default)]
    pub dirblksize: Option<u64>,
    /// XFS: whether inodes have parent pointers.
    #[serde(default)]
    pub parent: bool,
    /// ext4: whether it has a journal.
    #[serde(default = "yes")]
    pub journal: bool,
    /// ext4: bytes for each inode.
    #[serde(default = "inode_ratio")]
    pub inode_ratio: u64,
    /// ext4: whether it has an orphan file.
    #[serde(default)]
    pub orphan_file: bool,
    /// ext4: the seed of its directories' hashes, as the superblock has it; zeros are none.
    #[serde(default)]
    pub hash_seed: [u32; 4],
    /// ext4: the directory of the root in which those of the loads are made; the root when absent.
    #[serde(default)]
    pub below: Option<String>,
    /// XFS: what I/O through the page cache takes of the IOLOCK: `locked`, `reads-unlocked` or `writes-shared`.
    #[serde(default)]
    pub buffered_io: Option<String>,
    /// XFS: what direct I/O takes as IOLOCK: `rwsem`, `none`, or a range lock's design.
    #[serde(default)]
    pub iolock: Option<String>,
    /// btrfs: the workload's directories count as made in the running transaction.
    #[serde(default)]
    pub new_directories: bool,
    /// btrfs: the directories that a workload has in the root are subvolumes.
    #[serde(default)]
    pub subvolumes: bool,
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
#[allow(missing_docs)] // described in docs/scenarios.md
pub enum FilesystemKind {
    Xfs,
    Btrfs,
    Ext4,
    Tmpfs,
    None,
}

/// A table of named costs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostTable {
    /// Name -> nanoseconds (or counts).
    #[serde(default)]
    pub costs: BTreeMap<String, f64>,
}

impl RunSpec {
    /// Whether the run ends when all tasks have, in the part of the window in which the last one does.
    pub fn ends_with_tasks(&self) -> bool {
        let mix = self.groups.is_empty() && self.workload.kind == WorkloadKind::Mix;
        mix && self.workload.number("ends") > 0.0
    }

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
}
