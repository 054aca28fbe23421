//! For how long an idle CPU polls (`poll_idle` of `drivers/cpuidle/poll_state.c`) before its governor chooses again.

use crate::kernel::idle::Polling;
use crate::spec::IdleState;
use crate::waist::time::{from_ns, Time};

/// It looks at the clock once in so many rounds of `cpu_relax` (`POLL_IDLE_RELAX_COUNT`, and the one that finds the count full).
const ROUNDS: Time = 201;
/// States of shorter residencies do not limit it (`CPUIDLE_POLL_MIN`).
const SHORT: Time = 10_000_000;
/// To look at the clock and to choose again takes some time, even where a machine's `cpu_relax` takes none.
const LEAST: Time = 1_000_000;

/// How long it polls for with these states, from the shallowest, or [`Time::MAX`] without end; a round of `cpu_relax` takes `relax`.
pub fn polls_for(rule: Polling, states: &[IdleState], tick: Time, relax: Time) -> Time {
    let residencies = || states.iter().map(|state| from_ns(state.residency_ns));
    let limit = match rule {
        Polling::Endless => return Time::MAX,
        Polling::PartOfTick => tick / 16,
        Polling::FirstResidency => residencies().next().unwrap_or(tick),
        Polling::LongResidency => residencies().find(|&time| time >= SHORT).unwrap_or(tick / 16).min(tick / 16),
    };
    until_look(limit, relax)
}

/// When it looks at the clock first after more than `limit`.
pub fn until_look(limit: Time, relax: Time) -> Time {
    let look = ROUNDS * relax;
    let looks = limit.checked_div(look).map_or(limit, |full| (full + 1) * look);
    looks.max(LEAST)
}
