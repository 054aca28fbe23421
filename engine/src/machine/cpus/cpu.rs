//! One CPU: what it does now, what it has done (exact time accounts), and how deeply it idles.

use super::governor::Governed;
use super::topology::DOMAINS;
use crate::machine::sched::address_space::Mm;
use crate::machine::sched::entity::{Entity, NICE_0};
use crate::machine::sched::group::Contribution;
use crate::machine::sched::load::Average;
use crate::machine::sched::newidle::{LookCost, Success};
use crate::machine::sched::run_queue::RunQueue;
use crate::spec::{IdleState, KernelSpec};
use crate::waist::time::{from_ns, Time};
use crate::waist::{Account, CpuId, TaskId};

/// Number of [`Account`]s.
pub const ACCOUNTS: usize = 6;

/// What a CPU is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing to run since the given time.
    Idle(Time),
    /// Leaving its idle state since the given time; the woken task is in its run queue.
    IdleExit(Time),
    /// Switching to a task, or to idle.
    Switching(Option<TaskId>),
    /// Running its current task.
    Running,
}

/// What a CPU does between two tasks besides switching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// It is about to idle and looks into a domain for a task to take; it has spent so much time on smaller ones.
    Look(usize, Time),
    /// Its stopper thread moves a task to another CPU.
    Move(TaskId, CpuId),
}

/// One CPU.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Cpu {
    // What each segment needs, in one cache line.
    /// Accounted time by [`Account`], in the measured window.
    pub accounts: [Time; ACCOUNTS],
    /// Until when the accounts are complete.
    pub accounted: Time,
    /// It uses the execution units that it shares with its siblings; kept up to date only where there are any.
    pub executing: bool,
    /// The scheduler wants the current task to yield.
    pub need_resched: bool,
    /// Somebody was woken here while the CPU switched to a task.
    pub arrived: bool,
    /// How many other CPUs of its core do.
    pub beside: u32,
    // What each switch needs.
    /// What the CPU is doing.
    pub phase: Phase,
    /// The task that runs here.
    pub current: Option<TaskId>,
    /// Outdates events made for an earlier switch or idle exit, and counts these.
    pub generation: u32,
    /// The task that went to sleep last, until the CPU has switched from it (`on_cpu` of that task).
    pub leaving: Option<TaskId>,
    /// When it has; later if it is about to idle and looks into more than one domain.
    pub leaves_at: Time,
    /// Whose page tables it uses (`active_mm`).
    pub active_mm: Mm,
    /// Time that wake-ups that were left to this CPU, and a task that was taken, take before the next switch.
    pub before_switch: Time,
    /// When it will have switched to idle, or has, if that is no event (`into_idle`); else 0.
    pub idles_at: Time,
    /// When it ticks next, if it does.
    pub next_tick: Option<Time>,
    /// Runnable tasks other than the current one, in order of arrival, of both run queues.
    pub queue: Vec<TaskId>,
    /// When the current task's virtual run time was last brought up to date.
    pub exec_start: Time,
    /// The group's part of the sum over all CPUs.
    pub contribution: Contribution,
    /// When it had nothing to run last, and until when.
    pub idles_since: Time,
    /// See `idles_since`.
    pub idled_until: Time,
    /// Time that it idled before that window.
    idled: Time,
    /// When it last was about to idle, if nobody has woken here since (`rq->idle_stamp`).
    pub idle_stamp: Option<Time>,
    /// How long it idles on average (`rq->avg_idle`).
    pub average_idle: Time,
    /// Time of interrupts that came while nobody ran; who runs next pays it.
    pub owed_irq: Time,
    /// How far that clock is behind while it looks.
    pub behind: Time,
    /// The run queues, by [`crate::machine::sched::run_queue::Level`].
    pub run_queues: [RunQueue; 2],
    /// The load's group on this CPU, a member of the root's run queue while it has tasks.
    pub group: Entity,
    // The rest.
    /// How many sleepers have not left their run queue yet.
    pub delayed: u32,
    /// The group's task has gone to sleep and left others (`cfs_rq->next`).
    pub group_is_next: bool,
    /// An interrupt that tells it so is under way, and it has not looked for another task since that was sent.
    pub resched_sent: bool,
    /// Counts these interrupts.
    pub resched: u32,
    /// What the governor of idle states knows of it.
    pub governed: Governed,
    /// How many tasks sleep here until a device has done a request (`rq->nr_iowait`).
    pub io_waiters: u32,
    /// How many did when it had nothing to run last, where its governor minds.
    pub idles_for_io: u32,
    /// When the soonest of its timers rings that were armed, if that is to come.
    pub next_timer: Time,
    /// What it does while it is between tasks, other than to switch.
    pub errand: Option<Errand>,
    /// Until when it has softirqs; and whether it is for them that it does not idle.
    pub softirq_until: Time,
    /// See `softirq_until`.
    pub in_softirq: bool,
    /// A wake-up has read the clock of the run queues and told the CPU to look for another task: it does so without reading that
    /// again (`RQCF_REQ_SKIP`).
    pub skips_clock: bool,
    /// When the interrupt arrives that was sent while the CPU switched to idle.
    pub interrupted: Time,
    /// By domain, how often it has found a task when it was about to idle.
    pub newidle: [Success; DOMAINS],
    /// By domain, how long a look takes at most.
    pub look_cost: [LookCost; DOMAINS],
    /// By domain, how many of its looks while idle found somebody to take from, and nobody to take (`nr_balance_failed`).
    pub failed_looks: [u32; DOMAINS],
    /// When it may look again for a task to take while it idles (`rq->next_balance`).
    pub next_balance: Time,
    /// The same by domain, of those beyond its last-level cache.
    pub next_afar: [Time; DOMAINS],
    /// How long a search for an idle CPU takes on average (`sd->avg_scan_cost`).
    pub scan_cost: Time,
    /// Of the first CPU under a cache: how many CPUs a wake-up there looks at (`nr_idle_scan`), and until when.
    pub scans: u32,
    /// See `scans`.
    pub scan_until: Time,
    /// Of the first CPU under a cache: whether a core there is said to idle altogether (`has_idle_cores`).
    pub idle_cores: bool,
}

impl Cpu {
    /// An idle CPU at time 0, which counts on idling for so long, and the governor of its idle states.
    pub fn new(average_idle: Time, kernel: &KernelSpec) -> Self {
        Self {
            current: None,
            phase: Phase::Idle(0),
            queue: Vec::new(),
            delayed: 0,
            run_queues: Default::default(),
            group: Entity::new(NICE_0, Average::default()),
            contribution: Contribution::default(),
            group_is_next: false,
            need_resched: false,
            resched_sent: false,
            resched: 0,
            arrived: false,
            governed: Governed::new(kernel),
            io_waiters: 0,
            idles_for_io: 0,
            next_timer: 0,
            before_switch: 0,
            errand: None,
            generation: 0,
            idles_at: 0,
            leaving: None,
            leaves_at: 0,
            active_mm: Mm::KERNEL,
            softirq_until: 0,
            in_softirq: false,
            next_tick: None,
            exec_start: 0,
            skips_clock: false,
            behind: 0,
            idles_since: 0,
            idled_until: 0,
            owed_irq: 0,
            interrupted: 0,
            idle_stamp: None,
            average_idle,
            newidle: Default::default(),
            look_cost: Default::default(),
            failed_looks: [0; DOMAINS],
            next_balance: 0,
            next_afar: [0; DOMAINS],
            scan_cost: 0,
            scans: 0,
            scan_until: 0,
            idle_cores: false,
            accounts: [0; ACCOUNTS],
            idled: 0,
            accounted: 0,
            executing: false,
            beside: 0,
        }
    }

    /// The task that has this CPU, from the moment at which it was picked.
    pub fn executing_task(&self) -> Option<TaskId> {
        match self.phase {
            Phase::Switching(next) => next,
            _ => self.current,
        }
    }

    /// What the time is booked as in which it has no task.
    pub fn between_tasks(&self) -> Account {
        if self.in_softirq {
            Account::Irq
        } else {
            Account::Switch
        }
    }

    /// Whether it is in the tick's interrupt, to which timers and softirqs belong.
    pub fn in_tick(&self, now: Time) -> bool {
        self.next_tick.is_some_and(|tick| tick <= now) || self.softirq_until > now
    }

    /// Whether it is about to idle and looks for a task to take.
    pub fn looks(&self) -> bool {
        matches!(self.errand, Some(Errand::Look(..)))
    }

    /// Number of tasks that want this CPU.
    pub fn load(&self) -> usize {
        self.queue.len() + usize::from(self.executing_task().is_some())
    }

    /// Starts the measured window: all accounts begin anew.
    pub fn reset_accounts(&mut self) {
        self.idled += self.accounts[Account::Idle as usize];
        self.accounts = [0; ACCOUNTS];
    }

    /// For how long it has idled up to `now`, the ways out of idle states included.
    pub fn idle_clock(&self, now: Time) -> Time {
        let open = match self.phase {
            Phase::Idle(_) | Phase::IdleExit(_) => now - self.accounted,
            Phase::Switching(_) | Phase::Running => 0,
        };
        self.idled + self.accounts[Account::Idle as usize] + open
    }

    /// It looks for another task: what asked it to is dealt with.
    #[inline]
    pub fn forget_resched(&mut self) {
        self.need_resched = false;
        self.resched_sent = false;
        self.skips_clock = false;
    }

    /// From now on it switches to a task, or to idle.
    #[inline]
    pub fn switches_to(&mut self, next: Option<TaskId>) {
        self.phase = Phase::Switching(next);
        self.generation = self.generation.wrapping_add(1);
    }

    /// Books a stretch of a segment that ends `now`: what interrupts took, what was owed, and the program's `own` time.
    #[inline]
    pub fn book(&mut self, now: Time, irq: Time, debt: Time, account: Account, own: Time) {
        self.accounts[Account::Irq as usize] += irq;
        self.accounts[Account::System as usize] += debt;
        self.accounts[account as usize] += own;
        self.accounted = now;
    }

    /// So much `time` that was just booked belongs to another account.
    pub fn rebook(&mut self, time: Time, from: Account, to: Account) {
        self.accounts[from as usize] -= time;
        self.accounts[to as usize] += time;
    }

    /// Books the time since the last booking.
    pub fn account(&mut self, now: Time, account: Account) {
        self.accounts[account as usize] += now - self.accounted;
        self.accounted = now;
    }
}

/// The idle states of a machine and what they cost. The first is to poll (`poll_idle`), which only who waits for I/O does here.
#[derive(Clone, Debug)]
pub struct IdleLadder {
    steps: Vec<Step>,
    watts_active: f64,
    /// For how long a CPU polls before its governor chooses again.
    polls_for: Time,
}

/// One of them.
#[derive(Clone, Debug)]
struct Step {
    residency: Time,
    /// The same as its driver declares it, also for the shallowest.
    target: Time,
    core_exit: Time,
    exit: Time,
    watts: f64,
    /// Energy (joules) of the stays in those before it, where nobody waits for I/O.
    before: f64,
}

impl Step {
    fn new(state: &IdleState) -> Self {
        Self {
            residency: from_ns(state.residency_ns),
            target: from_ns(state.residency_ns),
            core_exit: from_ns(state.core_exit_ns.unwrap_or(state.exit_ns)),
            exit: from_ns(state.exit_ns),
            watts: state.watts,
            before: 0.0,
        }
    }

    /// A state that takes no time to leave.
    fn at_once(watts: f64) -> Self {
        Self { residency: 0, target: 0, core_exit: 0, exit: 0, watts, before: 0.0 }
    }

    /// Energy (joules) of a stay of `time` in it.
    #[inline]
    fn stay_joules(&self, time: Time) -> f64 {
        self.watts * time as f64 * 1e-12
    }

    /// How long a CPU has to idle for this state, if `waiters` wait for I/O there (`performance_multiplier` of `menu.c` up to 6.12).
    fn pays_from(&self, waiters: u32) -> Time {
        let patience = if waiters == 0 { 0 } else { 1 + 10 * Time::from(waiters) };
        self.residency.max(patience * self.exit)
    }
}

impl IdleLadder {
    /// From a machine profile's states, shallowest first, where a CPU polls for so long at most. A machine without any wakes at once
    /// and saves nothing.
    pub fn new(states: &[IdleState], watts_active: f64, polls_for: Time) -> Self {
        let mut steps = vec![Step::at_once(watts_active)];
        steps.extend(states.iter().map(Step::new));
        if states.is_empty() {
            steps.push(Step::at_once(watts_active));
        }
        steps[1].residency = 0; // an idle CPU is at least in the shallowest state
        for at in 1..steps.len() {
            let (begins, last) = (steps[at].residency, &steps[at - 1]);
            steps[at].before = last.before + last.stay_joules(begins.saturating_sub(last.residency));
        }
        Self { steps, watts_active, polls_for }
    }

    /// Whether there is more than one.
    pub fn has_choice(&self) -> bool {
        self.steps.len() > 2
    }

    /// How many states there are, polling included.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The residency that a state's driver declares.
    pub fn target(&self, state: usize) -> Time {
        self.steps[state].target
    }

    /// Time to leave `state` where another CPU keeps the package awake.
    pub fn core_exit(&self, state: usize) -> Time {
        self.steps[state].core_exit
    }

    /// The deepest state that pays for a stay of `idle` where `waiters` wait for I/O.
    pub fn deepest(&self, idle: Time, waiters: u32) -> usize {
        self.steps.iter().take_while(|step| step.pays_from(waiters) <= idle).count() - 1
    }

    /// When a CPU that polls since `since` gives that up.
    pub fn polls_until(&self, since: Time) -> Time {
        since.saturating_add(self.polls_for)
    }

    /// From when on a CPU is in a state, where nobody guesses and `waiters` wait for I/O. Who has polled in vain idles in the
    /// shallowest state, though it does not pay: the kernel takes it that the guess was wrong (`poll_time_limit` in `menu_update`).
    fn begins(&self, state: usize, waiters: u32) -> Time {
        let pays = self.steps[state].pays_from(waiters);
        if state == 1 {
            pays.min(self.polls_for)
        } else {
            pays
        }
    }

    /// The state that a CPU is in after `idle`, where nobody guesses and `waiters` wait for I/O.
    pub fn after(&self, idle: Time, waiters: u32) -> usize {
        (1..self.steps.len()).take_while(|&state| self.begins(state, waiters) <= idle).count()
    }

    /// Time to leave `state` as its driver declares it: the package sleeps, too.
    pub fn declared_exit(&self, state: usize) -> Time {
        self.steps[state].exit
    }

    /// The same, unless `package_sleeps` says no: then only the core wakes.
    pub fn exit_where(&self, state: usize, package_sleeps: impl FnOnce() -> bool) -> Time {
        let state = &self.steps[state];
        if state.core_exit < state.exit && !package_sleeps() {
            state.core_exit
        } else {
            state.exit
        }
    }

    /// Energy (joules) of leaving an idle state for `time`: the CPU is powered and does nothing yet.
    pub fn exit_joules(&self, time: Time) -> f64 {
        self.watts_active * time as f64 * 1e-12
    }

    /// Energy (joules) of a stay of `time` in `state`.
    pub fn stay_joules(&self, state: usize, time: Time) -> f64 {
        self.steps[state].stay_joules(time)
    }

    /// Of an idle period that lasts from `from` to `to` after its beginning, where `waiters` wait for I/O: the state that it ends in
    /// ([`IdleLadder::after`]) and its energy (joules). States are in the order of what they pay for.
    #[inline]
    pub fn stay(&self, from: Time, to: Time, waiters: u32) -> (usize, f64) {
        if from > 0 || waiters > 0 {
            return (self.after(to, waiters), self.joules(from, to, waiters));
        }
        let mut state = 0;
        while self.steps.get(state + 1).is_some_and(|next| next.residency <= to) {
            state += 1;
        }
        let step = &self.steps[state];
        (state, step.before + step.stay_joules(to - step.residency))
    }

    #[cold]
    fn joules(&self, from: Time, to: Time, waiters: u32) -> f64 {
        let begins = |state: usize| match state {
            state if state < self.steps.len() => self.begins(state, waiters),
            _ => Time::MAX,
        };
        let stay =
            |(at, step): (usize, &Step)| step.stay_joules(to.min(begins(at + 1)).saturating_sub(from.max(begins(at))));
        self.steps.iter().enumerate().map(stay).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_ends_in_its_deepest_state_and_takes_the_energy_of_those_on_the_way() {
        let state = |exit_ns, residency_ns, watts| IdleState {
            name: String::new(),
            exit_ns,
            core_exit_ns: None,
            residency_ns,
            watts,
        };
        let states = [state(1e3, 1e3, 1.7), state(4e3, 4e3, 0.9), state(17e4, 6e5, 0.3)];
        let ladder = IdleLadder::new(&states, 3.1, from_ns(1e4));
        for to in (0..2_000).map(|step| from_ns(f64::from(step * step) / 3.0)) {
            for (from, waiters) in [(0, 0), (to / 3, 0), (0, 2)] {
                let stay = (ladder.after(to, waiters), ladder.joules(from, to, waiters));
                assert_eq!(ladder.stay(from, to, waiters), stay);
            }
        }
    }
}
