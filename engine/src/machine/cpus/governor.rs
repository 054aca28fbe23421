//! Which idle state a CPU enters, where a governor of the kernel chooses it (`drivers/cpuidle/governors`): the parts that all have.

use super::cpu::{IdleLadder, Phase};
use super::menu::Menu;
use super::teo::Teo;
use crate::kernel::idle::Governor;
use crate::machine::state::State;
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
}

/// What the governor knows of a CPU.
#[derive(Clone, Debug)]
pub struct Governed {
    stay: Stay,
    guess: Guess,
}

impl Governed {
    /// Of a CPU that has never idled.
    pub fn new(governor: Governor) -> Self {
        let guess = match governor {
            Governor::Menu | Governor::Residency => Guess::Menu(Menu::new()),
            Governor::Teo => Guess::Teo(Teo::new()),
        };
        Self { stay: Stay::default(), guess }
    }

    /// The state that the CPU is in.
    pub fn state(&self) -> usize {
        self.stay.state
    }

    /// The CPU begins to idle, `waiters` wait for I/O there, and its next timer is known to ring at `rings`.
    pub fn enter(&mut self, ladder: &IdleLadder, now: Time, rings: Time, tick: Time, waiters: u32) {
        let stay = &mut self.stay;
        (stay.since, stay.rings, stay.waiters) = (now, rings, waiters);
        let chosen = match &mut self.guess {
            Guess::Menu(menu) => menu.choose(ladder, stay, tick),
            Guess::Teo(teo) => teo.choose(ladder, stay, tick),
        };
        (stay.state, stay.ticks) = (chosen.state, chosen.ticks);
    }

    /// The CPU has idled up to `until`: before that, ticks and the ends of its polling have made it choose anew. Each state is told
    /// with its beginning and end.
    pub fn idle(&mut self, ladder: &IdleLadder, until: Time, tick: Time, mut stays: impl FnMut(usize, Time, Time)) {
        loop {
            let Stay { state, since, rings, waiters, .. } = self.stay;
            let at = self.chooses_anew(ladder, tick);
            if at >= until {
                break;
            }
            stays(state, since, at);
            let polled_in_vain = state == 0;
            self.learn(ladder, End { at, ticked: next_tick(since, tick) <= at, polled_in_vain }, tick);
            self.enter(ladder, at, rings, tick, waiters);
        }
        stays(self.stay.state, self.stay.since, until);
    }

    /// When it does, unless it is woken before: a tick does not end its polling (`poll_idle`).
    fn chooses_anew(&self, ladder: &IdleLadder, tick: Time) -> Time {
        match self.stay.state {
            0 => ladder.polls_until(self.stay.since),
            _ if self.stay.ticks => next_tick(self.stay.since, tick),
            _ => Time::MAX,
        }
    }

    /// It is woken at `now`.
    pub fn wake(&mut self, ladder: &IdleLadder, now: Time, tick: Time) {
        let ticked = self.stay.ticks && next_tick(self.stay.since, tick) < now;
        self.learn(ladder, End { at: now, ticked, polled_in_vain: false }, tick);
    }

    fn learn(&mut self, ladder: &IdleLadder, end: End, tick: Time) {
        match &mut self.guess {
            Guess::Menu(menu) => menu.learn(&self.stay, &end, tick),
            Guess::Teo(teo) => teo.learn(ladder, &self.stay, &end, tick),
        }
    }
}

/// The first tick after a moment.
fn next_tick(since: Time, tick: Time) -> Time {
    (since / tick + 1) * tick
}

impl State {
    /// Whether a governor chooses idle states here.
    pub(super) fn governs(&self) -> bool {
        self.kernel.rules.governor != Governor::Residency && self.idle_ladder.has_choice()
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
        governed.wake(ladder, now, tick);
        (governed.state(), joules)
    }

    /// Lets the governor of the idle `cpu` choose in the ticks up to now. Returns the energy (J) of its idling in the window.
    fn governed_joules(&mut self, cpu: CpuId) -> f64 {
        let (now, window, tick) = (self.now, self.window_start, self.kernel.tick);
        let mut joules = 0.0;
        let (ladder, governed) = (&self.idle_ladder, &mut self.cpus[cpu as usize].governed);
        governed.idle(ladder, now, tick, |state, from, to| {
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
        governed.idle(&self.idle_ladder, self.now, self.kernel.tick, |state, from, to| {
            joules += self.idle_ladder.stay_joules(state, to.saturating_sub(from.max(self.window_start)));
        });
        joules
    }

    /// How long the idle `cpu` takes to wake, as the driver declares it (`idle_get_state`).
    pub(in crate::machine) fn declared_exit(&self, cpu: CpuId) -> Time {
        let state = match self.cpus[cpu as usize].phase {
            Phase::Idle(_) if self.governs() => self.cpus[cpu as usize].governed.state(),
            Phase::Idle(since) => self.idle_ladder.after(self.now - since, self.cpus[cpu as usize].idles_for_io),
            _ => self.idle_ladder.after(0, 0),
        };
        self.idle_ladder.declared_exit(state)
    }
}
