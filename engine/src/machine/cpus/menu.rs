//! The `menu` governor (`drivers/cpuidle/governors/menu.c`, as of 6.12).
//!
//! It guesses for how long the CPU is going to idle, from the next timer times how wrong that was, and from the last eight
//! times if they are alike, and takes the deepest state that pays for so long. If that is less than a tick, the tick goes on,
//! and the CPU chooses anew in it. So it does when it has polled for long enough.

use super::cpu::IdleLadder;
use super::governor::{Chosen, End, Stay};
use crate::waist::time::Time;

const INTERVALS: usize = 8;
const RESOLUTION: u64 = 1024;
const DECAY: u64 = 8;
const BUCKETS: usize = 6;
/// Whoever idles longer has been predicted well (`MAX_INTERESTING`, us).
const MAX_INTERESTING: u64 = 50_000;
const US: Time = 1_000_000;

/// What the governor knows of a CPU (`struct menu_device`); times in us.
#[derive(Clone, Debug)]
pub struct Menu {
    intervals: [u64; INTERVALS],
    next: usize,
    /// By the magnitude of the time to the next timer, what part of it the CPU idled, in 8192nds; and the same where tasks wait for I/O.
    factors: [u64; 2 * BUCKETS],
}

impl Menu {
    /// Of a CPU that has never idled.
    pub fn new() -> Self {
        Self { intervals: [0; INTERVALS], next: 0, factors: [RESOLUTION * DECAY; 2 * BUCKETS] }
    }

    /// The state for a CPU that idles from now on (`menu_select`).
    pub fn choose(&mut self, ladder: &IdleLadder, stay: &Stay, tick: Time) -> Chosen {
        let by_timer = (to_timer(stay) * self.factors[bucket(stay)] + RESOLUTION * DECAY / 2) / (RESOLUTION * DECAY);
        let predicted = by_timer.min(self.typical()) * US;
        let ticks = predicted < tick;
        let until_tick = tick - stay.since % tick;
        let state = ladder.deepest(if ticks { predicted.min(until_tick) } else { predicted }, stay.waiters);
        Chosen { state, ticks: ticks || state == 0 }
    }

    /// What it was chosen for has come to an end (`menu_update`).
    pub fn learn(&mut self, stay: &Stay, end: &End, tick: Time) {
        let mistaken = end.ticked && to_timer(stay) > tick / US;
        let idled = if mistaken {
            9 * MAX_INTERESTING / 10
        } else if end.polled_in_vain {
            to_timer(stay) // nobody would have woken it before
        } else {
            (end.at - stay.since) / US
        };
        self.note(stay, idled);
    }

    fn note(&mut self, stay: &Stay, idled: u64) {
        let to_timer = to_timer(stay);
        let idled = idled.min(to_timer);
        let factor = &mut self.factors[bucket(stay)];
        let well = to_timer == 0 || idled >= MAX_INTERESTING;
        *factor = (*factor - *factor / DECAY + if well { RESOLUTION } else { RESOLUTION * idled / to_timer }).max(1);
        self.intervals[self.next] = idled;
        self.next = (self.next + 1) % INTERVALS;
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

/// How long it was to the next timer (us).
fn to_timer(stay: &Stay) -> u64 {
    stay.to_timer() / US
}

/// `which_bucket`.
fn bucket(stay: &Stay) -> usize {
    let magnitude = [10, 100, 1_000, 10_000, 100_000].iter().take_while(|&&limit| to_timer(stay) >= limit).count();
    magnitude + if stay.waiters > 0 { BUCKETS } else { 0 }
}
