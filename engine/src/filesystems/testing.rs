//! What tests of a filesystem's parts run on: a machine of four CPUs whose costs are few, and a device that needs 2 ms to write.

use crate::devices::BlockDevice;
use crate::filesystems::costs::Costs;
use crate::kernel::Rules;
use crate::machine::Native;
use crate::memory::{Lru, Memory};
use crate::spec::{DeviceSpec, FilesystemKind, KernelConstants, RunSpec};
use crate::waist::{Host, Machine, Time};
use crate::workqueue::Pools;
use crate::writeback::{Setting, Writeback};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A millisecond.
pub const MS: Time = 1_000_000_000;

/// The type of each lock, by its role.
const LOCKS: [(&str, &str); 31] = [
    ("xfs.buffer", "semaphore"),
    ("xfs.ilock", "rwsem"),
    ("xfs.iolock", "rwsem"),
    ("xfs.cil_ctx", "rwsem"),
    ("xfs.push_lock", "qspinlock"),
    ("xfs.icloglock", "qspinlock"),
    ("xfs.log_wait", "qspinlock"),
    ("xfs.grant_lock", "qspinlock"),
    ("xfs.cil_lock", "qspinlock"),
    ("xfs.cil_wq", "mutex"),
    ("vfs.i_rwsem", "rwsem"),
    ("vfs.freeze", "percpu-rwsem"),
    ("vfs.inode_hash", "qspinlock"),
    ("vfs.inode_list", "qspinlock"),
    ("vfs.isec_list", "qspinlock"),
    ("vfs.wb_list", "qspinlock"),
    ("vfs.dentry_lru", "qspinlock"),
    ("vfs.s_vfs_rename_mutex", "mutex"),
    ("vfs.percpu_counter", "qspinlock"),
    ("vfs.rename_lock", "seqlock"),
    ("mm.lru_lock", "qspinlock"),
    ("mm.folio_lock", "bit-lock"),
    ("vfs.d_lock", "qspinlock"),
    ("vfs.flc_lock", "qspinlock"),
    ("vfs.blocked_lock_lock", "qspinlock"),
    ("tmpfs.stat_lock", "qspinlock"),
    ("xfs.i_flags_lock", "qspinlock"),
    ("ext4.j_state_lock", "qrwlock"),
    ("ext4.j_list_lock", "qspinlock"),
    ("ext4.j_checkpoint_mutex", "mutex"),
    ("ext4.orphan", "mutex"),
];

/// How long the kernel waits; its code takes no time.
fn constants() -> BTreeMap<&'static str, f64> {
    let mut all: BTreeMap<_, _> = KernelConstants::NAMES.iter().map(|name| (*name, 0.0)).collect();
    all.extend([
        ("migration_cost", 5e5),
        ("rwsem_handoff_wait", 4e6),
        ("rwsem_reader_batch_max", 256.0),
        ("rwsem_reader_spin_base", 1e4),
        ("rwsem_reader_spin_per_reader", 500.0),
        ("rwsem_reader_spin_cap", 2.5e4),
        ("percpu_rwsem_grace_period", 1e7),
        ("numa_spinlock_threshold", 1e7),
        ("semaphore_count", 2.0),
        ("cohort_handoffs", 64.0),
        ("hqlock_fairness_threshold", 1000.0),
        ("hqlock_general_handoffs_turn_numa", 50.0),
        ("lru_batch", 31.0),
        ("idle_timer", 1e9),
    ]);
    all
}

pub fn spec(duration: Time) -> RunSpec {
    let locks: BTreeMap<&str, &str> = LOCKS.into();
    let json = serde_json::json!({
        "seed": 1, "warmup_ns": 0, "duration_ns": duration / 1000, "batches": 1,
        "machine": {
            "cpus": 4, "cpus_per_core": 1, "cpus_per_llc": 4, "cpus_per_socket": 4, "idle_states": [], "watts_active": 4, "watts_spin": 4,
            "costs": {
                "smt_speed": 1, "line_hit": 2, "line_smt": 8, "line_llc": 49, "line_socket": 49, "line_remote": 120, "line_overlap": 10, "step_cv": 0,
                "context_switch": 1500, "wakeup": 1000, "ipi_send": 0, "ipi_deliver": 0, "cpu_relax": 47, "speed": 1
            }
        },
        "kernel": {
            "name": "test", "tick_ns": 4e6, "base_slice_ns": 3e6, "preemption": "voluntary", "locks": locks,
            "constants": constants()
        },
        "filesystem": {"kind": "none"},
        "workload": {"kind": "python", "tasks": 1}
    });
    RunSpec::from_json(&json.to_string()).expect("a valid spec")
}

/// The device, whose flush takes no time.
pub fn device(native: &mut Native, spec: &RunSpec, rules: Rules) -> Rc<BlockDevice> {
    let device: DeviceSpec = serde_json::from_value(serde_json::json!({
        "served_by": "hardware", "parallelism": 4, "submit_ns": 100, "interrupt_ns": 100,
        "read": {"time_ns": 2e6, "cv": 0, "per_kib_ns": 0}, "write": {"time_ns": 2e6, "cv": 0, "per_kib_ns": 0}, "flush": {"time_ns": 0, "cv": 0, "per_kib_ns": 0}
    }))
    .expect("a device");
    let setting = Setting { memory: None, bandwidth: None, tasks: 1, tick: 4 * MS };
    let numbers = crate::population::cost_names(FilesystemKind::Ext4).iter().map(|name| (name.clone(), 1.0)).collect();
    let lists = native.setup(|m| Lru::new(m, spec));
    let costs = Costs::new(vec![&numbers], 1.0, rules, 0).with_lists(lists);
    let writeback = native.setup(|m| Writeback::new(m, setting, &costs)).expect("all numbers");
    let memory = Memory::new(None, 4 * MS, &costs).expect("all numbers");
    let pools = native.setup(|m| Pools::new(m, m.cpus(), false));
    BlockDevice::start(native, &device, (1.0, rules, pools), (writeback, memory))
}

/// What `build` makes of a table of costs into which whatever it asks for comes at 100 each.
pub fn built<T>(
    table: &mut BTreeMap<String, f64>,
    mut build: impl FnMut(&BTreeMap<String, f64>) -> Result<T, String>,
) -> T {
    loop {
        let missing = match build(table) {
            Ok(built) => return built,
            Err(error) => error.split('\'').nth(1).expect("it names the cost").to_owned(),
        };
        table.insert(missing, 100.0);
    }
}
