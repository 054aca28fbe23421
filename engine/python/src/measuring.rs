//! What the machine itself charges, for `simfs measure`.

use super::detached;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simfs_measure::{probe, Request};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// Runs one probe on this machine and returns its samples by what they are of; `ValueError` for what cannot be done here.
#[pyfunction]
#[pyo3(signature = (what, cpus, *, amount=0, seconds=0.2, at=None))]
pub fn measure(
    py: Python<'_>,
    what: String,
    cpus: Vec<usize>,
    amount: u64,
    seconds: f64,
    at: Option<PathBuf>,
) -> PyResult<HashMap<&'static str, Vec<f64>>> {
    let time = Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let request = Request { what, cpus, amount, time, at };
    Ok(detached(py, || probe(&request))?.into_iter().collect())
}
