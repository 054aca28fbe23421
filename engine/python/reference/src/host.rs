//! A machine written in Python, before it runs, and how tasks come onto it.

use super::program::{Program, Running, State};
use super::step::{spawn_kind_word, Step};
use super::Foreign;
use fragile::Sticky;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use simfs_engine::population;
use simfs_engine::spec::RunSpec;
use simfs_engine::waist::{Host, Placement, SpawnKind, TaskId};
use simfs_programs::{caught, raise};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// Puts the filesystem and the tasks of a spec (JSON text) on a machine written in Python; `program` and `setup` are those
/// of a python workload.
#[pyfunction]
#[pyo3(signature = (spec, machine, program=None, setup=None))]
pub fn populate(
    spec: &str,
    machine: &Bound<'_, PyAny>,
    program: Option<&Bound<'_, PyAny>>,
    setup: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let spec = RunSpec::from_json(spec).map_err(PyValueError::new_err)?;
    let mut host = ForeignHost(Rc::new(Shared::new(machine, &spec)?));
    let populated = caught(|| match program {
        None => population::populate(&mut host, &spec),
        Some(program) => simfs_programs::populate(&mut host, &spec, program, setup),
    })?;
    populated.map_err(PyValueError::new_err)
}

/// The Python machine, and what its random streams are made from.
pub(super) struct Shared {
    /// Weak, because the machine holds the programs and they hold this: Python's collector sees no cycle through Rust.
    machine: Py<PyWeakrefReference>,
    pub(super) seed: u64,
    pub(super) replication: u64,
}

impl Shared {
    fn new(machine: &Bound<'_, PyAny>, spec: &RunSpec) -> PyResult<Self> {
        let machine = PyWeakrefReference::new(machine)?.unbind();
        Ok(Self { machine, seed: spec.seed, replication: spec.replication })
    }

    pub(super) fn machine<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let gone = || PyRuntimeError::new_err("the machine of this program no longer exists");
        self.machine.bind(py).upgrade().ok_or_else(gone)
    }

    pub(super) fn spawn<P, F>(
        self: &Rc<Self>,
        parent: Option<TaskId>,
        placement: Placement,
        spawn_kind: SpawnKind,
        program: P,
    ) -> TaskId
    where
        P: FnOnce(Foreign) -> F,
        F: Future<Output = ()> + 'static,
    {
        let pinned = match placement {
            Placement::Pinned(cpu) => Some(cpu),
            Placement::Anywhere => None,
        };
        let spawned = Python::attach(|py| {
            let held = Py::new(py, Program(Sticky::new(RefCell::new(State::Spawning))))?;
            let arguments = (parent, pinned, spawn_kind_word(spawn_kind), held.clone_ref(py));
            let task: TaskId = self.machine(py)?.call_method1("spawn", arguments)?.extract()?;
            let (asked, answered) = (Rc::<Cell<Option<Step>>>::default(), Rc::<Cell<bool>>::default());
            let handle = Foreign { shared: self.clone(), task, asked: asked.clone(), answered: answered.clone() };
            let future = Box::pin(program(handle));
            held.get().0.with(|state| *state.borrow_mut() = State::Ready(Running { future, asked, answered }));
            Ok(task)
        });
        spawned.unwrap_or_else(|error| raise(error))
    }
}

/// A machine written in Python, before it runs.
struct ForeignHost(Rc<Shared>);

impl Host for ForeignHost {
    type Handle = Foreign;

    fn setup<T>(&self, build: impl FnOnce(&Foreign) -> T) -> T {
        build(&Foreign { shared: self.0.clone(), task: TaskId::MAX, asked: Rc::default(), answered: Rc::default() })
    }

    fn spawn<P, F>(&mut self, placement: Placement, spawn_kind: SpawnKind, program: P) -> TaskId
    where
        P: FnOnce(Foreign) -> F,
        F: Future<Output = ()> + 'static,
    {
        self.0.spawn(None, placement, spawn_kind, program)
    }
}
