//! Errors on their way through Rust code that knows nothing of Python: an exception in a callback unwinds the program
//! that made the call, and comes out as the same exception where Python called in.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Ends the program that is being polled with a Python exception. Only under [`caught`].
pub fn raise(error: PyErr) -> ! {
    resume_unwind(Box::new(error)) // unlike a panic, this prints nothing
}

/// Does `work`. An exception raised within comes back as it is; a defect of the engine is a `RuntimeError`.
pub fn caught<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|cause| match cause.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(panic) => {
            let what = panic.downcast_ref::<String>().map(String::as_str);
            let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            PyRuntimeError::new_err(format!("a defect in the engine: {what}"))
        }
    })
}
