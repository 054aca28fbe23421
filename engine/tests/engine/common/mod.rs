//! Runs for these tests: a machine and a kernel on which only what a test names takes time, no filesystem.

pub mod draw;

use serde_json::{json, Map, Value};
use simfs_engine::spec::{KernelConstants, RunSpec};

/// A run in which `changes` stands over the values below, key by key.
///
/// # Panics
///
/// If it is not a valid run.
pub fn spec(cpus: u32, changes: &Value) -> RunSpec {
    let mut run = json!({
        "seed": 1, "warmup_ns": 0, "duration_ns": 1e7, "batches": 1,
        "machine": {
            "cpus": cpus, "cpus_per_core": 1, "cpus_per_llc": cpus, "cpus_per_socket": cpus,
            "costs": {
                "line_hit": 0, "line_smt": 0, "line_llc": 0, "line_socket": 0, "line_remote": 0, "line_overlap": 1,
                "step_cv": 0, "smt_speed": 1, "cpu_relax": 0, "context_switch": 0, "wakeup": 0, "ipi_send": 0,
                "ipi_deliver": 0, "speed": 1
            },
            "idle_states": [], "watts_active": 4, "watts_spin": 4
        },
        "kernel": {
            "name": "test", "tick_ns": 4e6, "base_slice_ns": 3e6, "preemption": "none", "locks": {},
            "constants": constants()
        },
        "filesystem": {"kind": "none"},
        "workload": {"kind": "python", "tasks": 1}
    });
    merge(&mut run, changes);
    RunSpec::from_json(&run.to_string()).expect("a valid spec")
}

/// Costs of a real machine, in ns.
#[allow(dead_code)] // not every test has a use for them
pub fn real_costs() -> Value {
    json!({
        "line_hit": 2, "line_smt": 8, "line_llc": 49, "line_socket": 49, "line_remote": 120, "line_overlap": 10,
        "context_switch": 1500, "wakeup": 1000, "cpu_relax": 47
    })
}

/// All constants of a kernel: what would divide or count by nothing has a value, the others are 0.
fn constants() -> Value {
    let mut constants: Map<_, _> = KernelConstants::NAMES.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
    constants.extend(
        [
            ("migration_cost", 5e5),
            ("rwsem_handoff_wait", 4e6),
            ("rwsem_reader_batch_max", 256.0),
            ("numa_spinlock_threshold", 1e7),
            ("semaphore_count", 2.0),
            ("cohort_handoffs", 64.0),
            ("hqlock_fairness_threshold", 1000.0),
            ("hqlock_general_handoffs_turn_numa", 50.0),
            ("lru_batch", 15.0),
            ("idle_timer", 1e9),
        ]
        .map(|(name, value)| (name.to_owned(), json!(value))),
    );
    constants.into()
}

/// Puts `changes` over `value`, object by object.
fn merge(value: &mut Value, changes: &Value) {
    match (value, changes) {
        (Value::Object(object), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(object.entry(key).or_insert(Value::Null), change);
            }
        }
        (value, change) => *value = change.clone(),
    }
}
