//! Programs written in Python: generators that yield steps, on any machine.

use super::failure::raise;
use super::making::{Machine, Run};
use super::steps::{Action, Step};
use super::task::Task;
use super::words::Words;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyIterator, PyTuple};
use rand_xoshiro::Xoshiro256PlusPlus;
use simfs_engine::spec::{RunSpec, WorkloadKind};
use simfs_engine::waist::{self, Account, Host, Io, SpawnKind, TaskId};
use simfs_engine::workloads::binding::placements;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

create_exception!(simfs._engine, ProgramError, PyValueError, "An error in a program written in Python.");

/// Puts the tasks of a spec on a machine: each runs the generator `program(task)`; all share what `setup(machine)` returns.
pub fn populate<H: Host>(
    host: &mut H,
    spec: &RunSpec,
    program: &Bound<'_, PyAny>,
    setup: Option<&Bound<'_, PyAny>>,
) -> Result<(), String> {
    if spec.workload.kind != WorkloadKind::Python {
        return Err("workload.kind: only a python workload takes a program".into());
    }
    let py = program.py();
    prepare(host, spec, program, setup)
        .map(|(run, shared)| {
            for (number, placement) in (0..spec.workload.tasks).zip(placements(&spec.machine, spec.loads()[0])) {
                let (its_run, arguments) = (run.clone(), PyTuple::empty(py).unbind());
                let part = Part { program: program.clone().unbind(), arguments, number, shared: shared.clone_ref(py) };
                run.know(
                    host.spawn(placement, SpawnKind::Foreground, |m| drive(m, its_run, part, format!("task {number}"))),
                );
            }
        })
        .unwrap_or_else(|error| raise(error));
    Ok(())
}

fn prepare<H: Host>(
    host: &H,
    spec: &RunSpec,
    program: &Bound<'_, PyAny>,
    setup: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Rc<Run>, Py<PyAny>)> {
    let py = program.py();
    let params = PyDict::new(py);
    for (name, value) in &spec.workload.params {
        params.set_item(name, value.as_f64())?;
    }
    let (tasks, locks) = (spec.workload.tasks, spec.kernel.locks.clone());
    let run = Rc::new(Run { tasks, params: params.unbind(), locks, last_task: Cell::new(0), words: Words::default() });
    let shared = match setup {
        None => py.None(),
        Some(setup) => {
            let machine = Py::new(py, host.setup(|m| Machine::new(m, &run)))?;
            setup.call1((machine,)).map_err(|error| explained(py, error, setup))?.unbind()
        }
    };
    Ok((run, shared))
}

/// What one task runs.
struct Part {
    program: Py<PyAny>,
    arguments: Py<PyTuple>,
    number: u32,
    shared: Py<PyAny>,
}

/// What is one task's own.
struct Own {
    random: Xoshiro256PlusPlus,
    /// What it ran as last: so it touches words.
    account: Account,
}

/// What the program of a task gets as the value of a yield.
enum Answer {
    Nothing,
    Truth(bool),
    Task(TaskId),
    Number(i64),
}

/// Lets a generator run as the task's program. `name` is its stream's name.
async fn drive<M: waist::Machine>(m: M, run: Rc<Run>, part: Part, name: String) {
    let mut own = Own { random: m.stream(&name), account: Account::User };
    let mut children = 0;
    let generator = begun(&m, &run, &part);
    let mut answer = Answer::Nothing;
    while let Some(step) = resumed(&generator, answer, &part) {
        answer = Answer::Nothing;
        let steps = match &step.get().0 {
            Action::Several(steps) => steps.as_slice(),
            _ => std::slice::from_ref(&step),
        };
        for step in steps {
            match &step.get().0 {
                Action::Wake(task) | Action::WakeAtTick(task, _) if *task > run.last_task.get() => {
                    raise(Python::attach(|py| mistake(generator.bind(py), &format!("there is no task {task}"))))
                }
                Action::Spawn { program, arguments, placement, spawn_kind } => {
                    let child = part.child(program, arguments);
                    let (its_run, its_name) = (run.clone(), format!("{name}.{children}"));
                    children += 1;
                    let id = m.spawn(*placement, *spawn_kind, |m| boxed(m, its_run, child, its_name));
                    run.know(id);
                    answer = Answer::Task(id);
                }
                Action::GiveUp(reason) => return m.give_up(reason),
                action => answer = performed(&m, &run, action, &mut own).await.unwrap_or(answer),
            }
        }
    }
}

/// Takes a step that asks the machine alone. What it answers, if anything.
async fn performed<M: waist::Machine>(m: &M, run: &Run, action: &Action, own: &mut Own) -> Option<Answer> {
    let random = &mut own.random;
    match action {
        Action::Run(account, time) => {
            own.account = *account;
            m.run(*account, time.draw(random)).await;
        }
        Action::Sleep(time) => m.sleep(time.draw(random)).await,
        Action::Touch(line, access) => m.touch(*line, *access),
        Action::TouchBeside(lock, access) => m.touch_beside(*lock, *access),
        Action::Word(word, operation) => {
            return Some(Answer::Number(run.words.perform(m, own.account, *word, *operation).await));
        }
        Action::Lock(lock, side) => m.lock(*lock, *side).await,
        Action::TryLock(lock, side) => return Some(Answer::Truth(m.try_lock(*lock, *side))),
        Action::TryLockSpinning(lock, side) => return Some(Answer::Truth(m.try_lock_spinning(*lock, *side).await)),
        Action::Unlock(lock, side) => m.unlock(*lock, *side).await,
        Action::Convert(lock, side, mode) => m.convert(*lock, *side, *mode).await,
        Action::WaitFor(completion) => m.wait_for(*completion).await,
        Action::WaitForIo(completion) => m.wait_for_io(*completion).await,
        Action::Complete(completion) => m.complete(*completion).await,
        Action::Submit(device, time, then) => m.submit(*device, Io::taking(time.draw(random)), *then),
        Action::Park => m.park().await,
        Action::Wake(task) => m.wake(*task),
        Action::WakeAtTick(task, ticks) => _ = m.wake_at_tick(*task, *ticks),
        Action::SetNice(nice) => m.set_nice(*nice),
        Action::UseMemory(bytes) => m.use_memory(*bytes),
        Action::UseCode(bytes) => m.use_code(*bytes),
        Action::At(site) => m.at(site),
        Action::Begin => m.begin(),
        Action::End(name, counted) => m.end(name, *counted),
        Action::Spawn { .. } | Action::GiveUp(_) => unreachable!("the program itself takes these"),
        Action::Several(_) => unreachable!("steps of steps are laid out when they are made"),
    }
    None
}

/// A child's program; boxed, because the type of a program that spawns programs would contain itself.
fn boxed<M: waist::Machine>(m: M, run: Rc<Run>, part: Part, name: String) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(drive(m, run, part, name))
}

impl Part {
    fn child(&self, program: &Py<PyAny>, arguments: &Py<PyTuple>) -> Self {
        Python::attach(|py| Self {
            program: program.clone_ref(py),
            arguments: arguments.clone_ref(py),
            number: self.number,
            shared: self.shared.clone_ref(py),
        })
    }
}

/// The generator of a task, before its first step.
fn begun<M: waist::Machine>(m: &M, run: &Rc<Run>, part: &Part) -> Py<PyIterator> {
    let begun = Python::attach(|py| {
        let task = Task { number: part.number, shared: part.shared.clone_ref(py) };
        let task = Py::new(py, PyClassInitializer::from(Machine::new(m, run)).add_subclass(task))?;
        let arguments = (task,).into_pyobject(py)?.add(part.arguments.bind(py))?.cast_into::<PyTuple>()?;
        let program = part.program.bind(py);
        let generator = program.call1(arguments).map_err(|error| explained(py, error, program))?;
        match generator.cast_into::<PyIterator>() {
            Ok(generator) if generator.hasattr("gi_frame")? => Ok(generator.unbind()),
            _ => Err(ProgramError::new_err(format!("{}: is not a generator function", name_of(program)))),
        }
    });
    begun.unwrap_or_else(|error| raise(error))
}

/// Lets a program go on to its next step; None at its end.
fn resumed(generator: &Py<PyIterator>, answer: Answer, part: &Part) -> Option<Py<Step>> {
    let step = Python::attach(|py| {
        let generator = generator.bind(py);
        let next = match answer {
            Answer::Nothing => generator.clone().next().transpose(),
            Answer::Truth(truth) => sent(generator, PyBool::new(py, truth).to_owned().into_any()),
            Answer::Number(number) => sent(generator, number.into_pyobject(py)?.into_any()),
            Answer::Task(task) => sent(generator, task.into_pyobject(py)?.into_any()),
        };
        match next {
            Ok(Some(step)) => match step.cast_into::<Step>() {
                Ok(step) => Ok(Some(step.unbind())),
                Err(other) => Err(not_a_step(generator, &other.into_inner())),
            },
            Ok(None) => Ok(None),
            Err(error) => Err(explained(py, error, part.program.bind(py))),
        }
    });
    step.unwrap_or_else(|error| raise(error))
}

/// Lets a generator go on with `value` as that of its yield.
fn sent<'py>(generator: &Bound<'py, PyIterator>, value: Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match generator.call_method1("send", (value,)) {
        Err(end) if end.is_instance_of::<PyStopIteration>(generator.py()) => Ok(None),
        next => next.map(Some),
    }
}

/// An exception in a user's code as one line: file, line, function, what. The exception is its cause.
fn explained(py: Python<'_>, error: PyErr, program: &Bound<'_, PyAny>) -> PyErr {
    if !error.is_instance_of::<PyException>(py) || error.is_instance_of::<ProgramError>(py) {
        return error; // an interrupt or an exit is nobody's mistake
    }
    let place = last_line(py, &error, program).unwrap_or_else(|_| name_of(program));
    let kind = error.get_type(py).to_string();
    let kind = error.get_type(py).name().map_or(kind, |name| name.to_string());
    let explained = ProgramError::new_err(format!("{place}: {kind}: {}", error.value(py)));
    explained.set_cause(py, Some(error));
    explained
}

/// `FILE:LINE: in FUNCTION` of the innermost line of an exception's traceback in the program's own file, or else of
/// the innermost one.
fn last_line(py: Python<'_>, error: &PyErr, program: &Bound<'_, PyAny>) -> PyResult<String> {
    let own = file_of(program).ok();
    let mut found = None;
    let mut entry = error.traceback(py).map(Bound::into_any);
    while let Some(at) = entry {
        let code = at.getattr("tb_frame")?.getattr("f_code")?;
        let file: String = code.getattr("co_filename")?.extract()?;
        if found.is_none() || own.as_ref() == Some(&file) || own.is_none() {
            let (line, function) = (at.getattr("tb_lineno")?, code.getattr("co_name")?);
            found = Some(format!("{file}:{line}: in {function}"));
        }
        entry = at.getattr("tb_next")?.extract()?;
    }
    found.ok_or_else(|| PyTypeError::new_err("no traceback"))
}

fn file_of(program: &Bound<'_, PyAny>) -> PyResult<String> {
    program.getattr("__code__")?.getattr("co_filename")?.extract()
}

fn name_of(program: &Bound<'_, PyAny>) -> String {
    let name = program.getattr("__qualname__").map_or_else(|_| program.to_string(), |name| name.to_string());
    file_of(program).map_or_else(|_| name.clone(), |file| format!("{file}: {name}"))
}

fn not_a_step(generator: &Bound<'_, PyIterator>, given: &Bound<'_, PyAny>) -> PyErr {
    let given = given.repr().map_or_else(|_| "something else".into(), |text| text.to_string());
    mistake(generator, &format!("yields {given}, which is not a step"))
}

/// What is wrong with the yield at which a generator stands.
fn mistake(generator: &Bound<'_, PyIterator>, what: &str) -> PyErr {
    let at = || -> PyResult<String> {
        let (frame, code) = (generator.getattr("gi_frame")?, generator.getattr("gi_code")?);
        Ok(format!("{}:{}: in {}", code.getattr("co_filename")?, frame.getattr("f_lineno")?, code.getattr("co_name")?))
    };
    ProgramError::new_err(format!("{}: {what}", at().unwrap_or_default()))
}
