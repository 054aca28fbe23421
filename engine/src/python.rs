//! The only file that knows Python exists.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Runs one spec (JSON text) and returns its result (JSON text); releases the GIL meanwhile.
#[pyfunction]
fn run(py: Python<'_>, spec: &str) -> PyResult<String> {
    py.allow_threads(|| guarded(|| crate::run::run_json(spec)))
}

/// Runs one spec (JSON text); returns its result (JSON text) and its event trace.
#[pyfunction]
fn trace(py: Python<'_>, spec: &str) -> PyResult<(String, Vec<crate::run::NamedEntry>)> {
    py.allow_threads(|| guarded(|| crate::run::trace_json(spec)))
}

/// What the filesystem structures look like after an experiment (JSON text in and out).
#[pyfunction]
fn structure_report(py: Python<'_>, request: &str) -> PyResult<String> {
    py.allow_threads(|| guarded(|| crate::filesystems::xfs::report::structure_report(request)))
}

/// A wrong request is a `ValueError`; a defect of the engine is a `RuntimeError` that says where, never an abort.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> PyResult<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(PyValueError::new_err),
        Err(panic) => {
            let what = panic.downcast_ref::<String>().map(String::as_str);
            let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            Err(PyRuntimeError::new_err(format!("a defect in the engine: {what}")))
        }
    }
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(trace, module)?)?;
    module.add_function(wrap_pyfunction!(structure_report, module)?)?;
    Ok(())
}
