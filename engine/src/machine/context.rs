//! One task's handle to the native machine: the machine side of the waist. What lock algorithms are written in is in `primitives`.

use super::caches::contents::Contents;
use super::chains::Reason;
use super::cpus::wheel;
use super::device::Submitter;
use super::lock::LockKind;
use super::plug::Held;
use super::primitives::Suspend;
use super::queue::Happening;
use super::sched::spawn::spawn;
use super::state::State;
use super::trace::Object;
use crate::hdr::Tally;
use crate::waist::time::Time;
use crate::waist::{
    Access, Account, CachedId, ClassId, ContentsId, CpuId, DeviceId, GracePeriod, Hardware, Io, LineId, LockId,
    Machine, Mode, Placement, SeldomId, Side, SpawnKind, TaskId, Then,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::cell::{RefCell, RefMut};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;

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

impl Context {
    #[inline]
    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.shared.state.borrow_mut()
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
        self.go_through(move |s, me| s.start_segment(me, account, time))
    }

    async fn run_turns(&self, count: u64, user: Time, kernel: Time) {
        if !self.state().start_turns(self.id, count, user, kernel) {
            self.until_done().await;
        }
    }

    fn touch(&self, line: LineId, access: Access) {
        self.state().touch_line(self.id, line, access);
    }

    fn touch_beside(&self, lock: LockId, access: Access) {
        let mut s = self.state();
        let l = &s.locks[lock as usize];
        let part = if l.parts.is_empty() { lock } else { l.part_of(self.id) };
        s.touch_lock(self.id, part, access);
    }

    fn stored(&self) -> Time {
        self.state().tasks[self.id as usize].stores_until
    }

    fn settle(&self) -> impl Future<Output = ()> {
        self.go_through(|s, me| s.settle(me))
    }

    fn class(&self, name: &str, role: &str) -> ClassId {
        let mut s = self.state();
        if let Some(known) = s.known_class(name) {
            return known; // heads of references and blocks ask for theirs each time
        }
        let named = s.kernel.locks.get(role).ok_or_else(|| format!("kernel.locks has no role '{role}'"));
        let kind = named.and_then(|kind| LockKind::parse(kind)).unwrap_or_else(|problem| {
            s.give_up(|| problem);
            LockKind::Mutex(())
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

    fn new_seldom_lock(&self, class: ClassId) -> SeldomId {
        self.state().new_seldom_lock(class)
    }

    fn touch_seldom(&self, lock: SeldomId, access: Access) {
        let touched = self.state().touch_untaken(self.id, lock, access);
        if let Err(made) = touched {
            self.touch_beside(made, access);
        }
    }

    fn seldom_lock(&self, lock: SeldomId) -> LockId {
        self.state().seldom_lock(lock)
    }

    fn drop_lock(&self, lock: LockId) {
        let mut s = self.state();
        let class = s.locks[lock as usize].class;
        s.free_locks.entry(class).or_default().push(lock);
    }

    fn new_line(&self, name: &'static str, span: u32) -> LineId {
        let mut s = self.state();
        s.line_names.push(name);
        s.lines.push(super::caches::line::Line::new(span));
        (s.lines.len() - 1) as LineId
    }

    fn new_contents(&self) -> ContentsId {
        let mut s = self.state();
        s.contents.push(Contents::default());
        (s.contents.len() - 1) as ContentsId
    }

    fn touch_contents(&self, contents: ContentsId, lines: Range<u32>, access: Access) {
        self.state().touch_contents(self.id, contents, lines, access);
    }

    fn new_block(&self, lines: Range<LineId>, ago: Option<u64>) -> CachedId {
        self.state().new_block(lines, ago)
    }

    fn use_block(&self, block: CachedId, bytes: u32) -> bool {
        self.state().use_block(self.id, block, bytes)
    }

    fn fetch_block(&self, block: CachedId, chain: u32, lines: u32) {
        self.state().fetch_block(self.id, block, chain, lines);
    }

    fn stream_block(&self, block: CachedId, bytes: u32) {
        self.state().stream_block(self.id, block, bytes);
    }

    fn new_completion(&self) -> LockId {
        let mut s = self.state();
        let class = super::locks::completion::class(&mut s);
        let unused = s.free_locks.get_mut(&class).and_then(Vec::pop);
        unused.unwrap_or_else(|| s.new_lock(class))
    }

    fn new_pool(&self) -> LockId {
        let pool = self.new_completion();
        super::locks::completion::become_pool(&mut self.state(), pool);
        pool
    }

    fn new_work(&self, pool: LockId, most: u32, is_one: bool) -> LockId {
        let work = self.new_completion();
        super::locks::completion::become_work(&mut self.state(), work, pool, (most, is_one));
        work
    }

    async fn next_work(&self, pool: LockId) -> LockId {
        super::locks::pool::wait_for_work(self, pool).await;
        self.state().tasks[self.id as usize].others().work.expect("it has been waited for")
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

    fn submit_plugged(&self, device: DeviceId, io: Io, then: Then) {
        let by = Submitter { task: self.id, cpu: self.cpu() };
        let mut s = self.state();
        let then = s.release_own_part(self.id, then);
        let request = s.new_request(device, by, io, then);
        s.hold_back(self.id, Held::Request(request));
    }

    fn join_plugged(&self, before: usize, io: Io, then: Then) {
        let by = Submitter { task: self.id, cpu: self.cpu() };
        let mut s = self.state();
        let then = s.release_own_part(self.id, then);
        s.join_held(before, by, io, then);
    }

    fn wake_plugged(&self, task: TaskId) {
        self.state().hold_back(self.id, Held::Wake(task));
    }

    fn queue_plugged(&self, work: LockId) {
        self.state().hold_back(self.id, Held::Work(work));
    }

    fn flush_plug(&self) {
        self.state().flush_plug(self.id);
    }

    fn plug_flushed(&self, task: TaskId) -> u64 {
        self.state().plug_flushed(task)
    }

    fn is_locked(&self, lock: LockId) -> bool {
        let (lock, _) = super::locks::part(self, lock);
        self.state().locks[lock as usize].is_held()
    }

    fn hand_to_device(&self, lock: LockId) -> bool {
        self.state().try_hand_to_device(lock)
    }

    fn sleep(&self, time: Time) -> impl Future<Output = ()> {
        super::sleep::sleep(self, time)
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

    async fn rest(&self) {
        self.state().tasks[self.id as usize].resting = true;
        self.park().await;
        self.state().tasks[self.id as usize].resting = false;
    }

    fn wake(&self, task: TaskId) {
        self.state().kick(task, Some(self.id));
    }

    fn wake_at_tick(&self, task: TaskId, ticks: u64) -> Time {
        let mut s = self.state();
        let at = wheel::rings(s.kernel.rules.wheel, s.now, ticks, s.kernel.tick);
        if s.tasks[task as usize].timer.replace(at) != Some(at) {
            let wakes = at + s.kernel.tick_timers;
            s.push(wakes, Happening::Timer, task, u32::MAX);
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

    fn start_rcu(&self, thread: TaskId, ksoftirqds: &[(TaskId, LockId)]) {
        let random = self.stream("rcu");
        self.state().start_rcu(thread, ksoftirqds, random);
    }

    fn call_rcu(&self, callbacks: u64, time: Time) {
        let cpu = self.cpu();
        self.state().call_rcu(cpu, callbacks, time);
    }

    fn keep_stacks(&self, workers: &[TaskId], callback: Time) {
        self.state().keep_stacks(workers, callback);
    }

    fn stacks_to_free(&self) -> u64 {
        let cpu = self.cpu();
        self.state().stacks_to_free(cpu)
    }

    fn grace_period(&self, step: GracePeriod) -> bool {
        let cpu = self.cpu();
        self.state().grace_period(cpu, step)
    }

    fn next_softirq(&self) -> Option<Time> {
        let cpu = self.cpu();
        self.state().next_softirq(cpu)
    }

    fn cond_resched(&self) -> impl Future<Output = ()> {
        self.reschedule()
    }

    async fn might_sleep(&self) {
        let gives_way = self.state().gives_way(self.id);
        if gives_way {
            self.reschedule().await;
        }
    }

    async fn exit_to_user_mode(&self) {
        let wanted = self.state().need_resched(self.id);
        if wanted {
            self.reschedule().await;
        }
    }

    fn set_nice(&self, nice: i32) {
        self.state().set_nice(self.id, nice);
    }

    fn spawn<P, F>(&self, placement: Placement, spawn_kind: SpawnKind, program: P) -> TaskId
    where
        P: FnOnce(Self) -> F,
        F: Future<Output = ()> + 'static,
    {
        let parent = self.cpu();
        spawn(&self.shared, Some((self.id, parent)), placement, spawn_kind, program)
    }

    fn at(&self, site: &'static str) {
        let mut s = self.state();
        s.tasks[self.id as usize].site = s.site(site);
        s.paces.change(self.id);
        let site = s.tasks[self.id as usize].site;
        s.enter_call(self.id, usize::from(site));
        s.chain_of_task_changes(self.id);
    }

    fn exception(&self, site: &'static str) {
        let mut s = self.state();
        let site = s.site(site);
        let task = &mut s.tasks[self.id as usize];
        (task.site, task.interrupted) = (site, task.site);
        s.chain_of_task_changes(self.id);
    }

    fn return_from_exception(&self) {
        let mut s = self.state();
        let task = &mut s.tasks[self.id as usize];
        task.site = task.interrupted;
        s.chain_of_task_changes(self.id);
    }

    fn io_schedule(&self, begins: bool) {
        self.state().tasks[self.id as usize].in_iowait = begins;
    }

    fn wchan(&self, function: &'static str) {
        let mut s = self.state();
        s.tasks[self.id as usize].function = s.site(function);
    }

    fn use_memory(&self, bytes: u64) {
        self.state().use_memory(self.id, bytes);
    }

    fn use_code(&self, bytes: u64) {
        self.state().use_code(self.id, bytes);
    }

    fn begin(&self) {
        let mut s = self.state();
        s.tasks[self.id as usize].operation_began = s.now;
        s.note("begin", self.id, Object::Nothing);
    }

    fn end(&self, name: &'static str, counted: bool) {
        let s = &mut *self.state();
        let task = &mut s.tasks[self.id as usize];
        if counted {
            s.counters.operations += 1;
            task.operations += 1;
        }
        record(&mut s.latencies, name, s.now - task.operation_began);
        s.note("end", self.id, Object::Operation(name));
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
        let who = s.called(self.id);
        s.give_up(|| format!("{who}: {reason}"));
    }

    fn stream(&self, name: &str) -> Xoshiro256PlusPlus {
        self.state().stream(self.shared.replication, name)
    }
}

/// Counts a time in the tally called `name`.
#[inline(always)]
pub(super) fn record(tallies: &mut Vec<(&'static str, Tally)>, name: &'static str, time: Time) {
    match tallies.iter_mut().find(|(known, _)| std::ptr::eq(*known, name)) {
        Some((_, tally)) => tally.record(time),
        None => record_of_other_text(tallies, name, time),
    }
}

/// The same where the name may be new, or come from elsewhere.
#[cold]
fn record_of_other_text(tallies: &mut Vec<(&'static str, Tally)>, name: &'static str, time: Time) {
    let known = tallies.iter().position(|(known, _)| *known == name);
    let at = known.unwrap_or_else(|| {
        tallies.push((name, Tally::new(3)));
        tallies.len() - 1
    });
    tallies[at].1.record(time);
}
