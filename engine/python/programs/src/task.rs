//! What a program written in Python is given: its task, which makes steps.

use super::making::Machine;
use super::steps::{access, account, at, end, mode, placement, positive, several, side};
use super::steps::{Action, Completion, Device, Draw, Lies, Lock, Span, Step, Word};
use super::words::Operation;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simfs_engine::waist::time::{from_ns, to_ns};
use simfs_engine::waist::SpawnKind;
use simfs_engine::waist::{CpuId, TaskId, Then};
use simfs_engine::workloads::draw;

/// The most memory that a program uses at once.
const MOST_BYTES: u64 = 1 << 40;

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

/// So many bytes, if a program may use them at once.
fn at_once(bytes: u64) -> PyResult<u64> {
    if bytes <= MOST_BYTES {
        Ok(bytes)
    } else {
        Err(PyValueError::new_err(format!("a program uses at most {MOST_BYTES} bytes at once, not {bytes}")))
    }
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
    fn touch(line: Lies, access: &str) -> PyResult<Step> {
        let access = self::access(access)?;
        Ok(Step(match line {
            Lies::Apart(line) => Action::Touch(line.get().0, access),
            Lies::Beside(lock) => Action::TouchBeside(lock.get().id, access),
        }))
    }

    #[staticmethod]
    fn load(word: &Word) -> Step {
        Step(Action::Word(word.number, Operation::Load))
    }

    #[staticmethod]
    fn store(word: &Word, value: i64) -> Step {
        Step(Action::Word(word.number, Operation::Store(value)))
    }

    #[staticmethod]
    fn exchange(word: &Word, value: i64) -> Step {
        Step(Action::Word(word.number, Operation::Exchange(value)))
    }

    #[staticmethod]
    fn compare_exchange(word: &Word, expected: i64, value: i64) -> Step {
        Step(Action::Word(word.number, Operation::CompareExchange(expected, value)))
    }

    #[staticmethod]
    fn fetch_add(word: &Word, value: i64) -> Step {
        Step(Action::Word(word.number, Operation::FetchAdd(value)))
    }

    #[staticmethod]
    fn futex_wait(word: &Word, expected: i64) -> Step {
        Step(Action::Word(word.number, Operation::FutexWait(expected)))
    }

    #[staticmethod]
    #[pyo3(signature = (word, count=1))]
    fn futex_wake(word: &Word, count: u32) -> Step {
        Step(Action::Word(word.number, Operation::FutexWake(count)))
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
    fn wait_for_io(completion: &Completion) -> Step {
        Step(Action::WaitForIo(completion.0))
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
        at_once(bytes).map(|bytes| Step(Action::UseMemory(bytes)))
    }

    #[staticmethod]
    fn use_code(bytes: u64) -> PyResult<Step> {
        at_once(bytes).map(|bytes| Step(Action::UseCode(bytes)))
    }

    #[pyo3(signature = (program, *arguments, pinned=None, background=false))]
    fn spawn(
        self_: PyRef<'_, Self>,
        program: Py<PyAny>,
        arguments: Py<PyTuple>,
        pinned: Option<CpuId>,
        background: bool,
    ) -> PyResult<Step> {
        let spawn_kind = if background { SpawnKind::Background } else { SpawnKind::Foreground };
        let placement = placement(pinned, self_.as_super().with(|m, _| m.cpus())?)?;
        Ok(Step(Action::Spawn { program, arguments, placement, spawn_kind }))
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
