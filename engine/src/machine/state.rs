//! The whole state of a native machine, and the little things every part needs: the clock, the queue, the random
//! streams, the counters.

use super::caches::contents::Contents;
use super::caches::line::Line;
use super::caches::warmth::Warmth;
use super::chains::Chains;
use super::constants::{Costs, Kernel};
use super::cpus::cpu::{Cpu, IdleLadder};
use super::cpus::cpu_set::CpuSet;
use super::cpus::pace::Paces;
use super::cpus::polling::polls_for;
use super::cpus::topology::Topology;
use super::cpus::turns::Turns;
use super::device::Devices;
use super::labels::Labels;
use super::lock::code::LockCode;
use super::lock::untaken::Untaken;
use super::lock::Lock;
use super::queue::{rank, Event, EventQueue, Happening, Key};
use super::rcu::Rcu;
use super::sched::address_space::{are_threads, Mm};
use super::stacks::Stacks;
use super::statistics::{ClassStats, WakeStats, KINDS};
use super::task::{Status, Task};
use super::trace::Trace;
use super::workers::Pool;
use crate::fx::FxMap;
use crate::hdr::Tally;
use crate::random;
use crate::spec::{RunSpec, WhatIf};
use crate::stop::stops;
use crate::waist::time::{from_ns, to_ns, Time};
use crate::waist::{ClassId, LockId, TaskId};
use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, VecDeque};

/// Events at one instant after which time is said to stand still.
pub const STANDSTILL: u64 = 5_000_000;

/// Events counted over the measured window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Context switches.
    pub switches: u64,
    /// Those of tasks that would have gone on.
    pub involuntary: u64,
    /// Of tasks; new ones are not woken.
    pub wakeups: u64,
    /// Of tasks to other CPUs.
    pub migrations: u64,
    /// Those of tasks that waited in a queue; the others were on waking.
    pub pulls: u64,
    /// Of the workload, ended.
    pub operations: u64,
    /// Read and written by them.
    pub bytes: u64,
}

/// A law that did not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which.
    pub law: &'static str,
    /// How.
    pub detail: String,
}

/// The state of a machine.
pub struct State {
    /// The clock.
    pub now: Time,
    pub(super) events: EventQueue,
    /// What is processed now, among all of this instant ([`Event::key`]); 0 between stretches.
    pub(super) at: u64,
    /// Switches to idle need no event (`into_idle`).
    pub(super) quiet_idle: bool,
    /// Events processed since the start.
    pub processed: u64,
    /// How many of them at this instant, but for the first.
    at_once: u64,
    /// Until when events need not be in the queue if they are the next ones; never while 0.
    pub(super) horizon: Time,
    pub(super) topology: Topology,
    pub(super) costs: Costs,
    pub(super) kernel: Kernel,
    pub(super) lock_code: LockCode,
    pub(super) idle_ladder: IdleLadder,
    pub(super) cpus: Vec<Cpu>,
    pub(super) idle: CpuSet,
    /// CPUs with tasks in their run queues.
    pub(super) queued: CpuSet,
    /// Whether a CPU had two tasks since it was last looked (`rd->overloaded`).
    pub(super) overloaded: bool,
    /// When the averages of idle CPUs are brought up to date again.
    pub(super) next_blocked: Time,
    /// The load of the load's group on all CPUs (`tg->load_avg`).
    pub(super) group_load: u64,
    pub(super) tasks: Vec<Task>,
    pub(super) free_tasks: VecDeque<TaskId>,
    pub(super) labels: Labels,
    pub(super) paces: Paces,
    /// Of tasks that run in turns.
    pub(super) turns: Vec<Turns>,
    /// The caches, where the machine says what they are.
    pub(super) warmth: Option<Warmth>,
    pub(super) locks: Vec<Lock>,
    /// The cache lines of their words, by [`Lock::lies_in`].
    pub(super) lock_lines: Vec<Line>,
    /// Locks that hardly anybody takes, and their lines until they are made.
    pub(super) untaken: Vec<Untaken>,
    /// How many have a number: those inside others that are yet to be made too.
    pub(super) lock_numbers: u32,
    pub(super) free_locks: BTreeMap<ClassId, Vec<LockId>>,
    pub(super) lines: Vec<Line>,
    /// What results call them.
    pub(super) line_names: Vec<&'static str>,
    /// What blocks hold that CPUs change in turn.
    pub(super) contents: Vec<Contents>,
    pub(super) devices: Devices,
    /// RCU, if callbacks are queued in this run.
    pub(super) rcu: Option<Rcu>,
    /// The stacks of processes that have ended, where processes end.
    pub(super) stacks: Option<Stacks>,
    /// Of each CPU, the workers that are bound to it.
    pub(super) pools: Vec<Pool>,
    /// What tasks have submitted and hold back.
    pub(super) plugs: super::plug::Plugs,
    /// Lock classes and their statistics.
    pub classes: Vec<ClassStats>,
    /// Why everybody waits.
    pub chains: Chains,
    pub(super) sites: Vec<&'static str>,
    /// Their numbers by where the name is written, and how long it is.
    site_numbers: FxMap<(u64, u64), u16>,
    pub(super) latencies: Vec<(&'static str, Tally)>,
    pub(super) delays: Vec<(&'static str, Tally)>,
    /// What requests of devices took from submission to interrupt.
    pub(super) requests: Vec<(&'static str, Tally)>,
    /// What became of wake-ups, by the kind of who was woken.
    pub wakes: [WakeStats; KINDS],
    /// Counters of the measured window.
    pub counters: Counters,
    /// Energy of idle periods that have ended (J).
    pub idle_joules: f64,
    /// Who sets things up for the run, as long as that lasts.
    pub(super) setting_up: Option<TaskId>,
    /// When the clock of the run started.
    pub(super) origin: Time,
    pub(super) window_start: Time,
    pub(super) broken: Vec<Broken>,
    pub(super) trace: Option<Box<Trace>>,
    /// Scratch of [`State::show_in_random_order`], which must not allocate.
    pub(super) refetches: Vec<TaskId>,
    /// Why a program could not go on.
    pub(super) given_up: Option<String>,
    /// How often runs had been stopped when this one began.
    pub(super) stops: u64,
    pub(super) random: Xoshiro256PlusPlus,
    /// What is different in this run.
    pub(super) whatif: Option<WhatIf>,
    /// The nice level of the load's tasks.
    pub(super) load_nice: i32,
    /// Whether the load's tasks are threads of one process.
    pub(super) load_is_threads: bool,
    pub(super) last_mm: Mm,
    /// Factor on the CPU time of tasks with scaled holds.
    pub(super) hold_scale: f64,
    seed: u64,
    shuffle: Option<Xoshiro256PlusPlus>,
}

/// Its idle states, and for how long CPUs poll.
fn ladder(spec: &RunSpec) -> IdleLadder {
    let (machine, kernel) = (&spec.machine, &spec.kernel);
    let (tick, relax) = (from_ns(kernel.tick_ns), from_ns(machine.costs.cpu_relax));
    let polls_for = polls_for(kernel.rules.polling, &machine.idle_states, tick, relax);
    IdleLadder::new(&machine.idle_states, machine.watts_active, polls_for)
}

impl State {
    /// A machine at time 0 with all CPUs idle.
    pub fn new(spec: &RunSpec) -> Self {
        let cpus = spec.machine.cpus;
        let mut idle = CpuSet::default();
        for cpu in 0..cpus {
            idle.insert(cpu);
        }
        let mut state = Self {
            now: 0,
            events: EventQueue::new(),
            at: 0,
            quiet_idle: false,
            processed: 0,
            at_once: 0,
            horizon: 0,
            topology: Topology::new(&spec.machine),
            costs: Costs::new(&spec.machine.costs),
            kernel: Kernel::new(&spec.kernel, spec.machine.costs.instruction),
            lock_code: LockCode::new(spec),
            idle_ladder: ladder(spec),
            cpus: (0..cpus)
                .map(|_| Cpu::new(2 * from_ns(spec.kernel.constants.migration_cost), &spec.kernel))
                .collect(),
            idle,
            queued: CpuSet::default(),
            overloaded: false,
            next_blocked: 0,
            group_load: 0,
            tasks: Vec::new(),
            free_tasks: VecDeque::new(),
            labels: Labels::default(),
            paces: Paces::new(spec),
            turns: Vec::new(),
            warmth: Warmth::new(&spec.machine),
            locks: Vec::new(),
            lock_lines: Vec::new(),
            untaken: Vec::new(),
            lock_numbers: 0,
            free_locks: BTreeMap::new(),
            lines: Vec::new(),
            line_names: Vec::new(),
            contents: Vec::new(),
            devices: Devices::default(),
            rcu: None,
            stacks: None,
            pools: vec![Pool::default(); cpus as usize],
            plugs: super::plug::Plugs::default(),
            classes: Vec::new(),
            chains: Chains::new(spec.chains),
            sites: vec![""],
            site_numbers: FxMap::default(),
            latencies: Vec::new(),
            delays: Vec::new(),
            requests: Vec::new(),
            wakes: Default::default(),
            counters: Counters::default(),
            idle_joules: 0.0,
            setting_up: None,
            origin: 0,
            window_start: 0,
            broken: Vec::new(),
            trace: None,
            refetches: Vec::new(),
            given_up: None,
            stops: stops(),
            random: random::stream(spec.seed, spec.replication, "machine"),
            whatif: spec.whatif.clone(),
            load_nice: spec.workload.nice,
            load_is_threads: spec.loads().iter().all(|load| are_threads(load.workload)),
            last_mm: Mm::LOAD,
            hold_scale: spec.whatif.as_ref().map_or(1.0, WhatIf::hold_scale),
            seed: spec.seed,
            shuffle: spec.shuffle_ties.then(|| random::stream(spec.seed, spec.replication, "ties")),
        };
        (0..cpus).for_each(|cpu| state.note_idle_core(cpu));
        (0..cpus).for_each(|cpu| state.enter_idle(cpu, 0));
        state
    }

    /// Everything is set up: the clock of the run starts.
    pub(super) fn start_clock(&mut self) {
        self.setting_up = None;
        self.origin = self.now;
    }

    /// A time by the clock of the run (ns).
    pub fn on_the_clock(&self, time: Time) -> f64 {
        to_ns(time.saturating_sub(self.origin))
    }

    /// Events are going to be processed until `end`.
    pub(super) fn begin_stretch(&mut self, end: Time) {
        self.at_once = 0;
        self.quiet_idle = self.idles_quietly();
        self.horizon = if self.shuffle.is_none() { end } else { 0 };
    }

    /// The run cannot go on after the present event.
    pub(super) fn give_up(&mut self, reason: impl FnOnce() -> String) {
        self.given_up.get_or_insert_with(reason);
        self.horizon = 0;
    }

    /// Time goes by, up to what may happen at `time`.
    pub(super) fn wait_until(&mut self, time: Time) {
        self.let_pass(time);
        self.at = 0;
    }

    #[inline(always)]
    fn let_pass(&mut self, time: Time) {
        if self.chains.are_stale() && time > self.now {
            self.settle_chains();
        }
        self.now = time;
    }

    /// Whether a chance decides which of two events at one instant comes first.
    pub(super) fn takes_ties_by_chance(&self) -> bool {
        self.shuffle.is_some()
    }

    /// Goes on to an event at `time`. Returns how many came before it at that instant.
    #[inline]
    pub(super) fn advance(&mut self, time: Time) -> u64 {
        debug_assert!(time >= self.now, "time goes back from {} to {time}", self.now);
        self.processed += 1;
        if time == self.now {
            self.at_once += 1;
        } else {
            self.at_once = 0;
            self.let_pass(time);
        }
        self.at_once
    }

    /// Until when nothing else happens, so that an event before that need not be in the queue.
    #[inline(always)]
    pub(super) fn quiet_until(&self) -> Time {
        if self.at_once < STANDSTILL {
            self.horizon.min(self.events.quiet_until())
        } else {
            0
        }
    }

    /// Goes on to an event before [`State::quiet_until`].
    #[inline(always)]
    pub(super) fn go_on_to(&mut self, time: Time) {
        self.events.pass(time);
        self.advance(time);
        self.at = rank(Happening::SegmentEnd, 0);
    }

    #[inline]
    pub(super) fn push(&mut self, time: Time, what: Happening, subject: u32, generation: u32) {
        self.events.push(Event { time, what, subject, generation });
    }

    /// The next event, if it comes before `end`. With the tie shuffle on, events of one instant come in random order.
    #[inline(always)]
    pub(super) fn pop_before(&mut self, end: Time) -> Option<Key> {
        if self.shuffle.is_some() {
            return self.pop_any_before(end);
        }
        self.events.pop_before(end)
    }

    #[cold]
    fn pop_any_before(&mut self, end: Time) -> Option<Key> {
        let random = self.shuffle.as_mut()?;
        let mut ties = vec![Event::of(self.events.pop_before(Time::MAX)?)];
        while let Some(next) = self.events.pop_tie(ties[0].time) {
            ties.push(next);
        }
        let chosen = ties.swap_remove((random.next_u64() % ties.len() as u64) as usize);
        let comes = chosen.time < end;
        let waiting = (!comes).then_some(chosen);
        for other in ties.into_iter().chain(waiting) {
            self.events.push(other);
        }
        comes.then_some(chosen.key())
    }

    /// Whether who waits `since` then for an rwsem may ask for a hand-off: the clock that it looks at, `jiffies`, moves by ticks.
    pub(super) fn may_ask_for_handoff(&self, since: Time) -> bool {
        let tick = self.kernel.tick;
        self.now / tick - since / tick > self.kernel.rwsem_handoff_ticks
    }

    /// The socket of the CPU of `task`.
    pub(super) fn socket_of(&self, task: TaskId) -> u32 {
        self.topology.socket(self.tasks[task as usize].cpu)
    }

    /// Whether `task` is executing now.
    pub(super) fn on_cpu(&self, task: TaskId) -> bool {
        self.tasks[task as usize].status == Status::Running
    }

    /// The number of the place called `name` in the programs.
    pub(super) fn site(&mut self, name: &'static str) -> u16 {
        let literal = (name.as_ptr() as u64, name.len() as u64);
        match self.site_numbers.get(&literal) {
            Some(&known) => known,
            None => self.meet_site(name, literal),
        }
    }

    #[cold]
    fn meet_site(&mut self, name: &'static str, literal: (u64, u64)) -> u16 {
        let known = self.sites.iter().position(|&known| known == name);
        let number = known.unwrap_or_else(|| {
            self.sites.push(name);
            self.sites.len() - 1
        });
        self.site_numbers.insert(literal, number as u16);
        number as u16
    }

    /// The random stream called `name`.
    pub fn stream(&self, replication: u64, name: &str) -> Xoshiro256PlusPlus {
        random::stream(self.seed, replication, name)
    }
}
