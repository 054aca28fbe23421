//! The whole state of a native machine, and the little things every part needs: the clock, the queue, the random
//! streams, the counters.

use super::cfs::Cfs;
use super::chains::Chains;
use super::cpu::{Cpu, IdleLadder};
use super::device::Devices;
use super::line::{Access, Line};
use super::lock::{ClassId, Lock, LockId, LockKind};
use super::lock_code::LockCode;
use super::pace::Paces;
use super::queue::{Event, EventQueue, Happening};
use super::statistics::{ClassStats, WakeStats, KINDS};
use super::task::{Status, Task, TaskId};
use super::time::{from_ns, to_ns, Time};
use super::topology::{CpuSet, Topology};
use super::trace::Trace;
use super::warmth::Warmth;
use crate::hdr::Tally;
use crate::kernel::Rules;
use crate::random;
use crate::spec::{Preemption, RunSpec, WhatIf};
use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, VecDeque};

/// Events at one instant after which time is said to stand still.
pub const STANDSTILL: u64 = 5_000_000;

/// A data line's number.
pub type LineId = u32;

/// Costs of the machine in [`Time`].
#[derive(Clone, Debug)]
pub struct Costs {
    /// One context switch.
    pub context_switch: Time,
    /// What a wake-up costs the waker.
    pub wakeup: Time,
    /// What sending an interrupt to another CPU costs the waker besides.
    pub ipi_send: Time,
    /// From sending to the other CPU noticing.
    pub ipi_deliver: Time,
    /// One round of a polling loop.
    pub cpu_relax: Time,
}

/// The kernel's rules in [`Time`].
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Scheduler tick.
    pub tick: Time,
    /// EEVDF base slice.
    pub base_slice: Time,
    /// The times of CFS, in kernels that have it instead of EEVDF.
    pub cfs: Option<Cfs>,
    /// What this kernel does differently.
    pub rules: Rules,
    /// When kernel code gives way.
    pub preemption: Preemption,
    /// A task that ran less than this ago is not pulled to another CPU.
    pub migration_cost: Time,
    /// rwsem: how many ticks the first waiter lets pass before it asks for a hand-off.
    pub rwsem_handoff_ticks: u64,
    /// rwsem: most readers woken by one call.
    pub rwsem_reader_batch: usize,
    /// rwsem: how long a writer spins on readers: base, a reader, at most.
    pub rwsem_reader_spin: (Time, Time, Time),
    /// RCU grace period (percpu-rwsem writers).
    pub grace_period: Time,
    /// When a timer of an idle CPU rings of which nothing is known.
    pub idle_timer: Time,
    /// CNA: how long waiters of other sockets are kept out of the way.
    pub cna_threshold: Time,
    /// Lock type by role.
    pub locks: BTreeMap<String, String>,
}

/// Events counted over the measured window.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Counters {
    pub switches: u64,
    pub involuntary: u64,
    pub wakeups: u64,
    pub migrations: u64,
    pub pulls: u64,
    pub operations: u64,
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
    /// When the averages of idle CPUs are brought up to date again.
    pub(super) next_blocked: Time,
    /// The load of the load's group on all CPUs (`tg->load_avg`).
    pub(super) group_load: u64,
    pub(super) tasks: Vec<Task>,
    pub(super) free_tasks: VecDeque<TaskId>,
    pub(super) paces: Paces,
    /// The caches, where the machine says what they are.
    pub(super) warmth: Option<Warmth>,
    pub(super) locks: Vec<Lock>,
    pub(super) free_locks: BTreeMap<ClassId, Vec<LockId>>,
    pub(super) lines: Vec<Line>,
    pub(super) devices: Devices,
    /// Lock classes and their statistics.
    pub classes: Vec<ClassStats>,
    /// Why everybody waits.
    pub chains: Chains,
    pub(super) sites: Vec<&'static str>,
    pub(super) latencies: Vec<(&'static str, Tally)>,
    pub(super) delays: Vec<(&'static str, Tally)>,
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
    pub(super) trace: Option<Trace>,
    /// Scratch of [`State::show_in_random_order`], which must not allocate.
    refetches: Vec<TaskId>,
    /// Why a program could not go on.
    pub(super) given_up: Option<String>,
    pub(super) random: Xoshiro256PlusPlus,
    /// What is different in this run.
    pub(super) whatif: Option<WhatIf>,
    /// The nice level of the load's tasks.
    pub(super) load_nice: i32,
    /// Factor on the CPU time of tasks with scaled holds.
    pub(super) hold_scale: f64,
    seed: u64,
    shuffle: Option<Xoshiro256PlusPlus>,
}

impl State {
    /// A machine at time 0 with all CPUs idle.
    pub fn new(spec: &RunSpec) -> Self {
        let constants = &spec.kernel.constants;
        let cpus = spec.machine.cpus;
        let mut idle = CpuSet::default();
        (0..cpus).for_each(|cpu| idle.insert(cpu));
        let mut state = Self {
            now: 0,
            events: EventQueue::new(),
            processed: 0,
            at_once: 0,
            horizon: 0,
            topology: Topology::new(&spec.machine),
            costs: Costs {
                context_switch: from_ns(spec.machine.costs.context_switch),
                wakeup: from_ns(spec.machine.costs.wakeup),
                ipi_send: from_ns(spec.machine.costs.ipi_send),
                ipi_deliver: from_ns(spec.machine.costs.ipi_deliver),
                cpu_relax: from_ns(spec.machine.costs.cpu_relax),
            },
            kernel: Kernel {
                tick: from_ns(spec.kernel.tick_ns),
                base_slice: from_ns(spec.kernel.base_slice_ns),
                cfs: spec.kernel.cfs.map(|cfs| Cfs {
                    latency: from_ns(cfs.latency_ns),
                    min_granularity: from_ns(spec.kernel.base_slice_ns),
                    wakeup_granularity: from_ns(cfs.wakeup_granularity_ns),
                }),
                rules: spec.kernel.rules,
                preemption: spec.kernel.preemption,
                migration_cost: from_ns(constants.migration_cost),
                rwsem_handoff_ticks: (constants.rwsem_handoff_wait / spec.kernel.tick_ns).ceil() as u64,
                rwsem_reader_batch: constants.rwsem_reader_batch_max as usize,
                rwsem_reader_spin: (
                    from_ns(constants.rwsem_reader_spin_base),
                    from_ns(constants.rwsem_reader_spin_per_reader),
                    from_ns(constants.rwsem_reader_spin_cap),
                ),
                grace_period: from_ns(constants.percpu_rwsem_grace_period),
                idle_timer: from_ns(constants.idle_timer),
                cna_threshold: from_ns(constants.numa_spinlock_threshold),
                locks: spec.kernel.locks.clone(),
            },
            lock_code: LockCode::new(spec),
            idle_ladder: IdleLadder::new(&spec.machine.idle_states, spec.machine.watts_active),
            cpus: (0..cpus).map(|_| Cpu::new(2 * from_ns(constants.migration_cost))).collect(),
            idle,
            queued: CpuSet::default(),
            next_blocked: 0,
            group_load: 0,
            tasks: Vec::new(),
            free_tasks: VecDeque::new(),
            paces: Paces::new(spec),
            warmth: Warmth::new(&spec.machine),
            locks: Vec::new(),
            free_locks: BTreeMap::new(),
            lines: Vec::new(),
            devices: Devices::default(),
            classes: Vec::new(),
            chains: Chains::new(spec.chains),
            sites: vec![""],
            latencies: Vec::new(),
            delays: Vec::new(),
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
            random: random::stream(spec.seed, spec.replication, "machine"),
            whatif: spec.whatif.clone(),
            load_nice: spec.workload.nice,
            hold_scale: spec.whatif.as_ref().map_or(1.0, WhatIf::hold_scale),
            seed: spec.seed,
            shuffle: spec.shuffle_ties.then(|| random::stream(spec.seed, spec.replication, "ties")),
        };
        (0..cpus).for_each(|cpu| state.note_idle_core(cpu));
        (0..cpus).for_each(|cpu| state.enter_idle(cpu));
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
        self.horizon = if self.shuffle.is_none() { end } else { 0 };
    }

    /// The run cannot go on after the present event.
    pub(super) fn give_up(&mut self, reason: impl FnOnce() -> String) {
        self.given_up.get_or_insert_with(reason);
        self.horizon = 0;
    }

    /// Time goes by.
    #[inline]
    pub(super) fn wait_until(&mut self, time: Time) {
        if self.chains.are_stale() && time > self.now {
            self.settle_chains();
        }
        self.now = time;
    }

    /// Goes on to an event at `time`. Returns how many came before it at that instant.
    #[inline]
    pub(super) fn advance(&mut self, time: Time) -> u64 {
        debug_assert!(time >= self.now, "time goes back from {} to {time}", self.now);
        self.at_once = if time == self.now { self.at_once + 1 } else { 0 };
        self.wait_until(time);
        self.processed += 1;
        self.at_once
    }

    /// Lets `event` happen: at once if it is the next one, which is told; else it waits in the queue.
    #[inline]
    pub(super) fn happens_next(&mut self, event: Event) -> bool {
        if event.time >= self.horizon || self.at_once >= STANDSTILL {
            self.events.push(event);
            return false;
        }
        let next = self.events.push_unless_next(event);
        if next {
            self.advance(event.time);
        }
        next
    }

    #[inline]
    pub(super) fn push(&mut self, time: Time, what: Happening, subject: u32, generation: u32) {
        self.events.push(Event { time, what, subject, generation });
    }

    /// The next event. With the tie shuffle on, events of one instant come in random order.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop()?;
        if self.shuffle.is_none() {
            return Some(event);
        }
        self.pop_any(event)
    }

    #[cold]
    fn pop_any(&mut self, event: Event) -> Option<Event> {
        let random = self.shuffle.as_mut()?;
        let mut ties = vec![event];
        while let Some(next) = self.events.pop_tie(event.time) {
            ties.push(next);
        }
        let chosen = ties.swap_remove((random.next_u64() % ties.len() as u64) as usize);
        for other in ties {
            self.events.push(other);
        }
        Some(chosen)
    }

    /// Makes `task`, if it spins, look again at time `at`.
    pub(super) fn spin_check(&mut self, task: TaskId, at: Time) {
        let t = &mut self.tasks[task as usize];
        let (paid, generation) = (t.started + t.segment.irq + t.segment.debt, t.generation);
        if t.spinning {
            t.look_due = true;
            self.push(at.max(self.now).max(paid), Happening::SpinCheck, task, generation);
        }
    }

    /// `poller` sees what `writer` has just written to `lock`'s line when it looks and its refetch is served.
    pub(super) fn show(&mut self, writer: TaskId, lock: LockId, poller: TaskId) {
        self.show_nth(writer, lock, poller, 0, 1);
    }

    /// The same for the `nth` of `all` pollers, in the order in which they look.
    fn show_nth(&mut self, writer: TaskId, lock: LockId, poller: TaskId, nth: usize, all: usize) {
        if self.tasks[poller as usize].status != Status::Running {
            return; // the host has taken its CPU
        }
        let writer = &self.tasks[writer as usize];
        let written = (self.now + writer.segment.debt).max(writer.stores_until); // stores are seen in order
        let at = written + self.next_look(nth, all);
        let seen = self.refetch(at, lock, poller);
        self.spin_check(poller, seen);
    }

    /// When `poller` has the line of `lock` again, which it asks for at `at`.
    pub(super) fn refetch(&mut self, at: Time, lock: LockId, poller: TaskId) -> Time {
        let cpu = self.tasks[poller as usize].cpu;
        let line = self.line_of(lock);
        self.locks[line].line.refetch(&self.topology, cpu, at)
    }

    /// Who polls `lock` sees what `writer` has just written, in the order of coming.
    pub(super) fn show_pollers(&mut self, writer: TaskId, lock: LockId) {
        let pollers = std::mem::take(&mut self.locks[lock as usize].pollers);
        for &poller in &pollers {
            self.show(writer, lock, poller);
        }
        self.locks[lock as usize].pollers = pollers; // each leaves the list when it looks
    }

    /// The same in random order, of those whom `list` puts down.
    pub(super) fn show_in_random_order(
        &mut self,
        writer: TaskId,
        lock: LockId,
        list: impl FnOnce(&mut Self, &mut Vec<TaskId>),
    ) {
        let mut order = std::mem::take(&mut self.refetches);
        order.clear();
        list(self, &mut order);
        for i in (1..order.len()).rev() {
            let j = self.random.next_u64() % (i as u64 + 1);
            order.swap(i, j as usize); // Fisher-Yates
        }
        for (nth, &poller) in order.iter().enumerate() {
            self.show_nth(writer, lock, poller, nth, order.len());
        }
        self.refetches = order;
    }

    /// `writer` stores to the queue node that `poller` polls: its copy goes, the store is done after those before it, and the
    /// line comes back when the poller looks.
    pub(super) fn store_to_node(&mut self, writer: TaskId, poller: TaskId) {
        let transfer = self.topology.transfer(self.tasks[writer as usize].cpu, self.tasks[poller as usize].cpu);
        let writer = &mut self.tasks[writer as usize];
        writer.stores_until = writer.stores_until.max(self.now + writer.segment.debt + transfer);
        let seen = writer.stores_until + transfer + self.next_look(0, 1);
        self.spin_check(poller, seen);
    }

    /// The running `task` reads the queue node of `other`.
    pub(super) fn read_node(&mut self, task: TaskId, other: TaskId) {
        let time = self.topology.transfer(self.tasks[other as usize].cpu, self.tasks[task as usize].cpu);
        self.tasks[task as usize].segment.debt += time;
    }

    /// How long it takes `waker` to fetch the lines of `waiter` that it needs before it wakes it: its entry in the queue, the task's
    /// count of references and its `wake_q` (`wake_q_add`, under the wait lock). A wake-up as it was measured has them in it.
    pub(super) fn lines_of_waiter(&self, waker: TaskId, waiter: TaskId) -> Time {
        3 * self.topology.transfer(self.tasks[waiter as usize].cpu, self.tasks[waker as usize].cpu)
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

    /// The raw spinlock inside a sleeping lock.
    pub(super) fn inner(&self, lock: LockId) -> LockId {
        self.locks[lock as usize].wait_lock.expect("sleeping locks have an inner spinlock")
    }

    pub(super) fn inner_is_held(&self, lock: LockId) -> bool {
        self.locks[self.inner(lock) as usize].holder.is_some()
    }

    /// Whether `task` can read the line of `lock` without fetching it.
    pub(super) fn has_copy(&self, task: TaskId, lock: LockId) -> bool {
        self.locks[self.line_of(lock)].line.has_copy(self.tasks[task as usize].cpu)
    }

    /// Where the line of `lock` is: a wait lock lies in the line of the lock that it guards.
    fn line_of(&self, lock: LockId) -> usize {
        self.locks[lock as usize].lies_in.unwrap_or(lock) as usize
    }

    /// Whether the running `task` has to fetch the line of `lock`, or of the lock inside it, to take it.
    pub(super) fn fetches(&self, task: TaskId, lock: LockId) -> bool {
        let cpu = self.tasks[task as usize].cpu;
        let fetched = |lock| self.locks[self.line_of(lock)].line.is_elsewhere(cpu);
        fetched(lock) || self.locks[lock as usize].wait_lock.is_some_and(fetched)
    }

    /// The running `task` accesses the line of `lock`; the cost is added to what it owes.
    pub(super) fn touch_lock(&mut self, task: TaskId, lock: LockId, access: Access) {
        let l = &mut self.locks[lock as usize];
        let line = match l.lies_in {
            None => &mut l.line,
            Some(outer) => &mut self.locks[outer as usize].line,
        };
        self.tasks[task as usize].access(&self.topology, line, self.now, access);
    }

    /// The running `task` accesses a data line.
    pub(super) fn touch_line(&mut self, task: TaskId, line: LineId, access: Access) {
        let line = &mut self.lines[line as usize];
        self.tasks[task as usize].access(&self.topology, line, self.now, access);
    }

    /// Makes a lock class, or finds it by name.
    pub(super) fn class(&mut self, name: &str, role: &str, kind: LockKind) -> ClassId {
        if let Some(at) = self.classes.iter().position(|c| c.name == name) {
            return at as ClassId;
        }
        self.classes.push(ClassStats::new(name, role, kind).recording_holds(self.chains.on()));
        (self.classes.len() - 1) as ClassId
    }

    /// Makes a lock of a class, with the locks inside it.
    pub(super) fn new_lock(&mut self, class: ClassId) -> LockId {
        let lock = self.new_whole_lock(class);
        self.apply_what_if(class, lock);
        lock
    }

    /// The same whatever is asked by a counterfactual.
    pub(super) fn new_whole_lock(&mut self, class: ClassId) -> LockId {
        self.classes[class as usize].instances += 1;
        let kind = self.classes[class as usize].kind;
        let wait_lock = kind.inner().map(|(name, kind)| self.new_inner_lock(class, name, kind));
        let mut lock = Lock::new(kind, class, wait_lock);
        for queue in lock.body.wait_queues() {
            let queued = LockKind::Spin(super::locks::spinlock::Policy::Queued);
            queue.lock = Some(self.new_inner_lock(class, "wait_queue", queued));
        }
        self.locks.push(lock);
        let number = (self.locks.len() - 1) as LockId;
        if let Some(inner) = wait_lock.filter(|_| kind.shares_line()) {
            self.locks[inner as usize].lies_in = Some(number);
        }
        number
    }

    /// Makes a lock that is part of one of class `outer`.
    fn new_inner_lock(&mut self, outer: ClassId, name: &str, kind: LockKind) -> LockId {
        let name = format!("{}.{name}", self.classes[outer as usize].name);
        let class = self.class(&name, "wait_lock", kind);
        self.new_lock(class)
    }

    /// Whether `task` is executing now.
    pub(super) fn on_cpu(&self, task: TaskId) -> bool {
        self.tasks[task as usize].status == Status::Running
    }

    /// The number of the place called `name` in the programs.
    pub(super) fn site(&mut self, name: &'static str) -> u16 {
        let same = self.sites.iter().position(|&known| std::ptr::eq(known, name));
        let index = same.or_else(|| self.sites.iter().position(|&known| known == name)).unwrap_or_else(|| {
            self.sites.push(name);
            self.sites.len() - 1
        });
        index as u16
    }

    /// The random stream called `name`.
    pub fn stream(&self, replication: u64, name: &str) -> Xoshiro256PlusPlus {
        random::stream(self.seed, replication, name)
    }
}
