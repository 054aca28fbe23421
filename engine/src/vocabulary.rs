//! The words that a spec may use, for those who write specs: schema, completion and refusals are made from them.

use crate::gathered::gathered;
use crate::kernel::{Rules, ROLES};
use crate::machine::LockKind;
use crate::population::cost_names;
use crate::spec::{params, FilesystemKind, KernelConstants, WorkloadKind};
use crate::workloads::acts::ACTS;
use serde_json::{json, Map, Value};

/// All of it: lock kinds and roles, the rules of kernels with their values and defaults,
/// constants, the operations of a mix, the costs that
/// each filesystem reads, and the parameters of each workload.
pub fn vocabulary() -> Value {
    let kinds: Vec<_> =
        LockKind::NAMES.iter().map(|(name, kind)| json!({"name": name, "perf": kind.perf_name()})).collect();
    let roles: Vec<_> = ROLES.iter().map(|(name, about)| json!({"name": name, "about": about})).collect();
    json!({
        "lock_kinds": kinds,
        "roles": roles,
        "rules": Rules::table(),
        "constants": KernelConstants::NAMES,
        "operations": ACTS.map(|(name, _)| name).as_slice(),
        "costs": costs(),
        "params": parameters(),
    })
}

fn costs() -> Map<String, Value> {
    let kinds = [FilesystemKind::Xfs, FilesystemKind::Btrfs, FilesystemKind::Ext4, FilesystemKind::Tmpfs];
    gathered(kinds.into_iter().map(|kind| (word(kind), json!(cost_names(kind)))))
}

fn parameters() -> Map<String, Value> {
    let all = WorkloadKind::ALL.iter().filter_map(|kind| Some((*kind, params::of(*kind)?)));
    gathered(all.map(|(kind, known)| (word(kind), known.map(params::describe).collect())))
}

fn word(kind: impl serde::Serialize) -> String {
    json!(kind).as_str().expect("a word").to_owned()
}
