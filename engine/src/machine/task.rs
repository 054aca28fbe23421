//! One task, as the machine sees it: its place in the scheduler and what it is doing. What it *means* to do is its
//! program, a future that the executor holds.

use super::caches::line::Line;
use super::caches::warmth::Missing;
use super::chains::Reason;
use super::cpus::topology::Topology;
use super::labels::Label;
use super::lock::waits::Waits;
use super::locks::Inside;
use super::sched::address_space::Mm;
use super::sched::entity::{Entity, NICE_0};
use super::sched::load::Average;
use super::sched::resched::Waker;
use super::sched::run_queue::Level;
use crate::waist::time::Time;
use crate::waist::{Access, Account, CpuId, LockId, Side, TaskId};

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// On a CPU.
    Running,
    /// Wants a CPU: in a run queue, or on its way out of an idle CPU.
    Runnable,
    /// Waits for a wake-up.
    Sleeping,
    /// Its program has ended.
    Dead,
}

/// What sort of task it is, for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskKind {
    /// Of the workload, with its children.
    Load,
    /// A kernel thread that is bound to a CPU.
    Bound,
    /// A kernel thread that runs anywhere.
    Kernel,
}

impl TaskKind {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Load, Self::Bound, Self::Kernel];

    /// Its name in results and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Bound => "bound",
            Self::Kernel => "kernel",
        }
    }
}

/// How a task goes on when it gets a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Its program takes the next step.
    Program,
    /// It has part of a segment left to run.
    Segment,
}

/// A stretch of CPU time in the order in which it is used up: stolen by interrupts, owed for line transfers and
/// wake-ups (`debt`), and the program's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// Time stolen by interrupts.
    pub irq: Time,
    /// Time owed for accesses that changed state at once.
    pub debt: Time,
    /// The program's own time.
    pub own: Time,
}

impl Segment {
    /// What is left altogether.
    pub fn total(&self) -> Time {
        self.irq + self.debt + self.own
    }

    /// Uses up `elapsed`; returns how much of it was (irq, debt, own).
    pub fn consume(&mut self, elapsed: Time) -> (Time, Time, Time) {
        let irq = elapsed.min(self.irq);
        let debt = (elapsed - irq).min(self.debt);
        let own = elapsed - irq - debt;
        self.irq -= irq;
        self.debt -= debt;
        self.own = self.own.saturating_sub(own);
        (irq, debt, own)
    }
}

/// Time spent wanting to run and sleeping, up to `since`; the rest it was on a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateTimes {
    /// In a run queue or waiting for its CPU to leave idle.
    pub runnable: Time,
    /// The part of it for which its CPU was idle or on its way out of that.
    pub cpu_idle: Time,
    /// Waiting.
    pub sleeping: Time,
    /// Up to when the times are complete.
    pub since: Time,
}

/// A wait for a lock, from asking to having.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Which.
    pub lock: LockId,
    /// On which side.
    pub side: Side,
    /// Somebody had the lock when the task came.
    pub held: bool,
    /// When it came.
    pub since: Time,
}

/// What others have to do with a task; most tasks have nobody.
#[derive(Debug, Default)]
pub struct Others {
    /// Tasks that spin as long as this one stays on its CPU.
    pub watchers: Vec<TaskId>,
    /// The locks it has that others wait for, where chains are recorded.
    pub blocks: Vec<LockId>,
    /// What it does, as a worker of a pool.
    pub work: Option<LockId>,
}

/// One task.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Task {
    // What most events need, in the first cache lines.
    /// Its current or next stretch of CPU time.
    pub segment: Segment,
    /// When the running segment started.
    pub started: Time,
    /// When all its stores are done.
    pub stores_until: Time,
    /// When the line is there for which it last queued behind others: those behind it take the line away at once.
    pub queued_until: Time,
    /// Outdates events made for an earlier segment, spin or sleep.
    pub generation: u32,
    /// Where it runs, is queued, or ran last.
    pub cpu: CpuId,
    /// Depth of preempt-disabled sections.
    pub preempt_off: u32,
    /// The segment's own time is what it takes while so many siblings execute too.
    pub beside: u32,
    /// Where it is in its life.
    pub status: Status,
    /// How it goes on.
    pub resume: Resume,
    /// Where the segment's own time is booked.
    pub account: Account,
    /// It is user time with kernel time in turns ([`super::cpus::turns`]).
    pub in_turns: bool,
    /// It stays on its CPU and waits for a look at a lock.
    pub spinning: bool,
    /// A store that it spins on was made and is on its way to it.
    pub look_due: bool,
    /// It polls a lock that it may give up when the CPU is wanted.
    pub spins_until_resched: bool,
    /// A wake-up came before the sleep.
    pub woken: bool,
    /// It sleeps in [`crate::waist::Machine::park`].
    pub parked: bool,
    /// It is one of its CPU's pool, and sleeps until there is work for it.
    pub resting: bool,
    /// Where it sleeps now, it waits for I/O.
    pub in_iowait: bool,
    /// Its plug holds something back.
    pub plugged: bool,
    /// Why it does not run, if it does not.
    pub reason: Reason,
    /// What sort of task it is.
    pub kind: TaskKind,
    /// Its address space (`mm`).
    pub mm: Mm,
    /// How many locks it holds exclusively whose holders' CPU time is scaled.
    pub scaled_holds: u32,
    /// What it is doing, for the statistics of lock waits by site.
    pub site: u16,
    /// The function in which it sleeps next (`wchan`), or 0.
    pub function: u16,
    /// What the machine takes it through before its program goes on.
    pub inside: Inside,
    /// What others have to do with it.
    others: Option<Box<Others>>,
    /// Its waits for locks, each inside the one before.
    pub waits: Waits,
    /// Time by state.
    pub times: StateTimes,
    /// For how long its CPU had idled when its state last changed.
    idle_clock: Time,
    /// When its current operation began.
    pub operation_began: Time,
    /// Operations completed in the measured window.
    pub operations: u64,
    /// When it was woken, as long as it has not run since; [`Time::MAX`] else.
    pub woken_at: Time,
    // What sleeps and wake-ups need.
    /// Scheduler state.
    pub entity: Entity,
    /// The CPU before the present one (`recent_used_cpu`).
    pub recent_used_cpu: CpuId,
    /// The task it woke last.
    pub last_wakee: Option<TaskId>,
    /// How often it woke another one than before, lately.
    pub wakee_flips: u32,
    /// Since when.
    pub flips_since: Time,
    /// The only CPU it may use, if it is bound.
    pub pinned: Option<CpuId>,
    /// The lock for which somebody has to wake it.
    pub sleeps_for: Option<LockId>,
    /// It was kicked by another program while it was not parked.
    pub kicked: bool,
    /// It is a worker of its CPU's pool.
    pub is_worker: bool,
    /// It counts among those of its pool that are at work.
    pub at_work: bool,
    /// The run queue it belongs to.
    pub level: Level,
    /// Whether its CPU was busy when it was woken.
    pub woken_busy: bool,
    /// Whether the run may end while it sleeps.
    pub background: bool,
    /// What it is called.
    pub label: Label,
    /// What it was doing before an exception.
    pub interrupted: u16,
    /// When its timer rings that ends a park.
    pub timer: Option<Time>,
    /// Who woke it while its CPU switched to another task, with which it has not been compared yet.
    pub arrived: Option<Waker>,
    /// When it last left a CPU (for cache-hot migration limits).
    pub last_ran: Time,
    /// What the call that it is in misses in the caches; nothing is known outside calls.
    pub missing: Option<Missing>,
}

/// Programs need the rest of the 700 bytes that a sleeping task may take.
const _: () = assert!(std::mem::size_of::<Task>() <= 512);

impl Task {
    /// The lock whose word it waits for now.
    pub fn waits_for(&self) -> Option<LockId> {
        self.waits.last().map(|wait| wait.lock)
    }

    /// A task that has not run yet.
    pub fn new(cpu: CpuId, pinned: Option<CpuId>, kind: TaskKind, now: Time) -> Self {
        Self {
            status: Status::Sleeping,
            cpu,
            recent_used_cpu: cpu,
            last_wakee: None,
            wakee_flips: 0,
            flips_since: now,
            pinned,
            resume: Resume::Program,
            segment: Segment::default(),
            beside: 0,
            account: Account::System,
            in_turns: false,
            started: 0,
            generation: 0,
            woken: false,
            kicked: false,
            timer: None,
            parked: false,
            resting: false,
            is_worker: false,
            at_work: false,
            spinning: false,
            look_due: false,
            sleeps_for: None,
            preempt_off: 0,
            in_iowait: false,
            plugged: false,
            spins_until_resched: false,
            others: None,
            stores_until: 0,
            queued_until: 0,
            waits: Waits::default(),
            inside: Inside::default(),
            reason: Reason::WakeUp,
            function: 0,
            scaled_holds: 0,
            level: Level::Root,
            entity: Entity::new(NICE_0, Average::default()),
            arrived: None,
            times: StateTimes { since: now, ..StateTimes::default() },
            idle_clock: 0,
            woken_at: Time::MAX,
            woken_busy: false,
            last_ran: 0,
            site: 0,
            interrupted: 0,
            missing: None,
            background: false,
            label: 0,
            mm: Mm::KERNEL,
            kind,
            operation_began: 0,
            operations: 0,
        }
    }

    /// Tasks that spin as long as this one stays on its CPU.
    #[inline]
    pub fn watchers(&self) -> &[TaskId] {
        self.others.as_ref().map_or(&[], |others| &others.watchers)
    }

    /// The locks it has that others wait for, where chains are recorded.
    #[inline]
    pub fn blocks(&self) -> &[LockId] {
        self.others.as_ref().map_or(&[], |others| &others.blocks)
    }

    /// Both, to be changed.
    pub fn others(&mut self) -> &mut Others {
        self.others.get_or_insert_default()
    }

    /// It has the number of a task that has ended, whose locks are its own now: nobody else could release them.
    pub fn inherit(&mut self, before: &mut Self) {
        self.generation = before.generation.wrapping_add(1);
        self.others = before.others.take();
        if let Some(others) = &mut self.others {
            others.watchers.clear();
        }
    }

    /// Accesses `line` after what it owes; what it waits for is added to that. A store waits in the store buffer, also that of
    /// a load and a store; an atomic access waits for all of them (x86).
    #[inline(always)]
    pub fn access(&mut self, topology: &Topology, line: &mut Line, now: Time, access: Access) {
        if line.hits(self.cpu, access) {
            self.access_own(topology, now, access);
        } else {
            self.access_elsewhere(topology, line, now, access);
        }
    }

    /// The same of a line that is likely to be here: the rest is out of the way.
    #[inline(always)]
    pub fn access_likely_own(&mut self, topology: &Topology, line: &mut Line, now: Time, access: Access) {
        if line.hits(self.cpu, access) {
            self.access_own(topology, now, access);
        } else {
            self.access_by_call(topology, line, now, access);
        }
    }

    #[inline(never)]
    fn access_by_call(&mut self, topology: &Topology, line: &mut Line, now: Time, access: Access) {
        self.access_elsewhere(topology, line, now, access);
    }

    /// The same of a line of which it has a copy that serves: most are.
    #[inline(always)]
    fn access_own(&mut self, topology: &Topology, now: Time, access: Access) {
        let after = now + self.segment.debt;
        match access {
            Access::Store | Access::Write => {
                self.stores_until = self.stores_until.max(after + topology.hit);
                self.segment.debt += topology.hit;
            }
            Access::Read => self.segment.debt += topology.hit,
            Access::Atomic => self.segment.debt = after.max(self.stores_until) + topology.atomic - now,
        }
    }

    /// The same of one that it has to fetch.
    #[inline(always)]
    fn access_elsewhere(&mut self, topology: &Topology, line: &mut Line, now: Time, access: Access) {
        let mut at = now + self.segment.debt;
        let buffered = match access {
            Access::Store => true,
            Access::Write if line.has_copy(self.cpu) => true,
            Access::Write => return self.load_and_store(topology, line, now),
            Access::Read => false,
            Access::Atomic => {
                at = at.max(self.stores_until);
                false
            }
        };
        let queues = line.is_moving(at);
        let done = at + line.fetch(topology, self.cpu, at, access);
        if buffered {
            self.stores_until = self.stores_until.max(done);
            self.segment.debt += topology.hit;
            return;
        }
        self.segment.debt = done - now;
        if done > at + topology.without_transfer(access) {
            line.waited += done - at;
            if queues {
                self.queued_until = done;
            }
        }
    }

    /// Loads from a line of which it has no copy, and stores to it: the load brings a copy, and the store takes the others away.
    #[inline(never)]
    fn load_and_store(&mut self, topology: &Topology, line: &mut Line, now: Time) {
        self.access(topology, line, now, Access::Read);
        let loaded = now + self.segment.debt;
        let stored = loaded + line.access(topology, self.cpu, loaded, Access::Store);
        self.stores_until = self.stores_until.max(stored);
    }

    /// What it does next is atomic, as taking a lock: that begins when all its stores are done, which it owes until then.
    #[inline(always)]
    pub fn drain(&mut self, now: Time) {
        self.segment.debt = self.segment.debt.max(self.stores_until.saturating_sub(now));
    }

    /// Books the time since the last change of state, then changes it; its CPU has idled for `idle_clock`.
    #[inline]
    pub fn become_status(&mut self, now: Time, idle_clock: Time, status: Status) {
        self.times = self.times_at(now, idle_clock);
        self.idle_clock = idle_clock;
        self.status = status;
    }

    /// It leaves its CPU, which has idled for `idle_clock`, and does not run for this `reason`.
    #[inline]
    pub fn leave_cpu(&mut self, now: Time, idle_clock: Time, status: Status, reason: Reason) {
        self.become_status(now, idle_clock, status);
        self.reason = reason;
        self.generation = self.generation.wrapping_add(1);
        self.last_ran = now;
    }

    /// It is awake and in the queue of a CPU that has idled for `idle_clock`.
    #[inline]
    pub fn become_runnable(&mut self, now: Time, idle_clock: Time) {
        self.become_status(now, idle_clock, Status::Runnable);
        self.reason = Reason::Woken;
    }

    /// It comes to run on its CPU, which has idled for `idle_clock`.
    #[inline]
    pub fn come_to_run(&mut self, now: Time, idle_clock: Time, owed_irq: Time) {
        self.segment.irq += owed_irq;
        self.become_status(now, idle_clock, Status::Running);
    }

    /// Notes that it is moved, while it waits for a CPU, to one that has idled for `idle_clock`.
    pub fn change_queue(&mut self, idle_clock: Time) {
        self.idle_clock = idle_clock;
    }

    /// The time by state as it stands at `now`, when its CPU has idled for `idle_clock`.
    #[inline]
    pub fn times_at(&self, now: Time, idle_clock: Time) -> StateTimes {
        let mut times = self.times;
        let span = now - times.since;
        match self.status {
            Status::Running => {}
            Status::Runnable => {
                times.runnable += span;
                times.cpu_idle += idle_clock - self.idle_clock;
            }
            Status::Sleeping | Status::Dead => times.sleeping += span,
        }
        times.since = now;
        times
    }
}
