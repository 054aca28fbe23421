//! One task's handle to the native machine: the machine side of the waist, and the few primitives (pay, park, spin)
//! that lock algorithms are written in.

use super::chains::Reason;
use super::cpu::Account;
use super::device::{DeviceId, Hardware, Io, Submitter, Then};
use super::entity::weight_of;
use super::line::Access;
use super::lock::{ClassId, LockId, LockKind, Mode, Side};
use super::lock_code::LockCode;
use super::queue::Happening;
use super::run_queue::Level;
use super::state::{LineId, State};
use super::task::{Status, Task, TaskId, TaskKind};
use super::time::Time;
use super::topology::CpuId;
use super::trace::Object;
use super::wheel;
use crate::hdr::Tally;
use crate::kernel::sched::Groups;
use crate::waist::{Life, Machine, Placement};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::{RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as PollContext, Poll};

/// A task's program.
pub type Program = Pin<Box<dyn Future<Output = ()>>>;

/// The state of the machine, and programs that were spawned but not yet given to the executor.
pub struct Shared {
    pub(super) state: RefCell<State>,
    pub(super) spawned: RefCell<Vec<(TaskId, Program)>>,
    pub(super) replication: u64,
}

/// The handle of one task on the native machine.
#[derive(Clone)]
pub struct Context {
    pub(super) shared: Rc<Shared>,
    pub(super) id: TaskId,
}

/// What ends a spin besides a check asked for by the lock itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinUntil {
    /// This task leaves its CPU.
    pub owner_off_cpu: Option<TaskId>,
    /// The scheduler wants the CPU.
    pub need_resched: bool,
    /// This moment.
    pub deadline: Option<Time>,
}

/// A future that arranges something on its first poll and is done on its second: the executor polls a task again only
/// when what it asked for has come.
struct Suspend<F>(Option<F>);

impl<F: FnOnce() + Unpin> Future for Suspend<F> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        match self.0.take() {
            Some(arrange) => {
                arrange();
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

/// The same for a stretch of CPU time, which is over on the first poll if nothing else happens before its end.
struct Run<'a> {
    cx: &'a Context,
    asked: Option<(Account, Time)>,
}

impl Future for Run<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        match self.asked.take() {
            Some((account, time)) if !self.cx.state().start_segment(self.cx.id, account, time) => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

/// The same for what the task owes, if it owes anything.
pub(super) struct Pay<'a> {
    cx: &'a Context,
    begun: bool,
}

impl Future for Pay<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.begun, true) || self.cx.state().pay(self.cx.id) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// A sleep until a wake-up, see [`Context::park_here`]. Written by hand, as every contended sleeping lock comes here.
pub(super) struct Park<'a, W> {
    cx: &'a Context,
    /// What it is for; nothing once it sleeps.
    why: Option<W>,
    paid: bool,
}

impl<W: FnOnce(&mut State) -> Reason + Unpin> Future for Park<'_, W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<()> {
        let (me, cx) = (self.cx.id, self.cx);
        let mut s = cx.state();
        if self.why.is_some() && !std::mem::replace(&mut self.paid, true) && !s.pay(me) {
            return Poll::Pending;
        }
        let task = &mut s.tasks[me as usize];
        let woken = std::mem::take(&mut task.woken);
        match self.why.take() {
            Some(why) if !woken => {
                s.sleeps_for_lock(me);
                let reason = why(&mut s);
                s.sleep(me, reason);
                Poll::Pending
            }
            Some(_) => Poll::Ready(()),
            None => {
                task.sleeps_for = None;
                Poll::Ready(())
            }
        }
    }
}

impl Context {
    #[inline]
    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.shared.state.borrow_mut()
    }

    /// Spends the CPU time that the task owes.
    pub(super) fn pay(&self) -> Pay<'_> {
        Pay { cx: self, begun: false }
    }

    /// The task owes the time of lock code.
    pub(super) fn runs(&self, code: fn(&LockCode) -> Time) {
        self.state().runs(self.id, code);
    }

    /// Lets the executor go on with the stretch of CPU time that has just been started.
    pub(super) async fn until_done(&self) {
        Suspend(Some(|| ())).await;
    }

    /// What the task owes.
    pub(super) fn debt(&self) -> Time {
        self.state().tasks[self.id as usize].segment.total()
    }

    /// Stays on the CPU until a lock asks for a look ([`State::spin_check`]) or `until` comes, and at least until what
    /// the task owes is paid.
    pub(super) async fn spin(&self, until: SpinUntil) {
        Suspend(Some(|| {
            let mut s = self.state();
            let (now, id) = (s.now, self.id);
            s.begin_spin(id, until.need_resched);
            if let Some(owner) = until.owner_off_cpu {
                s.tasks[owner as usize].watchers.push(id);
            }
            if let Some(deadline) = until.deadline {
                s.spin_check(id, deadline.max(now));
                s.tasks[id as usize].look_due = false;
            }
        }))
        .await;
        if let Some(owner) = until.owner_off_cpu {
            let mut s = self.state();
            s.tasks[owner as usize].watchers.retain(|&w| w != self.id);
        }
    }

    /// Polls the line of `lock`: spins as `spin` does, among those whom [`State::show_pollers`] tells.
    pub(super) async fn poll(&self, lock: LockId, until: SpinUntil) {
        self.state().locks[lock as usize].pollers.push(self.id);
        self.spin(until).await;
        self.state().locks[lock as usize].pollers.retain(|&poller| poller != self.id);
    }

    /// Sleeps until woken. A wake-up that came since the last [`Context::forget_wakeups`] ends it at once.
    pub(super) fn park_here(&self) -> Park<'_, impl FnOnce(&mut State) -> Reason + Unpin> {
        self.park_for(|_| Reason::Lock)
    }

    /// The same for what `why` says.
    pub(super) fn park_for<W: FnOnce(&mut State) -> Reason + Unpin>(&self, why: W) -> Park<'_, W> {
        Park { cx: self, why: Some(why), paid: false }
    }

    /// Wake-ups so far were for something else.
    pub(super) fn forget_wakeups(&self) {
        self.state().tasks[self.id as usize].woken = false;
    }

    /// Wakes `task`, which waits for `lock`; this task pays.
    pub(super) fn wake_waiter(&self, lock: LockId, task: TaskId) {
        self.state().wake_waiter(self.id, lock, task, false);
    }

    /// The same where this task has the lines of `task` already ([`State::lines_of_waiter`]).
    pub(super) fn wake_fetched(&self, lock: LockId, task: TaskId) {
        self.state().wake_waiter(self.id, lock, task, true);
    }

    /// Gives way if the scheduler wants the CPU.
    pub(super) async fn reschedule(&self) {
        self.pay().await;
        let next = self.state().wanted_by(self.id);
        if let Some(next) = next {
            Suspend(Some(|| self.state().yield_cpu(self.id, next))).await;
        }
    }

    pub(super) fn preempt_disable(&self) {
        self.state().tasks[self.id as usize].preempt_off += 1;
    }

    pub(super) fn preempt_enable(&self) {
        self.state().preempt_enable(self.id);
    }
}

impl Machine for Context {
    fn task(&self) -> TaskId {
        self.id
    }

    fn cpu(&self) -> CpuId {
        self.state().tasks[self.id as usize].cpu
    }

    fn cpus(&self) -> CpuId {
        self.state().topology.cpus
    }

    fn now(&self) -> Time {
        self.state().now
    }

    fn run(&self, account: Account, time: Time) -> impl Future<Output = ()> {
        Run { cx: self, asked: Some((account, time)) }
    }

    fn touch(&self, line: LineId, access: Access) {
        self.state().touch_line(self.id, line, access);
    }

    fn touch_beside(&self, lock: LockId, access: Access) {
        let (part, _) = super::locks::part(self, lock);
        self.state().touch_lock(self.id, part, access);
    }

    fn class(&self, name: &str, role: &str) -> ClassId {
        let mut s = self.state();
        let named = s.kernel.locks.get(role).ok_or_else(|| format!("kernel.locks has no role '{role}'"));
        let kind = named.and_then(|kind| LockKind::parse(kind)).unwrap_or_else(|problem| {
            s.give_up(|| problem);
            LockKind::Mutex
        });
        let kind = s.kind_if(name, kind);
        s.class(name, role, kind)
    }

    fn new_lock(&self, class: ClassId) -> LockId {
        let mut s = self.state();
        match s.free_locks.get_mut(&class).and_then(Vec::pop) {
            Some(lock) => lock,
            None => s.new_lock(class),
        }
    }

    fn drop_lock(&self, lock: LockId) {
        let mut s = self.state();
        let class = s.locks[lock as usize].class;
        s.free_locks.entry(class).or_default().push(lock);
    }

    fn new_line(&self, span: u32) -> LineId {
        let mut s = self.state();
        s.lines.push(super::line::Line::new(span));
        (s.lines.len() - 1) as LineId
    }

    fn new_completion(&self) -> LockId {
        let mut s = self.state();
        let class = super::locks::completion::class(&mut s);
        let unused = s.free_locks.get_mut(&class).and_then(Vec::pop);
        unused.unwrap_or_else(|| super::locks::completion::create(&mut s, class))
    }

    fn drop_completion(&self, completion: LockId) {
        self.drop_lock(completion);
    }

    fn lock(&self, lock: LockId, side: Side) -> impl Future<Output = ()> {
        super::locks::acquire(self, lock, side)
    }

    fn try_lock(&self, lock: LockId, side: Side) -> bool {
        super::locks::try_acquire(self, lock, side)
    }

    fn try_lock_spinning(&self, lock: LockId, side: Side) -> impl Future<Output = bool> {
        super::locks::try_acquire_spinning(self, lock, side)
    }

    fn unlock(&self, lock: LockId, side: Side) -> impl Future<Output = ()> {
        super::locks::release(self, lock, side)
    }

    fn convert(&self, lock: LockId, side: Side, mode: Mode) -> impl Future<Output = ()> {
        super::locks::convert(self, lock, side, mode)
    }

    fn wait_for(&self, completion: LockId) -> impl Future<Output = ()> {
        super::locks::completion::wait(self, completion)
    }

    fn complete(&self, completion: LockId) -> impl Future<Output = ()> {
        super::locks::completion::complete(self, completion)
    }

    fn new_device(&self, is: Hardware) -> DeviceId {
        self.state().new_device(is)
    }

    fn submit(&self, device: DeviceId, io: Io, then: Then) {
        let by = Submitter { task: self.id, cpu: self.cpu() };
        let mut s = self.state();
        let then = s.release_own_part(self.id, then);
        s.submit(device, by, io, then);
    }

    fn lend(&self, lock: LockId) -> bool {
        self.state().lend(lock)
    }

    async fn sleep(&self, time: Time) {
        self.pay().await;
        Suspend(Some(|| {
            let mut s = self.state();
            s.sleep(self.id, Reason::Timer);
            let (at, generation) = (s.now + time, s.tasks[self.id as usize].generation);
            let cpu = s.tasks[self.id as usize].cpu;
            s.note_timer(cpu, at);
            s.push(at, Happening::Timer, self.id, generation);
        }))
        .await;
        self.state().tasks[self.id as usize].function = 0;
    }

    async fn park(&self) {
        self.pay().await;
        if !std::mem::take(&mut self.state().tasks[self.id as usize].kicked) {
            Suspend(Some(|| {
                let mut s = self.state();
                let task = &mut s.tasks[self.id as usize];
                task.parked = true;
                let reason = if task.timer.is_some() { Reason::Timer } else { Reason::WakeUp };
                s.sleep(self.id, reason);
            }))
            .await;
        }
        self.state().tasks[self.id as usize].function = 0;
    }

    fn wake(&self, task: TaskId) {
        self.state().kick(task, Some(self.id));
    }

    fn wake_at_tick(&self, task: TaskId, ticks: u64) -> Time {
        let mut s = self.state();
        let at = wheel::rings(s.kernel.rules.wheel, s.now, ticks, s.kernel.tick);
        if s.tasks[task as usize].timer.replace(at) != Some(at) {
            s.push(at, Happening::Timer, task, u32::MAX);
            let cpu = s.tasks[self.id as usize].cpu;
            s.note_timer(cpu, at);
        }
        at
    }

    async fn exec(&self) {
        self.pay().await;
        let moves = self.state().moves_for_exec(self.id);
        if let Some(cpu) = moves {
            Suspend(Some(|| self.state().move_running(self.id, cpu))).await;
        }
    }

    fn exiting(&self) {
        self.state().leave_autogroup(self.id);
    }

    fn set_nice(&self, nice: i32) {
        self.state().set_nice(self.id, nice);
    }

    fn spawn<P, F>(&self, placement: Placement, life: Life, program: P) -> TaskId
    where
        P: FnOnce(Self) -> F,
        F: Future<Output = ()> + 'static,
    {
        let parent = self.cpu();
        spawn(&self.shared, Some((self.id, parent)), placement, life, program)
    }

    fn at(&self, site: &'static str) {
        let mut s = self.state();
        s.tasks[self.id as usize].site = s.site(site);
        s.paces.change(self.id);
        let site = s.tasks[self.id as usize].site;
        s.enter_call(self.id, usize::from(site));
        s.chain_of_task_changes(self.id);
    }

    fn wchan(&self, function: &'static str) {
        let mut s = self.state();
        s.tasks[self.id as usize].function = s.site(function);
    }

    fn use_memory(&self, bytes: u64) {
        self.state().use_memory(self.id, bytes);
    }

    fn use_data(&self, bytes: u64) {
        self.state().fetch_data(self.id, bytes);
    }

    fn begin(&self) {
        let mut s = self.state();
        s.tasks[self.id as usize].operation_began = s.now;
        s.note("begin", self.id, Object::Nothing);
    }

    fn end(&self, name: &'static str, counted: bool) {
        let mut s = self.state();
        let began = s.tasks[self.id as usize].operation_began;
        let took = s.now - began;
        s.note("end", self.id, Object::Operation(name));
        if counted {
            s.counters.operations += 1;
            s.tasks[self.id as usize].operations += 1;
        }
        record(&mut s.latencies, name, took);
    }

    fn delayed(&self, name: &'static str, since: Time) {
        let mut s = self.state();
        let took = s.now - since.max(s.window_start);
        record(&mut s.delays, name, took);
    }

    fn moved(&self, bytes: u64) {
        self.state().counters.bytes += bytes;
    }

    fn give_up(&self, reason: &str) {
        let mut s = self.state();
        s.give_up(|| format!("task {}: {reason}", self.id));
    }

    fn stream(&self, name: &str) -> Xoshiro256PlusPlus {
        self.state().stream(self.shared.replication, name)
    }
}

/// Counts a time in the tally called `name`.
#[inline]
fn record(tallies: &mut Vec<(&'static str, Tally)>, name: &'static str, time: Time) {
    let same = tallies.iter().position(|(known, _)| std::ptr::eq(*known, name));
    let at = same.or_else(|| tallies.iter().position(|(known, _)| *known == name)).unwrap_or_else(|| {
        tallies.push((name, Tally::new(3)));
        tallies.len() - 1
    });
    tallies[at].1.record(time);
}

/// Makes a task and wakes it. `parent` is the running task that spawns it and its CPU.
pub(super) fn spawn<P, F>(
    shared: &Rc<Shared>,
    parent: Option<(TaskId, CpuId)>,
    placement: Placement,
    life: Life,
    program: P,
) -> TaskId
where
    P: FnOnce(Context) -> F,
    F: Future<Output = ()> + 'static,
{
    let id = {
        let mut s = shared.state.borrow_mut();
        let (cpu, pinned) = match placement {
            Placement::Pinned(cpu) => (cpu, Some(cpu)),
            Placement::Anywhere if life == Life::Foreground => (s.choose_cpu_of_load(parent.map_or(0, |p| p.1)), None),
            Placement::Anywhere => (s.choose_cpu_for_new(parent.map_or(0, |p| p.1)), None),
        };
        let kind = match (life, pinned) {
            (Life::Foreground | Life::Helper | Life::Setup, _) => TaskKind::Load,
            (Life::Background, Some(_)) => TaskKind::Bound,
            (Life::Background, None) => TaskKind::Kernel,
        };
        let mut task = Task::new(cpu, pinned, kind, s.now);
        task.background = life != Life::Foreground;
        if let Some((parent, _)) = parent {
            let parent = &s.tasks[parent as usize];
            (task.level, task.entity.weight) = (parent.level, parent.entity.weight);
        }
        if life == Life::Foreground {
            task.entity.weight = weight_of(s.load_nice);
            task.level = if s.kernel.rules.groups == Groups::None { Level::Root } else { Level::Group };
        }
        match s.free_tasks.pop_front() {
            Some(id) => {
                let before = &mut s.tasks[id as usize];
                task.generation = before.generation.wrapping_add(1);
                task.blocks = std::mem::take(&mut before.blocks);
                s.tasks[id as usize] = task;
                id
            }
            None => {
                s.tasks.push(task);
                let id = (s.tasks.len() - 1) as TaskId;
                s.paces.meet(id);
                id
            }
        }
    };
    let context = Context { shared: shared.clone(), id };
    shared.spawned.borrow_mut().push((id, Box::pin(program(context))));
    let mut s = shared.state.borrow_mut();
    if life == Life::Setup {
        s.setting_up = Some(id);
    }
    debug_assert_eq!(s.tasks[id as usize].status, Status::Sleeping);
    s.start_task(id, parent.map(|p| p.0));
    id
}
