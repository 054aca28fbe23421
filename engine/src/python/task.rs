//! What a program written in Python is given: the machine to make things on, and its task, which makes steps.

use super::steps::{access, account, at, end, mode, placement, positive, several, side};
use super::steps::{Action, Completion, Device, Draw, Line, Lock, Span, Step};
use super::values::Stream;
use crate::machine::time::{from_ns, to_ns};
use crate::machine::{CpuId, DeviceId, Hardware, LineId, LockId, TaskId, Then, Time};
use crate::waist;
use crate::waist::Life;
use crate::workloads::draw;
use fragile::Sticky;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The most memory that a program uses at once.
const MOST_BYTES: u64 = 1 << 40;

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
}

impl Run {
    /// There is a task of this number.
    pub fn know(&self, task: TaskId) {
        self.last_task.set(self.last_task.get().max(task));
    }
}

/// The part of a waist that takes no simulated time and changes nothing a program did, of any machine.
trait Making {
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
        self.new_line(span)
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

    fn with<T>(&self, work: impl FnOnce(&dyn Making, &Run) -> T) -> PyResult<T> {
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

/// The task of a program.
#[pyclass(frozen, extends = Machine, module = "simfs._engine")]
pub struct Task {
    /// Its place among the tasks of the workload; a child has its parent's.
    #[pyo3(get)]
    pub number: u32,
    /// What `setup` returned.
    #[pyo3(get)]
    pub shared: Py<PyAny>,
}

#[pymethods]
impl Task {
    #[getter]
    fn id(self_: PyRef<'_, Self>) -> PyResult<TaskId> {
        self_.as_super().with(|m, _| m.task())
    }

    #[getter]
    fn cpu(self_: PyRef<'_, Self>) -> PyResult<CpuId> {
        self_.as_super().with(|m, _| m.cpu())
    }

    #[getter]
    fn now(self_: PyRef<'_, Self>) -> PyResult<f64> {
        self_.as_super().with(|m, _| to_ns(m.now()))
    }

    // ---- distributions ----

    #[staticmethod]
    fn exponential(mean: f64) -> PyResult<Draw> {
        Ok(Draw(draw::Draw::Exponential(from_ns(positive("mean", mean)?))))
    }

    #[staticmethod]
    fn lognormal(mean: f64, cv: f64) -> PyResult<Draw> {
        Ok(Draw(draw::Draw::LogNormal { mean: from_ns(positive("mean", mean)?), cv: positive("cv", cv)? }))
    }

    #[staticmethod]
    fn gamma(mean: f64, cv: f64) -> PyResult<Draw> {
        Ok(Draw(draw::Draw::Gamma { mean: from_ns(positive("mean", mean)?), cv: positive("cv", cv)? }))
    }

    #[staticmethod]
    #[pyo3(signature = (values, weights=None))]
    fn empirical(values: Vec<f64>, weights: Option<Vec<f64>>) -> PyResult<Draw> {
        for &value in values.iter().chain(weights.iter().flatten()) {
            positive("values and weights", value)?;
        }
        draw::Draw::empirical(&values, weights.as_deref()).map(Draw).map_err(PyValueError::new_err)
    }

    // ---- steps ----

    #[staticmethod]
    #[pyo3(signature = (time, account="user"))]
    fn run(time: Span<'_>, account: &str) -> PyResult<Step> {
        Ok(Step(Action::Run(self::account(account)?, time.draw()?)))
    }

    #[staticmethod]
    fn sleep(time: Span<'_>) -> PyResult<Step> {
        Ok(Step(Action::Sleep(time.draw()?)))
    }

    #[staticmethod]
    #[pyo3(signature = (line, access="write"))]
    fn touch(line: &Line, access: &str) -> PyResult<Step> {
        Ok(Step(Action::Touch(line.0, self::access(access)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (lock, side="write"))]
    fn lock(lock: &Lock, side: &str) -> PyResult<Step> {
        Ok(Step(Action::Lock(lock.id, self::side(side)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (lock, side="write"))]
    fn try_lock(lock: &Lock, side: &str) -> PyResult<Step> {
        Ok(Step(Action::TryLock(lock.id, self::side(side)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (lock, side="write"))]
    fn try_lock_spinning(lock: &Lock, side: &str) -> PyResult<Step> {
        Ok(Step(Action::TryLockSpinning(lock.id, self::side(side)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (lock, side="write"))]
    fn unlock(lock: &Lock, side: &str) -> PyResult<Step> {
        Ok(Step(Action::Unlock(lock.id, self::side(side)?)))
    }

    #[staticmethod]
    #[pyo3(signature = (lock, mode, side="write"))]
    fn convert(lock: &Lock, mode: &str, side: &str) -> PyResult<Step> {
        Ok(Step(Action::Convert(lock.id, self::side(side)?, self::mode(mode)?)))
    }

    #[staticmethod]
    fn wait_for(completion: &Completion) -> Step {
        Step(Action::WaitFor(completion.0))
    }

    #[staticmethod]
    fn complete(completion: &Completion) -> Step {
        Step(Action::Complete(completion.0))
    }

    #[staticmethod]
    #[pyo3(signature = (device, time, *, complete=None, release=None))]
    fn submit(
        device: &Device,
        time: Span<'_>,
        complete: Option<&Completion>,
        release: Option<&Lock>,
    ) -> PyResult<Step> {
        let then = match (complete, release) {
            (Some(completion), None) => Then::Complete(completion.0),
            (None, Some(lock)) if lock.semaphore => Then::Release(lock.id),
            (None, Some(_)) => {
                return Err(PyValueError::new_err("release: only a semaphore can be released by a device"))
            }
            _ => return Err(PyTypeError::new_err("submit: give either complete= or release=")),
        };
        Ok(Step(Action::Submit(device.0, time.draw()?, then)))
    }

    #[staticmethod]
    fn park() -> Step {
        Step(Action::Park)
    }

    #[staticmethod]
    fn wake(task: TaskId) -> Step {
        Step(Action::Wake(task))
    }

    #[staticmethod]
    #[pyo3(signature = (task, ticks=0))]
    fn wake_at_tick(task: TaskId, ticks: u64) -> Step {
        Step(Action::WakeAtTick(task, ticks))
    }

    #[staticmethod]
    fn set_nice(nice: i32) -> PyResult<Step> {
        if (-20..=19).contains(&nice) {
            Ok(Step(Action::SetNice(nice)))
        } else {
            Err(PyValueError::new_err(format!("nice levels are -20 to 19, not {nice}")))
        }
    }

    #[staticmethod]
    fn use_memory(bytes: u64) -> PyResult<Step> {
        if bytes <= MOST_BYTES {
            Ok(Step(Action::UseMemory(bytes)))
        } else {
            Err(PyValueError::new_err(format!("a program uses at most {MOST_BYTES} bytes at once, not {bytes}")))
        }
    }

    #[pyo3(signature = (program, *arguments, pinned=None, background=false))]
    fn spawn(
        self_: PyRef<'_, Self>,
        program: Py<PyAny>,
        arguments: Py<PyTuple>,
        pinned: Option<CpuId>,
        background: bool,
    ) -> PyResult<Step> {
        let life = if background { Life::Background } else { Life::Foreground };
        let placement = placement(pinned, self_.as_super().with(|m, _| m.cpus())?)?;
        Ok(Step(Action::Spawn { program, arguments, placement, life }))
    }

    #[staticmethod]
    #[pyo3(name = "at")]
    fn at_site(site: &str) -> Step {
        at(site)
    }

    #[staticmethod]
    fn begin() -> Step {
        Step(Action::Begin)
    }

    #[staticmethod]
    #[pyo3(name = "end", signature = (name, counted=true))]
    fn end_of(name: &str, counted: bool) -> Step {
        end(name, counted)
    }

    #[staticmethod]
    #[pyo3(name = "steps", signature = (*steps))]
    fn steps_of(steps: &Bound<'_, PyTuple>) -> PyResult<Step> {
        several(steps)
    }

    #[staticmethod]
    fn give_up(reason: String) -> Step {
        Step(Action::GiveUp(reason))
    }
}
