//! The executor: takes events in order and lets the program of the task they concern take its next step.

use super::chains::ADD_UP;
use super::context::{Context, Program, Shared};
use super::queue::{time_of, Event, Happening};
use super::rcu::Rcu;
use super::sched::spawn::spawn;
use super::stall::{given_up, stands_still, Stall};
use super::state::{Broken, State, STANDSTILL};
use super::task::Status;
use super::trace::Object;
use crate::spec::RunSpec;
use crate::stop::{stops, STOPPED};
use crate::waist::time::{from_ns, to_ns, Time};
use crate::waist::{Host, Placement, SpawnKind, TaskId, Witness};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::task::{Context as PollContext, Poll, Waker};

/// How a run ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Operations in each equal part of the measured window.
    pub batch_operations: Vec<u64>,
    /// Laws that did not hold.
    pub broken: Vec<Broken>,
    /// Why the run could not go on.
    pub stall: Option<Stall>,
}

impl Host for Native {
    type Handle = Context;

    fn setup<T>(&self, build: impl FnOnce(&Context) -> T) -> T {
        build(&Context { shared: self.shared.clone(), id: TaskId::MAX })
    }

    fn spawn<P, F>(&mut self, placement: Placement, spawn_kind: SpawnKind, program: P) -> TaskId
    where
        P: FnOnce(Context) -> F,
        F: Future<Output = ()> + 'static,
    {
        let id = spawn(&self.shared, None, placement, spawn_kind, program);
        self.adopt();
        id
    }

    fn watch(&mut self, witness: impl FnOnce() -> Rc<dyn Witness>) -> bool {
        if self.asks {
            self.witness = Some(witness());
        }
        self.asks
    }
}

/// Time after which a set-up is said never to end.
const SETUP: Time = 1_000_000_000_000 * 1000;

/// A native machine and the programs that run on it.
pub struct Native {
    pub(super) shared: Rc<Shared>,
    programs: Vec<Option<Program>>,
    /// Whether the structures that programs build are looked at when the run is over, and who can tell.
    asks: bool,
    pub(super) witness: Option<Rc<dyn Witness>>,
}

impl Native {
    /// A machine at time 0.
    pub fn new(spec: &RunSpec) -> Self {
        let state = RefCell::new(State::new(spec));
        let shared = Shared { state, spawned: RefCell::default(), replication: spec.replication };
        Self { shared: Rc::new(shared), programs: Vec::new(), asks: false, witness: None }
    }

    /// Will ask at the end of the run whether the structures are right.
    pub fn will_audit(&mut self) {
        self.asks = true;
    }

    /// Reads the state.
    pub fn state(&self) -> std::cell::RefMut<'_, State> {
        self.shared.state.borrow_mut()
    }

    /// Runs through set-up, warm-up and measured window.
    pub fn run(&mut self, spec: &RunSpec) -> Outcome {
        let mut outcome = Outcome { stall: self.set_up(), ..Outcome::default() };
        let window = self.state().origin + from_ns(spec.warmup_ns);
        let duration = from_ns(spec.duration_ns).max(1);
        self.go_on(&mut outcome, window);
        self.state().start_window();
        let mut before = 0;
        for batch in 1..=Time::from(spec.batches) {
            if !(spec.ends_with_tasks() && self.nobody_is_left()) {
                self.go_on(&mut outcome, window + (duration as u128 * batch as u128 / spec.batches as u128) as Time);
            }
            let operations = self.state().counters.operations;
            outcome.batch_operations.push(operations - before);
            before = operations;
        }
        if outcome.stall.is_none() {
            outcome.stall = self.waits_in_a_circle();
        }
        self.state().book_everything();
        self.state().book_sleeps();
        outcome.broken = self.check_laws(window);
        outcome
    }

    /// Somebody has stopped the run.
    pub fn is_stopped(&self) -> bool {
        self.state().stops != stops()
    }

    /// All tasks of the workload have ended.
    fn nobody_is_left(&self) -> bool {
        self.state().tasks.iter().all(|task| task.background || task.status == Status::Dead)
    }

    /// Runs until everything is set up, and starts the clock.
    fn set_up(&mut self) -> Option<Stall> {
        let sets_up = self.state().setting_up.is_some();
        let stall = if sets_up { self.run_until(SETUP) } else { None };
        let mut s = self.state();
        if s.setting_up.is_none() {
            return stall;
        }
        s.start_clock();
        let never = || Stall { kind: "stall", at: SETUP, cycle: vec!["the set-up takes more than 1,000 s".into()] };
        Some(stall.unwrap_or_else(never))
    }

    /// Runs to a moment, unless the run cannot go on: then time goes by.
    fn go_on(&mut self, outcome: &mut Outcome, end: Time) {
        if outcome.stall.is_none() {
            outcome.stall = self.run_until(end);
        }
        if outcome.stall.is_some() {
            self.state().stop_switches();
            self.state().wait_until(end);
        }
    }

    /// Runs to a moment, or till the clock starts.
    pub(super) fn run_until(&mut self, end: Time) -> Option<Stall> {
        let sets_up = {
            let mut s = self.state();
            s.begin_stretch(end);
            s.setting_up.is_some()
        };
        loop {
            let next = Self::next_step(&mut self.shared.state.borrow_mut(), end);
            match next {
                Next::Step(task) => self.step(task),
                Next::Nothing => return self.nothing_before(end),
                Next::Stalls(stall) => return Some(*stall),
            }
            if sets_up && self.state().setting_up.is_none() {
                return None;
            }
        }
    }

    /// Takes events until one of them lets the program of a task take its next step.
    #[inline(always)]
    fn next_step(s: &mut State, end: Time) -> Next {
        loop {
            if s.stops != stops() {
                s.give_up(|| STOPPED.into());
            }
            if s.given_up.is_some() {
                return Next::Stalls(Box::new(given_up(s)));
            }
            let Some(key) = s.pop_before(end) else { return Next::Nothing };
            if s.advance(time_of(key)) > STANDSTILL {
                return Next::Stalls(Box::new(stands_still(key)));
            }
            s.at = key as u64;
            if let Some(task) = happen(s, Event::of(key)).filter(|&task| s.goes_on(task)) {
                return Next::Step(task);
            }
        }
    }

    /// Nothing happens before `end`. Why, if nothing ever will though somebody waits.
    fn nothing_before(&self, end: Time) -> Option<Stall> {
        let over = self.state().is_over(end);
        let stall = if over { self.nobody_can_go_on() } else { None };
        if stall.is_none() {
            self.state().wait_until(end);
        }
        stall
    }

    /// Lets a task's program go on until it waits for something.
    pub(super) fn step(&mut self, id: TaskId) {
        let Some(program) = self.programs[id as usize].as_mut() else { return };
        let done = program.as_mut().poll(&mut PollContext::from_waker(Waker::noop()));
        if matches!(done, Poll::Ready(())) {
            self.end_program(id);
        }
        if !self.shared.spawned.borrow().is_empty() {
            self.adopt();
        }
    }

    #[cold]
    fn end_program(&mut self, id: TaskId) {
        self.programs[id as usize] = None;
        let mut s = self.shared.state.borrow_mut();
        s.exit(id);
        s.free_tasks.push_back(id);
        if s.setting_up == Some(id) {
            s.start_clock();
        } else {
            let label = s.tasks[id as usize].label;
            s.labels.give_back(label);
        }
    }

    /// Takes over the programs of newly spawned tasks.
    #[cold]
    fn adopt(&mut self) {
        for (id, program) in self.shared.spawned.borrow_mut().drain(..) {
            if self.programs.len() <= id as usize {
                self.programs.resize_with(id as usize + 1, || None);
            }
            self.programs[id as usize] = Some(program);
        }
    }

    fn check_laws(&self, window: Time) -> Vec<Broken> {
        let mut s = self.shared.state.borrow_mut();
        let mut broken = std::mem::take(&mut s.broken);
        let now = s.now;
        for (number, cpu) in s.cpus.iter().enumerate() {
            let sum: Time = cpu.accounts.iter().sum();
            if sum != now - window || cpu.accounts.iter().any(|&time| time > now - window) {
                let detail = format!("CPU {number}: {} ns accounted of {} ns", to_ns(sum), to_ns(now - window));
                broken.push(Broken { law: "time conservation", detail });
            }
        }
        broken.extend(s.rcu.as_ref().and_then(Rcu::has_lost));
        let mut open: Vec<Vec<Time>> = vec![Vec::new(); s.classes.len()];
        for task in s.tasks.iter().filter(|t| t.status != Status::Dead) {
            for wait in task.waits.iter() {
                open[s.locks[wait.lock as usize].class as usize].push(wait.since);
            }
        }
        let chains = s.chains_by_class();
        for (number, (class, open)) in s.classes.iter_mut().zip(&open).enumerate() {
            let (integral, sum) = class.little(now, window, open);
            if integral != sum {
                let detail = format!("{}: integral of waiters {integral} ps, sum of waits {sum} ps", class.name);
                broken.push(Broken { law: "Little's law", detail });
            }
            if chains.get(number).is_some_and(|&sum| sum != integral) {
                let detail = format!("{}: chains {} ps, waits {integral} ps", class.name, chains[number]);
                broken.push(Broken { law: ADD_UP, detail });
            }
        }
        broken
    }
}

impl Drop for Native {
    /// Programs hold the machine and the machine holds programs: breaks the circle.
    fn drop(&mut self) {
        self.programs.clear();
        self.shared.spawned.borrow_mut().clear();
    }
}

/// What comes after some events.
enum Next {
    /// The program of a task takes its next step.
    Step(TaskId),
    /// Nothing before the end.
    Nothing,
    /// The run cannot go on.
    Stalls(Box<Stall>),
}

/// Processes an event that happens now. Returns the task whose program is to take its next step.
#[inline(always)]
fn happen(s: &mut State, event: Event) -> Option<TaskId> {
    let (id, subject) = (event.subject, event.subject as usize);
    match event.what {
        Happening::SegmentEnd => {
            if s.tasks[subject].generation != event.generation {
                return None;
            }
            if s.tasks[subject].in_turns && s.begins_turn(id) {
                return None;
            }
            s.end_segment(id);
            Some(id)
        }
        Happening::SwitchDone if s.cpus[subject].generation == event.generation => s.switch_done(id),
        Happening::IdleExit if s.cpus[subject].generation == event.generation => {
            s.idle_exit_done(id);
            None
        }
        Happening::SwitchDone | Happening::IdleExit => None,
        Happening::SpinCheck => look(s, event),
        Happening::Timer => {
            timer(s, event);
            None
        }
        Happening::Tick => {
            s.tick(id);
            None
        }
        Happening::TickDone => {
            s.tick_done(id, event.generation > 0);
            None
        }
        Happening::DeviceDone => {
            s.device_done(id);
            None
        }
        Happening::SoftirqDone => {
            s.softirqs_done(id);
            None
        }
        Happening::Rescheduled => {
            s.rescheduled(id, event.generation);
            None
        }
    }
}

/// Who spins looks at what it waits for.
#[inline]
fn look(s: &mut State, event: Event) -> Option<TaskId> {
    let id = event.subject;
    let task = &mut s.tasks[id as usize];
    if task.generation != event.generation || !task.spinning {
        return None;
    }
    task.generation = task.generation.wrapping_add(1);
    task.spinning = false;
    task.spins_until_resched = false;
    let cpu = task.cpu;
    s.set_executing(cpu, true);
    s.book_spin(id);
    s.chain_of_task_changes(id);
    s.note("look", id, Object::Nothing);
    Some(id)
}

/// A sleep is over, or a task is due to be kicked at a tick (`wake_at_tick`), which has no generation.
fn timer(s: &mut State, event: Event) {
    let (id, task) = (event.subject, &s.tasks[event.subject as usize]);
    if event.generation == u32::MAX {
        if task.timer.is_some_and(|at| at + s.kernel.tick_timers == event.time) {
            s.note("timer", id, Object::Nothing);
            let cpu = s.tasks[id as usize].cpu;
            s.rcu.iter_mut().for_each(|rcu| rcu.rings(cpu));
            s.kick(id, None);
        }
    } else if task.generation == event.generation {
        s.note("timer", id, Object::Nothing);
        s.wake(id, None);
    }
}
