//! One run from spec to result: builds the machine, puts on it what the spec asks for, runs, reports.

use crate::machine::labels::Label;
use crate::machine::trace::{too_many, Entry, Object, MOST};
use crate::machine::{LockKind, Native, Outcome};
use crate::population::populate;
use crate::report::RunResult;
use crate::spec::{Change, RunSpec};
use crate::stop::STOPPED;
use crate::waist::{CpuId, Time};
use std::env;

/// Set to 1, this environment variable has the structures of every run compared with the files that exist.
const CHECK: &str = "SIMFS_CHECK";

/// Runs a spec (JSON) and returns the result (JSON). The error names what is wrong with the spec. With `check` the structures of the
/// filesystem are compared with the files that exist when the run is over.
pub fn run_json(spec: &str, check: bool) -> Result<String, String> {
    run_json_with(spec, check, populate)
}

/// The same with programs that `populate` brings.
pub fn run_json_with(spec: &str, check: bool, populate: impl Populate) -> Result<String, String> {
    let spec = RunSpec::from_json(spec)?;
    let (native, outcome) = ran(&spec, check, populate, None)?;
    let result = report(&spec, native, outcome);
    serde_json::to_string(&result).map_err(|e| e.to_string())
}

/// Runs a spec.
pub fn run(spec: &RunSpec) -> Result<RunResult, String> {
    let (native, outcome) = ran(spec, false, populate, None)?;
    Ok(report(spec, native, outcome))
}

/// Runs a spec (JSON) and records everything that happens at `from` and later.
pub fn trace_json(spec: &str, from: Time) -> Result<Traced, String> {
    trace_json_with(spec, from, populate)
}

/// The same with programs that `populate` brings.
pub fn trace_json_with(spec: &str, from: Time, populate: impl Populate) -> Result<Traced, String> {
    let spec = RunSpec::from_json(spec)?;
    let (native, outcome) = ran(&spec, false, populate, Some(from))?;
    let recorded = native.state().take_recorded();
    if recorded.entries.len() > MOST {
        return Err(too_many());
    }
    let name = |object| native.state().name_of(object);
    let named = |e: &Entry| (e.time, e.task, e.cpu, e.what, name(e.object));
    let (in_force, events) =
        (recorded.in_force.iter().map(named).collect(), recorded.entries.iter().map(named).collect());
    let mut longest: Vec<_> =
        recorded.longest.iter().map(|w| (name(Object::Lock(w.lock)), w.task, w.begin, w.end)).collect();
    longest.sort();
    let result = report(&spec, native, outcome);
    Ok(Traced { result: serde_json::to_string(&result).map_err(|e| e.to_string())?, in_force, events, longest })
}

/// What a run gives that is traced.
pub struct Traced {
    /// Its result (JSON).
    pub result: String,
    /// The events that made the state at the start of the trace.
    pub in_force: Vec<NamedEntry>,
    /// All events from there on.
    pub events: Vec<NamedEntry>,
    /// The longest wait for each lock before the start and in the measured window: lock, task, begin, end (ps).
    pub longest: Vec<(String, Label, Time, Time)>,
}

/// The result of a run that has ended.
fn report(spec: &RunSpec, mut native: Native, outcome: Outcome) -> RunResult {
    let mut result = RunResult::new(spec, &native.state(), outcome);
    if result.is_sound() {
        let (broken, stall) = native.look_back();
        result.add(&native.state(), &broken, stall);
    }
    if result.is_sound() {
        native.audit().into_iter().for_each(|verdict| result.add_audit(verdict));
    }
    result
}

/// Puts programs on a native machine.
pub trait Populate: FnOnce(&mut Native, &RunSpec) -> Result<(), String> {}

impl<P: FnOnce(&mut Native, &RunSpec) -> Result<(), String>> Populate for P {}

/// A native machine after its run.
fn ran(
    spec: &RunSpec,
    check: bool,
    populate: impl Populate,
    traced_from: Option<Time>,
) -> Result<(Native, Outcome), String> {
    let mut native = ready(spec, check, populate, traced_from)?;
    native.state().begin_trace();
    let outcome = native.run(spec);
    if native.is_stopped() {
        return Err(STOPPED.into());
    }
    let problem = native.state().vain_what_if();
    problem.map_or(Ok((native, outcome)), Err)
}

/// An event of a trace: time (ps), task, CPU, what, about what.
pub type NamedEntry = (Time, Option<Label>, CpuId, &'static str, String);

/// Whether every lock excludes others: where a counterfactual takes one away or splits it, structures may be in any state.
fn excludes(spec: &RunSpec) -> bool {
    !matches!(spec.whatif.as_ref().map(|whatif| &whatif.change), Some(Change::Remove | Change::Split(_)))
}

/// A native machine with everything on it that a spec asks for.
fn ready(spec: &RunSpec, check: bool, populate: impl Populate, traced_from: Option<Time>) -> Result<Native, String> {
    for (role, kind) in &spec.kernel.locks {
        LockKind::parse(kind).map_err(|e| format!("kernel.locks.{role}: {e}"))?;
    }
    let mut native = Native::new(spec);
    if excludes(spec) && (check || env::var_os(CHECK).is_some_and(|value| value == "1")) {
        native.will_audit();
    }
    if let Some(from) = traced_from {
        native.state().prepare_trace(from);
    }
    populate(&mut native, spec)?;
    let problem = native.state().take_problem();
    problem.map_or(Ok(native), Err)
}
