//! One run from spec to result: builds the machine, the filesystem and the tasks, runs, reports.

use crate::machine::{LockKind, Native};
use crate::report::RunResult;
use crate::spec::{RunSpec, WorkloadKind};
use crate::waist::{Life, Machine, Placement};
use crate::workloads::draw::Draw;
use crate::workloads::lock_cycle::{self, Cycle};

/// Runs a spec (JSON) and returns the result (JSON). The error names what is wrong with the spec.
pub fn run_json(spec: &str) -> Result<String, String> {
    let spec = RunSpec::from_json(spec)?;
    let result = run(&spec)?;
    serde_json::to_string(&result).map_err(|e| e.to_string())
}

/// Runs a spec.
pub fn run(spec: &RunSpec) -> Result<RunResult, String> {
    for (role, kind) in &spec.kernel.locks {
        LockKind::parse(kind).map_err(|e| format!("kernel.locks.{role}: {e}"))?;
    }
    let mut native = Native::new(spec);
    populate(&mut native, spec)?;
    let outcome = native.run(spec);
    let result = RunResult::new(spec, &native.state(), outcome);
    Ok(result)
}

fn populate(native: &mut Native, spec: &RunSpec) -> Result<(), String> {
    let placement = spec.workload.pin_to_cpu.map_or(Placement::Anywhere, Placement::Pinned);
    match spec.workload.kind {
        WorkloadKind::LockCycle => lock_cycle_tasks(native, spec, placement),
        _ => Err("workload.kind: not built yet".into()),
    }
}

fn lock_cycle_tasks(native: &mut Native, spec: &RunSpec, placement: Placement) -> Result<(), String> {
    let w = &spec.workload;
    let draw = |what: &str, default: f64| {
        let name = format!("{what}_distribution");
        Draw::parse(w.word(&name, "constant"), w.number(&format!("{what}_ns"), default), w.number(&format!("{what}_cv"), 1.0))
            .map_err(|e| format!("workload.params.{name}: {e}"))
    };
    let cycle = Cycle {
        think: draw("think", 1000.0)?,
        hold: draw("hold", 50.0)?,
        thinks_on_cpu: w.word("think", "cpu") == "cpu",
        readers: w.number("readers", 0.0),
    };
    let lock = native.setup(|m| m.new_lock(m.class("lock", "lock")));
    for task in 0..w.tasks {
        native.spawn(placement, Life::Foreground, |m| lock_cycle::run(m, lock, cycle, format!("task {task}")));
    }
    Ok(())
}
