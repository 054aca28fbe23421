//! The chains of a run in its result (`docs/seams.md`, seam 2).

use crate::hdr::encoded;
use crate::machine::chains::{Chain, Link};
use crate::machine::statistics::ClassStats;
use crate::machine::State;
use crate::waist::time::to_ns;
use crate::waist::{Side, Time};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub struct ChainReports {
    waits: Vec<WaitChain>,
    holders: Vec<HolderTime>,
    sleeps: Vec<SleepTime>,
    holds: Vec<Holds>,
}

/// How long the exclusive holds of a lock class lasted.
#[derive(Serialize)]
struct Holds {
    lock: String,
    hdr: String,
}

/// Why tasks waited, from the waiter to the root.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Way {
    waiter: &'static str,
    links: Vec<LinkReport>,
    reason: &'static str,
    function: &'static str,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct LinkReport {
    lock: String,
    side: &'static str,
    holder: &'static str,
}

#[derive(Serialize)]
struct WaitChain {
    #[serde(flatten)]
    way: Way,
    wait_ns: f64,
}

/// What a holder does while somebody waits for its lock.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Does {
    lock: String,
    holder: &'static str,
    reason: &'static str,
    function: &'static str,
    waits_for: String,
}

#[derive(Serialize)]
struct HolderTime {
    #[serde(flatten)]
    does: Does,
    time_ns: f64,
}

/// A sleep that no lock is the cause of.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Sleep {
    sleeper: &'static str,
    reason: &'static str,
    function: &'static str,
}

#[derive(Serialize)]
struct SleepTime {
    #[serde(flatten)]
    sleep: Sleep,
    time_ns: f64,
}

/// What is told of chains, if they were recorded; nothing of a run that could not go on.
pub fn chains(state: &State, stalled: bool) -> Option<ChainReports> {
    if !state.chains.on() {
        return None;
    }
    let (mut waits, mut holders) = (BTreeMap::<Way, Time>::new(), BTreeMap::<Does, Time>::new());
    let mut sleeps = BTreeMap::<Sleep, Time>::new();
    if !stalled {
        state.chains.waits().for_each(|chain| *waits.entry(way(state, &chain)).or_default() += chain.time);
        state.chains.holds().for_each(|chain| *holders.entry(does(state, &chain)).or_default() += chain.time);
        state.chains.sleeps().for_each(|chain| *sleeps.entry(sleep(state, &chain)).or_default() += chain.time);
    }
    let waits = sorted(waits).map(|(way, time)| WaitChain { way, wait_ns: to_ns(time) });
    let holders = sorted(holders).map(|(does, time)| HolderTime { does, time_ns: to_ns(time) });
    let sleeps = sorted(sleeps).map(|(sleep, time)| SleepTime { sleep, time_ns: to_ns(time) });
    let holds = if stalled { Vec::new() } else { holds(state) };
    Some(ChainReports { waits: waits.collect(), holders: holders.collect(), sleeps: sleeps.collect(), holds })
}

fn holds(state: &State) -> Vec<Holds> {
    let told = |class: &ClassStats| {
        let holds = class.holds.as_ref().filter(|holds| !holds.is_empty())?;
        Some(Holds { lock: class.name.clone(), hdr: encoded(&holds.histogram()) })
    };
    state.classes.iter().filter_map(told).collect()
}

/// The longest first, in the order of names where they are equal.
fn sorted<T>(times: BTreeMap<T, Time>) -> impl Iterator<Item = (T, Time)> {
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by_key(|&(_, time)| Reverse(time));
    times.into_iter()
}

fn way(state: &State, chain: &Chain) -> Way {
    let site = |site| site_name(state, site);
    let link = |link: &Link| LinkReport { lock: name(state, link), side: side(state, link), holder: site(link.site) };
    Way {
        waiter: site(chain.waiter),
        links: chain.links.iter().map(link).collect(),
        reason: chain.root.name(),
        function: site(chain.root.function),
    }
}

fn sleep(state: &State, chain: &Chain) -> Sleep {
    let function = site_name(state, chain.root.function);
    Sleep { sleeper: site_name(state, chain.waiter), reason: chain.root.name(), function }
}

fn site_name(state: &State, site: Option<u16>) -> &'static str {
    site.map_or("", |site| state.site_name(site.into()))
}

/// What the holder of the first lock does: where it waits for the second one, that is all that is said.
fn does(state: &State, chain: &Chain) -> Does {
    let site = |site| site_name(state, site);
    let next = chain.links.get(1);
    Does {
        lock: name(state, &chain.links[0]),
        holder: site(chain.links[0].site),
        reason: if next.is_some() { "lock" } else { chain.root.name() },
        function: if next.is_some() { "" } else { site(chain.root.function) },
        waits_for: next.map_or_else(String::new, |link| name(state, link)),
    }
}

fn name(state: &State, link: &Link) -> String {
    state.classes[link.class as usize].name.clone()
}

fn side(state: &State, link: &Link) -> &'static str {
    match link.side {
        _ if !state.classes[link.class as usize].kind.shares() => "",
        Side::Read => "read",
        Side::Write => "write",
    }
}
