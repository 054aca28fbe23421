//! The words that a spec may use, for those who write specs: schema, completion and refusals are made from them.

use crate::kernel::Rules;
use crate::machine::LockKind;
use serde_json::{json, Value};

/// All of it: lock kinds, and the rules of kernels with their values and defaults.
pub fn vocabulary() -> Value {
    let kinds: Vec<_> = LockKind::NAMES.iter().map(|(name, perf)| json!({"name": name, "perf": perf})).collect();
    json!({"lock_kinds": kinds, "rules": Rules::table()})
}
