//! Programs written in Python, on any machine.
//!
//! `programs` lets generators run as programs; `task` is what they are given and `steps` what they yield, `making` what their
//! setup is given. `values` are the random streams and histograms that a machine in Python shares with the native one. `failure`
//! carries errors across.

mod failure;
mod making;
mod programs;
mod steps;
mod task;
mod values;
mod words;

pub use failure::{caught, raise};
pub use programs::populate;
use pyo3::prelude::*;

/// Adds to a module of Python what programs are written with.
///
/// # Errors
///
/// What Python raises.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    failure::keep_panics_quiet();
    module.add_class::<making::Machine>()?;
    module.add_class::<task::Task>()?;
    module.add_class::<steps::Step>()?;
    module.add_class::<steps::Draw>()?;
    module.add_class::<steps::Lock>()?;
    module.add_class::<steps::Line>()?;
    module.add_class::<steps::Word>()?;
    module.add_class::<steps::Completion>()?;
    module.add_class::<steps::Device>()?;
    module.add("ProgramError", module.py().get_type::<programs::ProgramError>())?;
    module.add_class::<values::Stream>()?;
    module.add_class::<values::Histogram>()
}
