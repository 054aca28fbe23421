//! The `teo` governor (`drivers/cpuidle/governors/teo.c`, as of 6.12).
//!
//! It counts for each state how often the CPU idled for as long as the next timer made it expect (hits), and how often somebody
//! woke it before (intercepts). If most of the latter ended in shallow states, it takes the one in which half of them did, else
//! the deepest that pays until the timer.

use super::cpu::IdleLadder;
use super::governor::{Chosen, End, Stay};
use crate::waist::time::Time;

/// What one time counts, and what part of the counts it makes forgotten (`PULSE`, `DECAY_SHIFT`).
const PULSE: u32 = 1024;
const DECAY_SHIFT: u32 = 3;
/// For states with shorter residencies it does not ask for the next timer (`RESIDENCY_THRESHOLD_NS`).
const SHORT: Time = 15_000_000;

/// What the governor knows of a CPU (`struct teo_cpu`).
#[derive(Clone, Debug)]
pub struct Teo {
    /// By state, in units of [`PULSE`].
    hits: Vec<u32>,
    intercepts: Vec<u32>,
    /// Times of a tick and more that were expected, where no state is for so long.
    tick_hits: u32,
    total: u32,
    /// How long it was to the next timer, if it has asked.
    sleep: Option<Time>,
}

impl Teo {
    /// Of a CPU that has never idled.
    pub fn new() -> Self {
        Self { hits: Vec::new(), intercepts: Vec::new(), tick_hits: 0, total: 0, sleep: None }
    }

    /// The state for a CPU that idles from now on (`teo_select`); its tick has not been stopped yet.
    pub fn choose(&mut self, ladder: &IdleLadder, stay: &Stay, tick: Time) -> Chosen {
        self.hits.resize(ladder.len(), 0);
        self.intercepts.resize(ladder.len(), 0);
        let state = self.by_experience(ladder);
        self.sleep = (state == 0 || ladder.target(state) >= SHORT).then(|| stay.to_timer());
        match self.sleep {
            Some(sleep) if state > 0 => self.by_timer(ladder, state, sleep, sleep.min(tick - stay.since % tick), tick),
            _ => Chosen { state, ticks: true },
        }
    }

    /// The deepest state, or a shallower one if somebody mostly woke the CPU before it paid.
    fn by_experience(&self, ladder: &IdleLadder) -> usize {
        let deepest = ladder.len() - 1;
        let early: u32 = self.intercepts[..deepest].iter().sum();
        let in_time: u32 = self.hits[..deepest].iter().sum();
        if 2 * early <= self.total - in_time {
            return deepest;
        }
        let mut sum = 0;
        let half = |&state: &usize| {
            sum += self.intercepts[state];
            2 * sum > early
        };
        (0..deepest).rev().find(half).unwrap_or(deepest)
    }

    /// The same, or a shallower one that pays until the next timer, and until the tick if that goes on.
    fn by_timer(&self, ladder: &IdleLadder, state: usize, sleep: Time, next_event: Time, tick: Time) -> Chosen {
        let state = shallower(ladder, state, sleep);
        let early: u32 = self.intercepts.iter().sum();
        let before_tick = ladder.target(state) < tick && early > self.total / 2 + self.total / 8;
        let ticks = state == 0 || before_tick || sleep < tick;
        Chosen { state: if ticks { shallower(ladder, state, next_event) } else { state }, ticks }
    }

    /// What it was chosen for has come to an end (`teo_update`).
    pub fn learn(&mut self, ladder: &IdleLadder, stay: &Stay, end: &End, tick: Time) {
        let sleep = self.sleep.unwrap_or(Time::MAX);
        let idled = self.measured(ladder, stay, end, tick);
        self.decay();
        self.total = self.hits.iter().sum::<u32>() + self.intercepts.iter().sum::<u32>();
        let bin = |time: Time| (0..ladder.len()).rev().find(|&state| ladder.target(state) <= time).unwrap_or(0);
        let (mut timer, lasted) = (bin(sleep), bin(idled.min(sleep)));
        if ladder.target(ladder.len() - 1) < tick {
            self.tick_hits -= self.tick_hits >> DECAY_SHIFT;
            self.total += self.tick_hits;
            if sleep >= tick {
                timer = ladder.len();
            }
        }
        let count = match timer {
            beyond if beyond == ladder.len() && idled >= tick => &mut self.tick_hits,
            timer if timer == lasted => &mut self.hits[timer],
            _ => &mut self.intercepts[lasted],
        };
        *count += PULSE;
        self.total += PULSE;
    }

    /// How long the CPU has idled. Without end, if nobody has woken it, or its timer: then it could have idled for longer. Half of
    /// the way out counts, on average.
    fn measured(&self, ladder: &IdleLadder, stay: &Stay, end: &End, tick: Time) -> Time {
        let sleep = self.sleep.unwrap_or(Time::MAX);
        let (until_awake, declared) =
            (end.at - stay.since + ladder.core_exit(stay.state), ladder.declared_exit(stay.state));
        if end.polled_in_vain || end.ticked && sleep > tick || until_awake >= sleep {
            Time::MAX
        } else if until_awake >= declared {
            until_awake - declared / 2
        } else {
            until_awake / 2
        }
    }

    fn decay(&mut self) {
        self.hits.iter_mut().chain(&mut self.intercepts).for_each(|count| *count -= *count >> DECAY_SHIFT);
    }
}

/// `state`, or the deepest shallower one that pays for so long (`teo_find_shallower_state`).
fn shallower(ladder: &IdleLadder, state: usize, time: Time) -> usize {
    (0..=state).rev().find(|&state| ladder.target(state) <= time).unwrap_or(0)
}
