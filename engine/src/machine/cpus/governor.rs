//! Which idle state a CPU enters, where a governor of the kernel chooses it (`drivers/cpuidle/governors`): the parts that all have.

use super::cpu::{IdleLadder, Phase};
use super::haltpoll::Haltpoll;
use super::menu::Menu;
use super::polling::until_look;
use super::teo::Teo;
use crate::kernel::idle::Governor;
use crate::machine::state::State;
use crate::spec::KernelSpec;
use crate::waist::time::Time;
use crate::waist::CpuId;

/// Of an idle CPU: the state that it is in, and what was known when that was chosen.
#[derive(Clone, Debug, Default)]
pub struct Stay {
    /// The state.
    pub state: usize,
    /// Since when it is in it.
    pub since: Time,
    /// How many tasks wait for I/O there.
    pub waiters: u32,
    /// When the next timer is known to ring.
    rings: Time,
    /// The tick goes on.
    ticks: bool,
}

impl Stay {
    /// How long it was to the next timer.
    pub fn to_timer(&self) -> Time {
        self.rings.saturating_sub(self.since)
    }
}

/// What a governor chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The state.
    pub state: usize,
    /// The tick goes on, and the CPU chooses anew in it.
    pub ticks: bool,
}

/// How a stay in a state has ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// When.
    pub at: Time,
    /// There was a tick.
    pub ticked: bool,
    /// The CPU has polled for as long as it may (`poll_time_limit`).
    pub polled_in_vain: bool,
}

#[derive(Clone, Debug)]
enum Guess {
    Menu(Menu),
    Teo(Teo),
    Haltpoll(Haltpoll),
}

/// What the governor knows of a CPU.
#[derive(Clone, Debug)]
pub struct Governed {
    stay: Stay,
    guess: Guess,
}

impl Governed {
    /// Of a CPU that has never idled.
    pub fn new(kernel: &KernelSpec) -> Self {
        let guess = match kernel.rules.governor {
            Governor::Menu | Governor::Residency => Guess::Menu(Menu::new()),
            Governor::Teo => Guess::Teo(Teo::new()),
            Governor::Haltpoll => Guess::Haltpoll(Haltpoll::new(kernel)),
        };
        Self { stay: Stay::default(), guess }
    }

    /// The state that the CPU is in by `now`.
    pub fn state(&self, ladder: &IdleLadder, now: Time) -> usize {
        match (&self.guess, self.stay.state) {
            (Guess::Haltpoll(haltpoll), 1) => haltpoll.halted(ladder, now - self.stay.since),
            (_, state) => state,
        }
    }

    /// Whether a virtual CPU polls at `now`: it sees by itself that somebody is to run, and a waker need not interrupt it
    /// (`set_nr_if_polling`).
    fn polls(&self, now: Time, relax: Time) -> bool {
        match &self.guess {
            Guess::Haltpoll(haltpoll) if self.stay.state == 0 => {
                now <= self.stay.since + until_look(haltpoll.polls_for, relax)
            }
            _ => false,
        }
    }

    /// The states of the present stay up to `until`: the host's are not chosen.
    fn parts(&self, ladder: &IdleLadder, until: Time, stays: &mut impl FnMut(usize, Time, Time)) {
        let since = self.stay.since;
        let Guess::Haltpoll(haltpoll) = &self.guess else {
            return stays(self.stay.state, since, until);
        };
        if self.stay.state == 0 {
            return stays(0, since, until);
        }
        for state in 1..ladder.len() {
            let begins = since + haltpoll.begins(ladder, state);
            let next = if state + 1 < ladder.len() { since + haltpoll.begins(ladder, state + 1) } else { until };
            if begins < until {
                stays(state, begins, next.min(until));
            }
        }
    }

    /// The CPU begins to idle, `waiters` wait for I/O there, and its next timer is known to ring at `rings`.
    pub fn enter(&mut self, ladder: &IdleLadder, now: Time, rings: Time, tick: Time, waiters: u32) {
        let stay = &mut self.stay;
        (stay.since, stay.rings, stay.waiters) = (now, rings, waiters);
        let chosen = match &mut self.guess {
            Guess::Menu(menu) => menu.choose(ladder, stay, tick),
            Guess::Teo(teo) => teo.choose(ladder, stay, tick),
            Guess::Haltpoll(haltpoll) => haltpoll.choose(),
        };
        (stay.state, stay.ticks) = (chosen.state, chosen.ticks);
    }

    /// The CPU has idled up to `until`: before that, ticks and the ends of its polling have made it choose anew. Each state is told
    /// with its beginning and end.
    pub fn idle(&mut self, ladder: &IdleLadder, until: Time, pace: Pace, mut stays: impl FnMut(usize, Time, Time)) {
        let Pace { tick, .. } = pace;
        loop {
            let Stay { state, since, rings, waiters, .. } = self.stay;
            let at = self.chooses_anew(ladder, pace);
            if at >= until {
                break;
            }
            stays(state, since, at);
            let polled_in_vain = state == 0;
            self.learn(ladder, End { at, ticked: next_tick(since, tick) <= at, polled_in_vain }, tick);
            self.enter(ladder, at, rings, tick, waiters);
        }
        self.parts(ladder, until, &mut stays);
    }

    /// When it does, unless it is woken before: a tick does not end its polling (`poll_idle`).
    fn chooses_anew(&self, ladder: &IdleLadder, pace: Pace) -> Time {
        match (&self.guess, self.stay.state) {
            (Guess::Haltpoll(haltpoll), 0) => self.stay.since + until_look(haltpoll.polls_for, pace.relax),
            (_, 0) => ladder.polls_until(self.stay.since),
            _ if self.stay.ticks => next_tick(self.stay.since, pace.tick),
            _ => Time::MAX,
        }
    }

    /// It is woken at `now`, from the state that this returns.
    pub fn wake(&mut self, ladder: &IdleLadder, now: Time, tick: Time) -> usize {
        let state = self.state(ladder, now);
        let ticked = self.stay.ticks && next_tick(self.stay.since, tick) < now;
        self.learn(ladder, End { at: now, ticked, polled_in_vain: false }, tick);
        state
    }

    fn learn(&mut self, ladder: &IdleLadder, end: End, tick: Time) {
        match &mut self.guess {
            Guess::Menu(menu) => menu.learn(&self.stay, &end, tick),
            Guess::Teo(teo) => teo.learn(ladder, &self.stay, &end, tick),
            Guess::Haltpoll(haltpoll) => haltpoll.learn(ladder, &self.stay, &end),
        }
    }
}

/// What goes by while a CPU idles.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A tick.
    pub tick: Time,
    /// A round of `cpu_relax`.
    pub relax: Time,
}

/// The first tick after a moment.
fn next_tick(since: Time, tick: Time) -> Time {
    (since / tick + 1) * tick
}

impl State {
    /// Whether a governor chooses idle states here.
    pub(super) fn governs(&self) -> bool {
        match self.kernel.rules.governor {
            Governor::Residency => false,
            Governor::Haltpoll => true,
            Governor::Menu | Governor::Teo => self.idle_ladder.has_choice(),
        }
    }

    /// Whether the idle `cpu` of a guest polls now.
    pub(in crate::machine) fn polls_in_guest(&self, cpu: CpuId) -> bool {
        self.kernel.rules.governor == Governor::Haltpoll
            && matches!(self.cpus[cpu as usize].phase, Phase::Idle(_))
            && self.cpus[cpu as usize].governed.polls(self.now, self.costs.cpu_relax)
    }

    /// The same, where `cpu` may have come to idle and its books not say so yet.
    #[inline(always)]
    pub(in crate::machine) fn finds_polling(&mut self, cpu: CpuId) -> bool {
        if self.kernel.rules.governor != Governor::Haltpoll {
            return false;
        }
        self.come_to_cpu(cpu);
        self.polls_in_guest(cpu)
    }

    fn pace(&self) -> Pace {
        Pace { tick: self.kernel.tick, relax: self.costs.cpu_relax }
    }

    /// `cpu` begins to idle, `at` a moment that may be past.
    pub(in crate::machine) fn enter_idle(&mut self, cpu: CpuId, at: Time) {
        if self.governs() {
            let (rings, tick) = (self.rings(cpu, at), self.kernel.tick);
            let c = &mut self.cpus[cpu as usize];
            c.governed.enter(&self.idle_ladder, at, rings, tick, c.idles_for_io);
        }
    }

    /// A timer of `cpu` is to ring at `at`.
    pub(in crate::machine) fn note_timer(&mut self, cpu: CpuId, at: Time) {
        let now = self.now;
        self.come_to_cpu(cpu);
        let next = &mut self.cpus[cpu as usize].next_timer;
        if *next <= now || at < *next {
            *next = at;
        }
    }

    /// When the next timer of `cpu` rings after `at`: one that is known, or one of the kernel's own.
    fn rings(&self, cpu: CpuId, at: Time) -> Time {
        let known = self.cpus[cpu as usize].next_timer;
        if known > at {
            known
        } else {
            at + self.kernel.idle_timer
        }
    }

    /// `cpu`, which idles since `since`, is woken: its state and the energy (J) of its idling in the window.
    #[inline(always)]
    pub(in crate::machine) fn end_idle(&mut self, cpu: CpuId, since: Time) -> (usize, f64) {
        if self.governs() {
            return self.end_governed_idle(cpu);
        }
        let waiters = self.cpus[cpu as usize].idles_for_io;
        self.idle_ladder.stay(self.window_start.saturating_sub(since), self.now - since, waiters)
    }

    #[inline(never)]
    fn end_governed_idle(&mut self, cpu: CpuId) -> (usize, f64) {
        let now = self.now;
        let joules = self.governed_joules(cpu);
        let (ladder, governed, tick) = (&self.idle_ladder, &mut self.cpus[cpu as usize].governed, self.kernel.tick);
        (governed.wake(ladder, now, tick), joules)
    }

    /// Lets the governor of the idle `cpu` choose in the ticks up to now. Returns the energy (J) of its idling in the window.
    fn governed_joules(&mut self, cpu: CpuId) -> f64 {
        let (now, window, pace) = (self.now, self.window_start, self.pace());
        let mut joules = 0.0;
        let (ladder, governed) = (&self.idle_ladder, &mut self.cpus[cpu as usize].governed);
        governed.idle(ladder, now, pace, |state, from, to| {
            joules += ladder.stay_joules(state, to.saturating_sub(from.max(window)));
        });
        joules
    }

    /// The energy (J) so far of the idling of `cpu` in the window.
    pub(super) fn open_idle_joules(&self, cpu: CpuId, since: Time) -> f64 {
        if !self.governs() {
            let (from, to) = (self.window_start.saturating_sub(since), self.now - since);
            return self.idle_ladder.stay(from, to, self.cpus[cpu as usize].idles_for_io).1;
        }
        let mut joules = 0.0;
        let mut governed = self.cpus[cpu as usize].governed.clone();
        governed.idle(&self.idle_ladder, self.now, self.pace(), |state, from, to| {
            joules += self.idle_ladder.stay_joules(state, to.saturating_sub(from.max(self.window_start)));
        });
        joules
    }

    /// How long the idle `cpu` takes to wake, as the driver declares it (`idle_get_state`).
    pub(in crate::machine) fn declared_exit(&self, cpu: CpuId) -> Time {
        let state = match self.cpus[cpu as usize].phase {
            Phase::Idle(_) if self.governs() => self.cpus[cpu as usize].governed.state(&self.idle_ladder, self.now),
            Phase::Idle(since) => self.idle_ladder.after(self.now - since, self.cpus[cpu as usize].idles_for_io),
            _ => self.idle_ladder.after(0, 0),
        };
        self.idle_ladder.declared_exit(state)
    }
}
