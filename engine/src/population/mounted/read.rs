//! Which costs a filesystem reads. It is asked once: mounted with a table that has everything and remembers the names.

use super::mount_with;
use crate::costs::Costs;
use crate::gathered::gathered;
use crate::kernel::roles;
use crate::lru::Lru;
use crate::machine::Native;
use crate::nearest::hint;
use crate::spec::{FilesystemKind, KernelConstants, RunSpec};
use crate::waist::Host;
use serde_json::{json, Map, Value};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The names of all costs that a filesystem of this kind reads, however it is made and mounted.
pub fn cost_names(kind: FilesystemKind) -> &'static BTreeSet<String> {
    const NONE: BTreeSet<String> = BTreeSet::new();
    static NAMES: [OnceLock<BTreeSet<String>>; 5] = [const { OnceLock::new() }; 5];
    static NOTHING: BTreeSet<String> = NONE;
    match kind {
        FilesystemKind::None => &NOTHING,
        kind => NAMES[kind as usize].get_or_init(|| ask(kind)),
    }
}

/// Refuses a cost that nothing would read.
pub(super) fn refuse_others(spec: &RunSpec) -> Result<(), String> {
    let known = cost_names(spec.filesystem.kind);
    for (table, given) in [("filesystem", &spec.filesystem.costs), ("vfs", &spec.vfs.costs)] {
        if let Some(name) = given.keys().find(|name| !known.contains(*name)) {
            let near = hint(name, known.iter().map(String::as_str));
            return Err(format!("{table}.costs: nothing reads '{name}'{near}"));
        }
    }
    Ok(())
}

/// The index of a range lock is an option of XFS; each has a price of its own.
fn ask(kind: FilesystemKind) -> BTreeSet<String> {
    let locks: &[&str] =
        if kind == FilesystemKind::Xfs { &["interval-tree", "btree", "optimistic"] } else { &["rwsem"] };
    gathered(locks.iter().flat_map(|iolock| ask_mounted(kind, iolock)))
}

fn ask_mounted(kind: FilesystemKind, iolock: &str) -> BTreeSet<String> {
    let spec = smallest(kind, iolock);
    let mut native = Native::new(&spec);
    let costs = Costs::asking().with_lists(native.setup(|m| Lru::new(m, &spec)));
    mount_with(&mut native, &spec, &costs).expect("it has everything");
    costs.asked()
}

/// A machine on which nothing runs, with all locks.
fn smallest(kind: FilesystemKind, iolock: &str) -> RunSpec {
    let costs = [
        "line_hit",
        "line_smt",
        "line_llc",
        "line_socket",
        "line_remote",
        "line_overlap",
        "cpu_relax",
        "context_switch",
        "wakeup",
        "ipi_send",
        "ipi_deliver",
        "step_cv",
        "smt_speed",
        "speed",
    ];
    let ones = |names: &[&str]| gathered::<Map<_, _>, _>(names.iter().map(|name| ((*name).to_owned(), 1.into())));
    let locks: Map<_, _> = gathered(roles().map(|role| (role.to_owned(), "rwsem".into())));
    let spec: Value = json!({
        "seed": 1, "warmup_ns": 0, "duration_ns": 1,
        "machine": {
            "cpus": 1, "cpus_per_core": 1, "cpus_per_llc": 1, "cpus_per_socket": 1, "costs": ones(&costs), "idle_states": [],
            "watts_active": 1, "watts_spin": 1
        },
        "kernel": {
            "name": "any", "tick_ns": 4e6, "base_slice_ns": 3e6, "preemption": "none", "locks": locks, "constants": ones(KernelConstants::NAMES)
        },
        "filesystem": {"kind": kind, "iolock": iolock},
        "workload": {"kind": "create", "tasks": 1}
    });
    // As text, which specs are read from anyway: a reader for values would be compiled as well.
    serde_json::from_str(&spec.to_string()).expect("a valid spec")
}
