//! The object that Python steps.

use super::step::Step;
use fragile::Sticky;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simfs_programs::caught;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as PollContext, Poll, Waker};

/// The program of one task.
#[pyclass(frozen, module = "simfs._engine")]
pub struct Program(pub(super) Sticky<RefCell<State>>);

pub(super) enum State {
    /// `machine.spawn` has not returned the task's number yet.
    Spawning,
    Ready(Running),
    /// It runs now.
    Stepping,
    Ended,
}

pub(super) struct Running {
    pub(super) future: Pin<Box<dyn Future<Output = ()>>>,
    pub(super) asked: Rc<Cell<Option<Step>>>,
    pub(super) answered: Rc<Cell<bool>>,
}

#[pymethods]
impl Program {
    /// Lets the program go on until it asks for something that takes simulated time. Returns that, or None at its end.
    /// `taken` says whether a `try_lock_spinning` was successful.
    #[pyo3(signature = (taken=false))]
    fn step<'py>(&self, py: Python<'py>, taken: bool) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut running = self.take()?;
        let Some(program) = &mut running else { return Ok(None) };
        program.answered.set(taken);
        let mut context = PollContext::from_waker(Waker::noop());
        let polled = caught(|| program.future.as_mut().poll(&mut context));
        let asked = program.asked.take();
        if let (Ok(Poll::Pending), Some(program)) = (&polled, running) {
            self.put(State::Ready(program))?;
            let asked = asked.ok_or_else(|| PyRuntimeError::new_err("a program waits and has asked for nothing"))?;
            return asked.into_tuple(py).map(Some);
        }
        self.put(State::Ended)?;
        polled.map(|_| None)
    }

    /// Ends the program where it stands.
    fn close(&self) -> PyResult<()> {
        self.put(State::Ended)
    }
}

impl Program {
    fn take(&self) -> PyResult<Option<Running>> {
        let state = self.0.try_with(|state| std::mem::replace(&mut *state.borrow_mut(), State::Stepping));
        match state.map_err(|_| elsewhere())? {
            State::Ready(running) => Ok(Some(running)),
            State::Ended => {
                self.put(State::Ended)?;
                Ok(None)
            }
            State::Spawning => {
                self.put(State::Spawning)?;
                Err(PyRuntimeError::new_err("a program is stepped before spawn has returned its task's number"))
            }
            State::Stepping => Err(PyRuntimeError::new_err("a program is stepped while it runs")),
        }
    }

    fn put(&self, state: State) -> PyResult<()> {
        // What was there is dropped outside the borrow: it may be a program with objects of its own.
        let before = self.0.try_with(|present| present.replace(state));
        before.map(drop).map_err(|_| elsewhere())
    }
}

fn elsewhere() -> PyErr {
    PyRuntimeError::new_err("a program can be used only in the thread that populated its machine")
}
