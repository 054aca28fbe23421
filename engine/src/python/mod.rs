//! The only folder that knows Python exists.
//!
//! `foreign` lets the built-in programs run on a machine written in Python; `values` are the random streams and
//! histograms that such a machine shares with the native one; `failure` carries errors across.

mod failure;
mod foreign;
mod values;

use failure::caught;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Runs one spec (JSON text) and returns its result (JSON text); releases the GIL meanwhile.
#[pyfunction]
fn run(py: Python<'_>, spec: &str) -> PyResult<String> {
    detached(py, || crate::run::run_json(spec))
}

/// Runs one spec (JSON text); returns its result (JSON text) and its event trace.
#[pyfunction]
fn trace(py: Python<'_>, spec: &str) -> PyResult<(String, Vec<crate::run::NamedEntry>)> {
    detached(py, || crate::run::trace_json(spec))
}

/// What the filesystem structures look like after an experiment (JSON text in and out).
#[pyfunction]
fn structure_report(py: Python<'_>, request: &str) -> PyResult<String> {
    detached(py, || crate::filesystems::structure_report(request))
}

/// Works without the GIL. A wrong request is a `ValueError`; a defect of the engine is a `RuntimeError` that says what.
fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, String> + Send) -> PyResult<T> {
    py.allow_threads(|| caught(work))?.map_err(PyValueError::new_err)
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__source__", env!("SIMFS_ENGINE_SOURCE"))?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(trace, module)?)?;
    module.add_function(wrap_pyfunction!(structure_report, module)?)?;
    module.add_function(wrap_pyfunction!(foreign::populate, module)?)?;
    module.add_class::<foreign::Program>()?;
    module.add_class::<values::Stream>()?;
    module.add_class::<values::Histogram>()?;
    Ok(())
}
