//! The only file that knows Python exists.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Runs one spec (JSON text) and returns its result (JSON text); releases the GIL meanwhile.
#[pyfunction]
fn run(py: Python<'_>, spec: &str) -> PyResult<String> {
    py.allow_threads(|| crate::run::run_json(spec)).map_err(PyValueError::new_err)
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    Ok(())
}
