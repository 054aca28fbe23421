//! Errors on their way through Rust code that knows nothing of Python: an exception in a callback unwinds the program
//! that made the call, and comes out as the same exception where Python called in.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{catch_unwind, resume_unwind, set_hook, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// Where this thread panicked last.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From now on a panic prints nothing: [`caught`] tells what happened, and where.
pub fn keep_panics_quiet() {
    set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        PLACE.with_borrow_mut(|last| *last = place);
    }));
}

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
            let place = PLACE.take();
            PyRuntimeError::new_err(format!("a defect in the engine ({place}): {what}"))
        }
    })
}

/// A name as the statistics keep it: for ever. Programs use few names, and every run the same.
pub fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}
