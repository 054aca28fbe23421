//! The engine as the module `simfs._engine`. Only the crates of this folder know that Python exists.
//!
//! Programs in Python are a crate of their own (`simfs-programs`), and so are the built-in ones on a machine in Python
//! (`simfs-reference`): both are compiled while the engine is still being optimised. `measuring` is about this machine.

mod measuring;

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use simfs_engine::machine::labels::Label;
use simfs_engine::run::{NamedEntry, Traced};
use simfs_engine::stop::STOPPED;
use simfs_programs::{caught, populate};
use statrs::distribution::{ContinuousCDF, StudentsT};

type Callable<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Runs one spec (JSON text) and returns its result (JSON text); releases the GIL meanwhile, but not with a `program`. With `check`
/// the structures of the filesystem are compared with the files that exist.
#[pyfunction]
#[pyo3(signature = (spec, program=None, setup=None, *, check=false))]
fn run(
    py: Python<'_>,
    spec: &str,
    program: Callable<'_, '_>,
    setup: Callable<'_, '_>,
    check: bool,
) -> PyResult<String> {
    match program {
        None => detached(py, || simfs_engine::run::run_json(spec, check)),
        Some(program) => {
            attached(|| simfs_engine::run::run_json_with(spec, check, |m, spec| populate(m, spec, program, setup)))
        }
    }
}

/// The same; returns the result and the trace of the events at `start` (ps) and later.
#[pyfunction]
#[pyo3(signature = (spec, program=None, setup=None, *, start=0))]
fn trace(
    py: Python<'_>,
    spec: &str,
    program: Callable<'_, '_>,
    setup: Callable<'_, '_>,
    start: u64,
) -> PyResult<(String, Vec<NamedEntry>)> {
    traced(py, spec, program, setup, start).map(|traced| (traced.result, traced.events))
}

/// The same with what was in force at `start` and the longest waits before: (result, in force, events, longest waits).
#[pyfunction]
#[pyo3(signature = (spec, program=None, setup=None, *, start=0))]
fn watch(
    py: Python<'_>,
    spec: &str,
    program: Callable<'_, '_>,
    setup: Callable<'_, '_>,
    start: u64,
) -> PyResult<Watched> {
    traced(py, spec, program, setup, start).map(|t| (t.result, t.in_force, t.events, t.longest))
}

type Watched = (String, Vec<NamedEntry>, Vec<NamedEntry>, Vec<(String, Label, u64, u64)>);

fn traced(
    py: Python<'_>,
    spec: &str,
    program: Callable<'_, '_>,
    setup: Callable<'_, '_>,
    start: u64,
) -> PyResult<Traced> {
    match program {
        None => detached(py, || simfs_engine::run::trace_json(spec, start)),
        Some(program) => {
            attached(|| simfs_engine::run::trace_json_with(spec, start, |m, spec| populate(m, spec, program, setup)))
        }
    }
}

/// What the filesystem structures look like after an experiment (JSON text in and out).
#[pyfunction]
fn structure_report(py: Python<'_>, request: &str) -> PyResult<String> {
    detached(py, || simfs_engine::filesystems::structure_report(request))
}

/// The words that specs may use (JSON text).
#[pyfunction]
fn vocabulary(py: Python<'_>) -> PyResult<String> {
    detached(py, || Ok(simfs_engine::vocabulary::vocabulary().to_string()))
}

/// Student's t of `freedom` degrees below which the part `p` of it lies. Here since importing SciPy takes longer than a run.
#[pyfunction]
fn student_t(p: f64, freedom: f64) -> PyResult<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).map_err(|error| PyValueError::new_err(error.to_string()))?;
    if !(p > 0.0 && p < 1.0) {
        return Err(PyValueError::new_err("a part lies between 0 and 1"));
    }
    Ok(t.inverse_cdf(p))
}

/// Works without the GIL. A wrong request is a `ValueError`; a defect of the engine is a `RuntimeError` that says what.
fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, String> + Send) -> PyResult<T> {
    py.detach(|| caught(work))?.map_err(refused)
}

/// The same with the GIL. What the user's code raises comes out as a `ProgramError`.
fn attached<T>(work: impl FnOnce() -> Result<T, String>) -> PyResult<T> {
    caught(work)?.map_err(refused)
}

fn refused(problem: String) -> PyErr {
    if problem == STOPPED {
        PyKeyboardInterrupt::new_err(problem)
    } else {
        PyValueError::new_err(problem)
    }
}

/// Ends all runs of this process that have begun, at their next event: they raise `KeyboardInterrupt`.
#[pyfunction]
fn stop() {
    simfs_engine::stop::stop();
}

/// How often that was asked for.
#[pyfunction]
fn stops() -> u64 {
    simfs_engine::stop::stops()
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", simfs_engine::VERSION)?;
    module.add("__source__", simfs_engine::SOURCE)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(trace, module)?)?;
    module.add_function(wrap_pyfunction!(watch, module)?)?;
    module.add_function(wrap_pyfunction!(vocabulary, module)?)?;
    module.add_function(wrap_pyfunction!(student_t, module)?)?;
    module.add_function(wrap_pyfunction!(structure_report, module)?)?;
    module.add_function(wrap_pyfunction!(measuring::measure, module)?)?;
    module.add_function(wrap_pyfunction!(stop, module)?)?;
    module.add_function(wrap_pyfunction!(stops, module)?)?;
    simfs_programs::add_to(module)?;
    simfs_reference::add_to(module)
}
