//! Built-in programs on a machine written in Python.
//!
//! What a program asks for at once is a call of the Python machine's method of that name. What takes simulated time is
//! left for Python as a step, a tuple such as `("lock", 3, "write")`, and is done when the program is stepped again, with the
//! answer if the step has one.

mod host;
mod program;
mod step;

use host::populate;
use host::Shared;
use program::Program;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use simfs_engine::random;
use simfs_engine::waist::{
    Access, Account, CachedId, ClassId, ContentsId, CpuId, DeviceId, GracePeriod, Hardware, Io, LineId, LockId,
    Machine, Mode, Placement, Side, SpawnKind, TaskId, Then, Time,
};
use simfs_programs::raise;
use std::cell::Cell;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as PollContext, Poll};
use step::{grace_period_word, side_word, word_of, Step};

/// Adds to a module of Python what brings the programs to a machine.
///
/// # Errors
///
/// What Python raises.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(populate, module)?)?;
    module.add_class::<Program>()
}

/// A request: who submits it to which device, what it asks for, where, and what its end does.
type Asked = (TaskId, DeviceId, (&'static str, Time, Time, Time, Time), Option<(u64, u32, bool)>, Done);
type Done = (&'static str, LockId, Option<LockId>);

/// The handle of one task on a machine written in Python.
#[derive(Clone)]
pub struct Foreign {
    shared: Rc<Shared>,
    task: TaskId,
    asked: Rc<Cell<Option<Step>>>,
    answered: Rc<Cell<bool>>,
}

impl Foreign {
    /// Calls a method of the machine; what it raises ends the program.
    fn tell(&self, method: &str, arguments: impl for<'py> PyCallArgs<'py>) {
        self.call(method, arguments, |_| Ok(()));
    }

    /// The same, for the answer.
    fn ask<T: for<'py> FromPyObjectOwned<'py>>(&self, method: &str, arguments: impl for<'py> PyCallArgs<'py>) -> T {
        self.call(method, arguments, |answer| answer.extract().map_err(Into::into))
    }

    fn call<T>(
        &self,
        method: &str,
        arguments: impl for<'py> PyCallArgs<'py>,
        read: impl FnOnce(Bound<'_, PyAny>) -> PyResult<T>,
    ) -> T {
        let answer = Python::attach(|py| read(self.shared.machine(py)?.call_method1(method, arguments)?));
        answer.unwrap_or_else(|error| raise(error))
    }

    fn attribute<T: for<'py> FromPyObjectOwned<'py>>(&self, name: &str) -> T {
        let value = Python::attach(|py| self.shared.machine(py)?.getattr(name)?.extract().map_err(Into::into));
        value.unwrap_or_else(|error| raise(error))
    }

    fn take(&self, step: Step) -> Taken<'_> {
        Taken { asked: &self.asked, step: Some(step) }
    }
}

/// A step on its way: asked for on the first poll, done on the second.
struct Taken<'a> {
    asked: &'a Cell<Option<Step>>,
    step: Option<Step>,
}

impl Future for Taken<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        match self.step.take() {
            Some(step) => {
                self.asked.set(Some(step));
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

/// A request, as Python is told.
fn asked(task: TaskId, device: DeviceId, io: Io, then: Then) -> Asked {
    let Io { service, joined, transfer, flash, op, span } = io;
    let span = span.map(|span| (span.at, span.bytes, span.write));
    (task, device, (op.name(), service, joined, transfer, flash), span, done(then))
}

/// What a completion interrupt does, as Python is told: it completes or releases these.
fn done(then: Then) -> Done {
    match then {
        Then::Complete(completion) => ("complete", completion, None),
        Then::Release(lock) => ("release", lock, None),
        Then::Unlock(completion, other) | Then::Both(completion, other) => ("complete", completion, Some(other)),
    }
}

impl Machine for Foreign {
    fn task(&self) -> TaskId {
        self.task
    }

    fn cpu(&self) -> CpuId {
        self.ask("cpu", (self.task,))
    }

    fn cpus(&self) -> CpuId {
        self.attribute("cpus")
    }

    fn now(&self) -> Time {
        self.attribute("now")
    }

    fn run(&self, account: Account, time: Time) -> impl Future<Output = ()> {
        self.take(Step::Run(account, time))
    }

    fn run_turns(&self, count: u64, user: Time, kernel: Time) -> impl Future<Output = ()> {
        self.take(Step::RunTurns(count, user, kernel))
    }

    fn touch(&self, line: LineId, access: Access) {
        self.tell("touch", (self.task, line, word_of(access)));
    }

    fn touch_beside(&self, lock: LockId, access: Access) {
        self.tell("touch_beside", (self.task, lock, word_of(access)));
    }

    fn stored(&self) -> Time {
        self.ask("stored", (self.task,))
    }

    async fn settle(&self) {
        if self.ask("has_queued", (self.task,)) {
            self.take(Step::Run(Account::System, 0)).await;
        }
    }

    fn class(&self, name: &str, role: &str) -> ClassId {
        self.ask("new_class", (name, role))
    }

    fn new_lock(&self, class: ClassId) -> LockId {
        self.ask("new_lock", (class,))
    }

    fn drop_lock(&self, lock: LockId) {
        self.tell("drop_lock", (lock,));
    }

    fn new_line(&self, name: &'static str, span: u32) -> LineId {
        self.ask("new_line", (name, span))
    }

    fn new_contents(&self) -> ContentsId {
        self.ask("new_contents", ())
    }

    fn touch_contents(&self, contents: ContentsId, lines: Range<u32>, access: Access) {
        self.tell("touch_contents", (self.task, contents, lines.start, lines.end, word_of(access)));
    }

    fn new_block(&self, lines: Range<LineId>, ago: Option<u64>) -> CachedId {
        self.ask("new_block", (lines.start, lines.len(), ago))
    }

    fn use_block(&self, block: CachedId, bytes: u32) -> bool {
        self.ask("use_block", (self.task, block, bytes))
    }

    fn fetch_block(&self, block: CachedId, chain: u32, lines: u32) {
        self.tell("fetch_block", (self.task, block, chain, lines));
    }

    fn stream_block(&self, block: CachedId, bytes: u32) {
        self.tell("stream_block", (self.task, block, bytes));
    }

    fn new_completion(&self) -> LockId {
        self.ask("new_completion", ())
    }

    fn new_pool(&self) -> LockId {
        self.ask("new_pool", ())
    }

    fn new_work(&self, pool: LockId, most: u32, is_one: bool) -> LockId {
        self.ask("new_work", (pool, most, is_one))
    }

    async fn next_work(&self, pool: LockId) -> LockId {
        self.take(Step::WaitForWork(pool)).await;
        self.ask("work", (self.task,))
    }

    fn drop_completion(&self, completion: LockId) {
        self.tell("drop_completion", (completion,));
    }

    fn lock(&self, lock: LockId, side: Side) -> impl Future<Output = ()> {
        self.take(Step::Lock(lock, side))
    }

    fn try_lock(&self, lock: LockId, side: Side) -> bool {
        self.ask("try_lock", (self.task, lock, side_word(side)))
    }

    async fn try_lock_spinning(&self, lock: LockId, side: Side) -> bool {
        self.take(Step::TryLockSpinning(lock, side)).await;
        self.answered.get()
    }

    fn unlock(&self, lock: LockId, side: Side) -> impl Future<Output = ()> {
        self.take(Step::Unlock(lock, side))
    }

    fn convert(&self, lock: LockId, side: Side, mode: Mode) -> impl Future<Output = ()> {
        self.take(Step::Convert(lock, side, mode))
    }

    fn wait_for(&self, completion: LockId) -> impl Future<Output = ()> {
        self.take(Step::WaitFor(completion))
    }

    fn complete(&self, completion: LockId) -> impl Future<Output = ()> {
        self.take(Step::Complete(completion))
    }

    fn new_device(&self, is: Hardware) -> DeviceId {
        let Hardware { parallelism, depth, interrupt, slack, flush_alone, disk } = is;
        let disk = disk.map(|d| (d.revolution, d.seek_track, d.seek_full, d.capacity, d.track, d.cache));
        self.ask("new_device", (parallelism, depth, interrupt, slack, flush_alone, disk))
    }

    fn submit(&self, device: DeviceId, io: Io, then: Then) {
        self.tell("submit", asked(self.task, device, io, then));
    }

    fn submit_plugged(&self, device: DeviceId, io: Io, then: Then) {
        self.tell("submit_plugged", asked(self.task, device, io, then));
    }

    fn join_plugged(&self, before: usize, io: Io, then: Then) {
        let (task, _, asks, span, then) = asked(self.task, 0, io, then);
        self.tell("join_plugged", (task, before, asks, span, then));
    }

    fn wake_plugged(&self, task: TaskId) {
        self.tell("wake_plugged", (self.task, task));
    }

    fn queue_plugged(&self, work: LockId) {
        self.tell("queue_plugged", (self.task, work));
    }

    fn flush_plug(&self) {
        self.tell("flush_plug", (self.task,));
    }

    fn plug_flushed(&self, task: TaskId) -> u64 {
        self.ask("plug_flushed", (task,))
    }

    fn is_locked(&self, lock: LockId) -> bool {
        self.ask("is_locked", (self.task, lock))
    }

    fn hand_to_device(&self, lock: LockId) -> bool {
        self.ask("hand_to_device", (lock,))
    }

    fn sleep(&self, time: Time) -> impl Future<Output = ()> {
        self.take(Step::Sleep(time))
    }

    fn park(&self) -> impl Future<Output = ()> {
        self.take(Step::Park)
    }

    fn rest(&self) -> impl Future<Output = ()> {
        self.take(Step::Rest)
    }

    fn wake(&self, task: TaskId) {
        self.tell("wake", (self.task, task));
    }

    fn wake_at_tick(&self, task: TaskId, ticks: u64) -> Time {
        self.ask("wake_at_tick", (self.task, task, ticks))
    }

    fn exec(&self) -> impl Future<Output = ()> {
        self.take(Step::Exec)
    }

    fn exiting(&self) {
        self.tell("exiting", (self.task,));
    }

    fn start_rcu(&self, thread: TaskId, ksoftirqds: &[(TaskId, LockId)]) {
        self.tell("start_rcu", (thread, ksoftirqds.to_vec()));
    }

    fn call_rcu(&self, callbacks: u64, time: Time) {
        self.tell("call_rcu", (self.task, callbacks, time));
    }

    fn keep_stacks(&self, workers: &[TaskId], callback: Time) {
        self.tell("keep_stacks", (workers.to_vec(), callback));
    }

    fn stacks_to_free(&self) -> u64 {
        self.ask("stacks_to_free", (self.task,))
    }

    fn grace_period(&self, step: GracePeriod) -> bool {
        self.ask("grace_period", (self.task, grace_period_word(step)))
    }

    fn next_softirq(&self) -> Option<Time> {
        self.ask("next_softirq", (self.task,))
    }

    fn cond_resched(&self) -> impl Future<Output = ()> {
        self.take(Step::CondResched)
    }

    fn might_sleep(&self) -> impl Future<Output = ()> {
        self.take(Step::MightSleep)
    }

    fn exit_to_user_mode(&self) -> impl Future<Output = ()> {
        self.take(Step::ExitToUserMode)
    }

    fn set_nice(&self, nice: i32) {
        self.tell("set_nice", (self.task, nice));
    }

    fn spawn<P, F>(&self, placement: Placement, spawn_kind: SpawnKind, program: P) -> TaskId
    where
        P: FnOnce(Self) -> F,
        F: Future<Output = ()> + 'static,
    {
        self.shared.spawn(Some(self.task), placement, spawn_kind, program)
    }

    fn at(&self, site: &'static str) {
        self.tell("at", (self.task, site));
    }

    fn exception(&self, site: &'static str) {
        self.tell("exception", (self.task, site));
    }

    fn return_from_exception(&self) {
        self.tell("return_from_exception", (self.task,));
    }

    fn io_schedule(&self, begins: bool) {
        self.tell("io_schedule", (self.task, begins));
    }

    fn wchan(&self, function: &'static str) {
        self.tell("wchan", (self.task, function));
    }

    fn use_memory(&self, bytes: u64) {
        self.tell("use_memory", (self.task, bytes));
    }

    fn use_code(&self, bytes: u64) {
        self.tell("use_code", (self.task, bytes));
    }

    fn begin(&self) {
        self.tell("begin", (self.task,));
    }

    fn end(&self, name: &'static str, counted: bool) {
        self.tell("end", (self.task, name, counted));
    }

    fn delayed(&self, name: &'static str, since: Time) {
        self.tell("delayed", (self.task, name, since));
    }

    fn moved(&self, bytes: u64) {
        self.tell("moved", (self.task, bytes));
    }

    fn give_up(&self, reason: &str) {
        self.tell("give_up", (self.task, reason));
    }

    fn stream(&self, name: &str) -> Xoshiro256PlusPlus {
        random::stream(self.shared.seed, self.shared.replication, name)
    }
}
