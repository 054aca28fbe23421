//! What a program written in Python makes things on: locks, lines, words, completions and devices.

use super::steps::{Completion, Device, Line, Lock, Word};
use super::values::Stream;
use super::words::Words;
use fragile::Sticky;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rand_xoshiro::Xoshiro256PlusPlus;
use simfs_engine::waist;
use simfs_engine::waist::time::from_ns;
use simfs_engine::waist::{CpuId, DeviceId, Hardware, LineId, LockId, TaskId, Time};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What all tasks of a run have in common.
pub struct Run {
    /// Number of tasks of the workload.
    pub tasks: u32,
    /// The workload's parameters.
    pub params: Py<PyDict>,
    /// Lock kind by role.
    pub locks: BTreeMap<String, String>,
    /// The highest number of a task so far.
    pub last_task: Cell<TaskId>,
    /// The words that programs have made.
    pub words: Words,
}

impl Run {
    /// There is a task of this number.
    pub fn know(&self, task: TaskId) {
        self.last_task.set(self.last_task.get().max(task));
    }
}

/// The part of a waist that takes no simulated time and changes nothing a program did, of any machine.
pub trait Making {
    fn task(&self) -> TaskId;
    fn cpu(&self) -> CpuId;
    fn cpus(&self) -> CpuId;
    fn now(&self) -> Time;
    fn new_lock(&self, name: &str, role: &str) -> LockId;
    fn drop_lock(&self, lock: LockId);
    fn new_line(&self, span: u32) -> LineId;
    fn new_completion(&self) -> LockId;
    fn drop_completion(&self, completion: LockId);
    fn new_device(&self, parallelism: u32, interrupt: Time) -> DeviceId;
    fn stream(&self, name: &str) -> Xoshiro256PlusPlus;
}

impl<M: waist::Machine> Making for M {
    fn task(&self) -> TaskId {
        self.task()
    }

    fn cpu(&self) -> CpuId {
        self.cpu()
    }

    fn cpus(&self) -> CpuId {
        self.cpus()
    }

    fn now(&self) -> Time {
        self.now()
    }

    fn new_lock(&self, name: &str, role: &str) -> LockId {
        self.new_lock(self.class(name, role))
    }

    fn drop_lock(&self, lock: LockId) {
        self.drop_lock(lock);
    }

    fn new_line(&self, span: u32) -> LineId {
        self.new_line("data", span)
    }

    fn new_completion(&self) -> LockId {
        self.new_completion()
    }

    fn drop_completion(&self, completion: LockId) {
        self.drop_completion(completion);
    }

    fn new_device(&self, parallelism: u32, interrupt: Time) -> DeviceId {
        self.new_device(Hardware::serving(parallelism, interrupt))
    }

    fn stream(&self, name: &str) -> Xoshiro256PlusPlus {
        self.stream(name)
    }
}

/// The machine of a run: the place to make locks, lines, completions and devices.
#[pyclass(frozen, subclass, module = "simfs._engine")]
pub struct Machine(Sticky<(Box<dyn Making>, Rc<Run>)>);

impl Machine {
    pub fn new<M: waist::Machine>(m: &M, run: &Rc<Run>) -> Self {
        Self(Sticky::new((Box::new(m.clone()), run.clone())))
    }

    pub fn with<T>(&self, work: impl FnOnce(&dyn Making, &Run) -> T) -> PyResult<T> {
        let done = self.0.try_with(|(m, run)| work(m.as_ref(), run));
        done.map_err(|_| PyRuntimeError::new_err("a machine can be used only in the thread that runs it"))
    }
}

#[pymethods]
impl Machine {
    #[getter]
    fn cpus(&self) -> PyResult<CpuId> {
        self.with(|m, _| m.cpus())
    }

    #[getter]
    fn tasks(&self) -> PyResult<u32> {
        self.with(|_, run| run.tasks)
    }

    #[getter]
    fn params(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        self.with(|_, run| run.params.clone_ref(py))
    }

    #[pyo3(signature = (name, role=None))]
    fn new_lock(&self, name: &str, role: Option<&str>) -> PyResult<Lock> {
        let role = role.unwrap_or(name);
        self.with(|m, run| {
            let Some(kind) = run.locks.get(role) else {
                let known = run.locks.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(PyValueError::new_err(format!(
                    "no lock kind is given for the role '{role}'; roles are {known}"
                )));
            };
            Ok(Lock { id: m.new_lock(name, role), semaphore: kind == "semaphore" })
        })?
    }

    fn drop_lock(&self, lock: &Lock) -> PyResult<()> {
        self.with(|m, _| m.drop_lock(lock.id))
    }

    #[pyo3(signature = (span=1))]
    fn new_line(&self, span: u32) -> PyResult<Line> {
        self.with(|m, _| Line(m.new_line(span.max(1))))
    }

    #[pyo3(signature = (value=0, *, beside=None))]
    fn new_word(&self, value: i64, beside: Option<&Word>) -> PyResult<Word> {
        let bucket = self.new_lock("futex_hash_bucket", Some("futex.bucket"))?.id;
        self.with(|m, run| run.words.add(value, beside.map_or_else(|| m.new_line(1), |word| word.line), bucket))
    }

    fn new_completion(&self) -> PyResult<Completion> {
        self.with(|m, _| Completion(m.new_completion()))
    }

    fn drop_completion(&self, completion: &Completion) -> PyResult<()> {
        self.with(|m, _| m.drop_completion(completion.0))
    }

    #[pyo3(signature = (parallelism=1, interrupt=0.0))]
    fn new_device(&self, parallelism: u32, interrupt: f64) -> PyResult<Device> {
        if !(0.0..1e15).contains(&interrupt) {
            return Err(PyValueError::new_err("interrupt: must be between 0 and 1e15 ns"));
        }
        self.with(|m, _| Device(m.new_device(parallelism.max(1), from_ns(interrupt))))
    }

    fn stream(&self, name: &str) -> PyResult<Stream> {
        self.with(|m, _| Stream(m.stream(name)))
    }
}
