//! Which idle state a CPU enters: the `menu` governor (`drivers/cpuidle/governors/menu.c`, as of 6.12).
//!
//! It guesses for how long the CPU is going to idle, from the next timer times how wrong that was, and from the last eight
//! times if they are alike, and takes the deepest state that pays for so long. If that is less than a tick, the tick goes on,
//! and the CPU chooses anew in it.

use super::cpu::{IdleLadder, Phase};
use crate::kernel::idle::Governor;
use crate::machine::state::State;
use crate::waist::time::Time;
use crate::waist::CpuId;

const INTERVALS: usize = 8;
const RESOLUTION: u64 = 1024;
const DECAY: u64 = 8;
const BUCKETS: usize = 6;
/// Whoever idles longer has been predicted well (`MAX_INTERESTING`, us).
const MAX_INTERESTING: u64 = 50_000;
const US: Time = 1_000_000;

/// What the governor knows of a CPU (`struct menu_device`); times in us unless told.
#[derive(Clone, Debug)]
pub struct Menu {
    intervals: [u64; INTERVALS],
    next: usize,
    /// By the magnitude of the time to the next timer, what part of it the CPU idled, in 8192nds; and the same where tasks wait for I/O.
    factors: [u64; 2 * BUCKETS],
    /// When the next timer is known to ring (ps), and how long that was when it entered the state.
    rings: Time,
    to_timer: u64,
    /// How many tasks wait for I/O there.
    waiters: u32,
    /// The state that the CPU is in.
    pub state: usize,
    /// Since when it is in it.
    since: Time,
    /// The tick goes on.
    ticks: bool,
}

impl Menu {
    /// Of a CPU that has never idled.
    pub fn new() -> Self {
        let factors = [RESOLUTION * DECAY; 2 * BUCKETS];
        let (intervals, next) = ([0; INTERVALS], 0);
        Self { intervals, next, factors, rings: 0, to_timer: 0, waiters: 0, state: 0, since: 0, ticks: false }
    }

    /// The CPU begins to idle, `waiters` wait for I/O there, and its next timer is known to ring at `rings` (`menu_select`).
    pub fn enter(&mut self, ladder: &IdleLadder, now: Time, rings: Time, tick: Time, waiters: u32) {
        self.waiters = waiters;
        self.since = now;
        self.rings = rings;
        self.to_timer = rings.saturating_sub(now) / US;
        let by_timer = (self.to_timer * self.factors[self.bucket()] + RESOLUTION * DECAY / 2) / (RESOLUTION * DECAY);
        let predicted = by_timer.min(self.typical()) * US;
        self.ticks = predicted < tick;
        let until_tick = tick - now % tick;
        self.state = ladder.deepest(if self.ticks { predicted.min(until_tick) } else { predicted }, waiters);
    }

    /// The CPU has idled up to `until`: ticks before that have made it choose anew. Each state is told with its beginning and end.
    pub fn idle(&mut self, ladder: &IdleLadder, until: Time, tick: Time, mut stay: impl FnMut(usize, Time, Time)) {
        loop {
            let next_tick = (self.since / tick + 1) * tick;
            if !self.ticks || next_tick >= until {
                break;
            }
            stay(self.state, self.since, next_tick);
            let mistaken = self.to_timer > tick / US;
            self.note(if mistaken { 9 * MAX_INTERESTING / 10 } else { (next_tick - self.since) / US });
            self.enter(ladder, next_tick, self.rings, tick, self.waiters);
        }
        stay(self.state, self.since, until);
    }

    /// It is woken at `now` (`menu_update`).
    pub fn wake(&mut self, now: Time) {
        self.note((now - self.since) / US);
    }

    fn note(&mut self, idled: u64) {
        let idled = idled.min(self.to_timer);
        let bucket = self.bucket();
        let factor = &mut self.factors[bucket];
        let well = self.to_timer == 0 || idled >= MAX_INTERESTING;
        *factor =
            (*factor - *factor / DECAY + if well { RESOLUTION } else { RESOLUTION * idled / self.to_timer }).max(1);
        self.intervals[self.next] = idled;
        self.next = (self.next + 1) % INTERVALS;
    }

    /// `which_bucket`.
    fn bucket(&self) -> usize {
        let magnitude = [10, 100, 1_000, 10_000, 100_000].iter().take_while(|&&limit| self.to_timer >= limit).count();
        magnitude + if self.waiters > 0 { BUCKETS } else { 0 }
    }

    /// `get_typical_interval`: the mean of the last intervals, without the longest quarter if need be, if they are alike.
    fn typical(&self) -> u64 {
        let mut most = u64::MAX;
        loop {
            let kept = || self.intervals.iter().copied().filter(|&interval| interval <= most);
            let (count, longest) = (kept().count() as u64, kept().max().unwrap_or(0));
            if longest == 0 {
                return u64::MAX;
            }
            let mean = kept().sum::<u64>() / count;
            let variance = kept().map(|interval| interval.abs_diff(mean).pow(2)).sum::<u64>() / count;
            let most_are_kept = count * 4 >= INTERVALS as u64 * 3;
            if variance <= 400 || most_are_kept && mean * mean > 36 * variance {
                return mean;
            }
            if count * 4 <= INTERVALS as u64 * 3 {
                return u64::MAX;
            }
            most = longest - 1;
        }
    }
}

impl State {
    /// Whether a governor chooses idle states here.
    pub(super) fn governs(&self) -> bool {
        self.kernel.rules.governor == Governor::Menu && self.idle_ladder.has_choice()
    }

    /// `cpu` begins to idle, `at` a moment that may be past.
    pub(in crate::machine) fn enter_idle(&mut self, cpu: CpuId, at: Time) {
        if self.governs() {
            let (rings, tick) = (self.rings(cpu, at), self.kernel.tick);
            let c = &mut self.cpus[cpu as usize];
            c.menu.enter(&self.idle_ladder, at, rings, tick, c.idles_for_io);
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
        let menu = &mut self.cpus[cpu as usize].menu;
        menu.wake(now);
        (menu.state, joules)
    }

    /// Lets the governor of the idle `cpu` choose in the ticks up to now. Returns the energy (J) of its idling in the window.
    fn governed_joules(&mut self, cpu: CpuId) -> f64 {
        let (now, window, tick) = (self.now, self.window_start, self.kernel.tick);
        let mut joules = 0.0;
        let (ladder, menu) = (&self.idle_ladder, &mut self.cpus[cpu as usize].menu);
        menu.idle(ladder, now, tick, |state, from, to| {
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
        let mut menu = self.cpus[cpu as usize].menu.clone();
        menu.idle(&self.idle_ladder, self.now, self.kernel.tick, |state, from, to| {
            joules += self.idle_ladder.stay_joules(state, to.saturating_sub(from.max(self.window_start)));
        });
        joules
    }

    /// How long the idle `cpu` takes to wake, as the driver declares it (`idle_get_state`).
    pub(in crate::machine) fn declared_exit(&self, cpu: CpuId) -> Time {
        let state = match self.cpus[cpu as usize].phase {
            Phase::Idle(_) if self.governs() => self.cpus[cpu as usize].menu.state,
            Phase::Idle(since) => self.idle_ladder.deepest(self.now - since, self.cpus[cpu as usize].idles_for_io),
            _ => self.idle_ladder.deepest(0, 0),
        };
        self.idle_ladder.declared_exit(state)
    }
}
