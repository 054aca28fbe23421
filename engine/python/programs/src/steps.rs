//! Steps: what a program written in Python yields. A step is made once and yielded any number of times; each yield
//! takes it anew, with a new draw where its time is drawn.

use super::failure::lasting;
use super::words;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use simfs_engine::waist::time::{from_ns, to_ns};
use simfs_engine::waist::{Access, Account, CpuId, DeviceId, LineId, LockId, Mode, Side, TaskId, Then};
use simfs_engine::waist::{Placement, SpawnKind};
use simfs_engine::workloads::draw;

/// A lock of this run.
#[pyclass(frozen, module = "simfs._engine")]
pub struct Lock {
    pub id: LockId,
    /// It has no owner: a device may release it.
    pub semaphore: bool,
}

/// A cache line, or neighbouring ones, of this run.
#[pyclass(frozen, module = "simfs._engine")]
pub struct Line(pub LineId);

/// Where lies what a task accesses: on a line of its own, or on that of a lock's word.
#[derive(FromPyObject)]
pub enum Lies {
    Apart(Py<Line>),
    Beside(Py<Lock>),
}

/// A completion of this run.
#[pyclass(frozen, module = "simfs._engine")]
pub struct Completion(pub LockId);

/// A device of this run.
#[pyclass(frozen, module = "simfs._engine")]
pub struct Device(pub DeviceId);

/// A word that programs share, and the line that it is on.
#[pyclass(frozen, module = "simfs._engine")]
pub struct Word {
    pub number: usize,
    pub line: LineId,
}

/// A distribution of times; the engine draws from it.
#[pyclass(frozen, skip_from_py_object, module = "simfs._engine")]
#[derive(Clone)]
pub struct Draw(pub draw::Draw);

#[pymethods]
impl Draw {
    fn __repr__(&self) -> String {
        match self.0 {
            draw::Draw::Empirical(ref steps) => format!("empirical({} values)", steps.len()),
            draw::Draw::Constant(time) => format!("{} ns", to_ns(time)),
            draw::Draw::Exponential(mean) => format!("exponential({})", to_ns(mean)),
            draw::Draw::Gamma { mean, cv } => format!("gamma({}, {cv})", to_ns(mean)),
            draw::Draw::LogNormal { mean, cv } => format!("lognormal({}, {cv})", to_ns(mean)),
        }
    }
}

/// A time as programs give it: a number of nanoseconds, or a distribution.
#[derive(FromPyObject)]
pub enum Span<'py> {
    Drawn(PyRef<'py, Draw>),
    #[pyo3(annotation = "float")]
    Ns(f64),
}

impl Span<'_> {
    pub fn draw(&self) -> PyResult<draw::Draw> {
        match self {
            Self::Drawn(draw) => Ok(draw.0.clone()),
            Self::Ns(ns) => positive("time", *ns).map(|ns| draw::Draw::Constant(from_ns(ns))),
        }
    }
}

/// A finite number that is not negative.
pub fn positive(what: &str, number: f64) -> PyResult<f64> {
    if (0.0..1e15).contains(&number) {
        Ok(number)
    } else {
        Err(PyValueError::new_err(format!("{what}: must be between 0 and 1e15, not {number}")))
    }
}

/// What a step does.
pub enum Action {
    Run(Account, draw::Draw),
    Sleep(draw::Draw),
    Touch(LineId, Access),
    TouchBeside(LockId, Access),
    Word(usize, words::Operation),
    Lock(LockId, Side),
    TryLock(LockId, Side),
    TryLockSpinning(LockId, Side),
    Unlock(LockId, Side),
    Convert(LockId, Side, Mode),
    WaitFor(LockId),
    WaitForIo(LockId),
    Complete(LockId),
    Submit(DeviceId, draw::Draw, Then),
    Park,
    Wake(TaskId),
    WakeAtTick(TaskId, u64),
    /// [`Machine::set_nice`].
    SetNice(i32),
    /// [`Machine::use_memory`].
    UseMemory(u64),
    /// [`Machine::use_code`].
    UseCode(u64),
    Spawn {
        program: Py<PyAny>,
        arguments: Py<PyTuple>,
        placement: Placement,
        spawn_kind: SpawnKind,
    },
    At(&'static str),
    Begin,
    End(&'static str, bool),
    GiveUp(String),
    /// One after the other; none of them is of this kind.
    Several(Vec<Py<Step>>),
}

/// One thing a program does when it yields it.
#[pyclass(frozen, module = "simfs._engine")]
pub struct Step(pub Action);

#[pymethods]
impl Step {
    fn __repr__(&self) -> String {
        match &self.0 {
            Action::Run(account, time) => format!("run({}, {account:?})", Draw(time.clone()).__repr__()),
            Action::Sleep(time) => format!("sleep({})", Draw(time.clone()).__repr__()),
            Action::Touch(line, access) => format!("touch(line {line}, {access:?})"),
            Action::TouchBeside(lock, access) => format!("touch(lock {lock}, {access:?})"),
            Action::Word(word, operation) => format!("{operation:?} of word {word}"),
            Action::Lock(lock, side) => format!("lock({lock}, {side:?})"),
            Action::TryLock(lock, side) => format!("try_lock({lock}, {side:?})"),
            Action::TryLockSpinning(lock, side) => format!("try_lock_spinning({lock}, {side:?})"),
            Action::Unlock(lock, side) => format!("unlock({lock}, {side:?})"),
            Action::Convert(lock, side, mode) => format!("convert({lock}, {side:?}, {mode:?})"),
            Action::WaitFor(completion) => format!("wait_for({completion})"),
            Action::WaitForIo(completion) => format!("wait_for_io({completion})"),
            Action::Complete(completion) => format!("complete({completion})"),
            Action::Submit(device, time, then) => {
                format!("submit({device}, {}, {then:?})", Draw(time.clone()).__repr__())
            }
            Action::Park => "park()".into(),
            Action::Wake(task) => format!("wake({task})"),
            Action::WakeAtTick(task, ticks) => format!("wake_at_tick({task}, {ticks})"),
            Action::SetNice(nice) => format!("set_nice({nice})"),
            Action::UseMemory(bytes) => format!("use_memory({bytes})"),
            Action::UseCode(bytes) => format!("use_code({bytes})"),
            Action::Spawn { program, .. } => format!("spawn({program})"),
            Action::At(site) => format!("at({site:?})"),
            Action::Begin => "begin()".into(),
            Action::End(name, counted) => format!("end({name:?}, counted={counted})"),
            Action::GiveUp(reason) => format!("give_up({reason:?})"),
            Action::Several(steps) => {
                let each: Vec<_> = steps.iter().map(|step| step.get().__repr__()).collect();
                format!("steps({})", each.join(", "))
            }
        }
    }
}

/// `read` or `write`.
pub fn side(word: &str) -> PyResult<Side> {
    match word {
        "read" => Ok(Side::Read),
        "write" => Ok(Side::Write),
        _ => Err(PyValueError::new_err(format!("side: must be 'read' or 'write', not '{word}'"))),
    }
}

/// `read`, `store` or `write`.
pub fn access(word: &str) -> PyResult<Access> {
    match word {
        "read" => Ok(Access::Read),
        "store" => Ok(Access::Store),
        "write" => Ok(Access::Write),
        _ => Err(PyValueError::new_err(format!("access: must be 'read', 'store' or 'write', not '{word}'"))),
    }
}

/// `spinning` or `blocking`.
pub fn mode(word: &str) -> PyResult<Mode> {
    match word {
        "spinning" => Ok(Mode::Spinning),
        "blocking" => Ok(Mode::Blocking),
        _ => Err(PyValueError::new_err(format!("mode: must be 'spinning' or 'blocking', not '{word}'"))),
    }
}

/// `user` or `system`: the accounts that programs use.
pub fn account(word: &str) -> PyResult<Account> {
    match word {
        "user" => Ok(Account::User),
        "system" => Ok(Account::System),
        _ => Err(PyValueError::new_err(format!("account: must be 'user' or 'system', not '{word}'"))),
    }
}

/// Several steps as one.
pub fn several(steps: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let step = step.cast_into::<Step>()?.unbind();
        match &step.get().0 {
            Action::Several(inner) => all.extend(inner.iter().map(|step| step.clone_ref(steps.py()))),
            _ => all.push(step),
        }
    }
    Ok(Step(Action::Several(all)))
}

/// Where a task may run on a machine with so many CPUs.
pub fn placement(pinned: Option<CpuId>, cpus: CpuId) -> PyResult<Placement> {
    match pinned {
        None => Ok(Placement::Anywhere),
        Some(cpu) if cpu < cpus => Ok(Placement::Pinned(cpu)),
        Some(cpu) => Err(PyValueError::new_err(format!("pinned: there is no CPU {cpu}; the machine has {cpus}"))),
    }
}

/// Ends an operation called `name`.
pub fn end(name: &str, counted: bool) -> Step {
    Step(Action::End(lasting(name), counted))
}

/// Names what the task does.
pub fn at(site: &str) -> Step {
    Step(Action::At(lasting(site)))
}
