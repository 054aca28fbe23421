//! What a run gives back (`docs/seams.md`, seam 2).

use crate::chain_report::{chains, ChainReports};
use crate::gathered::gathered;
use crate::hdr::{encoded, Tally};
use crate::machine::statistics::{ClassStats, HoldTimes, PlaceStats, WakeStats};
use crate::machine::{Broken, Outcome, Stall, State, TaskKind, ADD_UP, AUDIT, CALLBACKS, TOLD};
use crate::spec::RunSpec;
use crate::waist::time::to_ns;
use crate::waist::{Account, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// What comes out of a run.
#[derive(Serialize)]
#[allow(missing_docs)] // each field is described in simfs/results/run_result.py
pub struct RunResult {
    operations: u64,
    window_ns: f64,
    batch_operations: Vec<u64>,
    tasks: u32,
    per_task_operations: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupReport>,
    cpu_ns: CpuTimes,
    context_switches: u64,
    involuntary_switches: u64,
    wakeups: u64,
    migrations: u64,
    pulls: u64,
    wakes: Vec<WakeReport>,
    delays: BTreeMap<&'static str, Latency>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    requests: BTreeMap<&'static str, Latency>,
    energy_joules: f64,
    events: u64,
    bytes: u64,
    latency: BTreeMap<&'static str, Latency>,
    locks: Vec<LockReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<LineReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chains: Option<ChainReports>,
    laws: Vec<LawReport>,
    stall: Option<StallReport>,
}

#[derive(Serialize)]
struct CpuTimes {
    user: f64,
    system: f64,
    spin: f64,
    switch: f64,
    irq: f64,
    idle: f64,
}

#[derive(Serialize)]
struct Latency {
    count: u64,
    mean_ns: f64,
    p50_ns: f64,
    p90_ns: f64,
    p99_ns: f64,
    max_ns: f64,
    hdr: String,
}

/// A group: its tasks are the next of all.
#[derive(Serialize)]
struct GroupReport {
    name: String,
    tasks: u32,
}

#[derive(Serialize)]
struct WakeReport {
    kind: &'static str,
    wakeups: u64,
    on_previous: u64,
    on_waker: u64,
    beside_idle: u64,
    stacked: u64,
    to_run_idle: Latency,
    to_run_busy: Latency,
}

/// Cache lines of one name that somebody waited for.
#[derive(Serialize)]
struct LineReport {
    name: String,
    transfers: u64,
    waited_ns: f64,
}

#[derive(Serialize)]
struct LockReport {
    name: String,
    role: String,
    r#type: &'static str,
    instances: u64,
    acquired: u64,
    contended: u64,
    found_held: u64,
    wait_total_ns: f64,
    wait_max_ns: f64,
    wait_p50_ns: f64,
    wait_p99_ns: f64,
    wait_hdr: String,
    still_waiting: u64,
    still_waiting_max_ns: f64,
    hold_total_ns: f64,
    hold_max_ns: f64,
    busiest_held_ns: f64,
    acquired_shared: u64,
    hold_shared_total_ns: f64,
    held_shared_ns: f64,
    resolved_spinning: u64,
    slept: u64,
    handoffs: u64,
    steals: u64,
    wakeups: u64,
    line_transfers: u64,
    holder_running_ns: f64,
    holder_runnable_ns: f64,
    holder_sleeping_ns: f64,
    holder_device_ns: f64,
    grant_to_run_ns: f64,
    sites: Vec<SiteReport>,
    kinds: Vec<KindReport>,
}

#[derive(Serialize)]
struct SiteReport {
    site: &'static str,
    #[serde(flatten)]
    counts: CountReport,
}

#[derive(Serialize)]
struct CountReport {
    acquired: u64,
    contended: u64,
    found_held: u64,
    wait_total_ns: f64,
}

/// What one kind of task did with locks of a class, and how long it held them.
#[derive(Serialize)]
struct KindReport {
    kind: &'static str,
    #[serde(flatten)]
    counts: CountReport,
    running_ns: f64,
    granted_behind_ns: f64,
    granted_idle_ns: f64,
    preempted_ns: f64,
    blocked_ns: f64,
    device_ns: f64,
    grant_to_run: Option<Latency>,
}

#[derive(Serialize)]
struct LawReport {
    law: &'static str,
    ok: bool,
    detail: String,
}

#[derive(Serialize)]
struct StallReport {
    kind: &'static str,
    at_ns: f64,
    cycle: Vec<String>,
}

/// The laws that every run is checked against.
const LAWS: [&str; 6] =
    ["mutual exclusion", "no sleep while atomic", "time conservation", "Little's law", TOLD, CALLBACKS];

impl RunResult {
    /// Gathers the result of a run.
    pub fn new(spec: &RunSpec, state: &State, outcome: Outcome) -> Self {
        let accounts = state.account_totals();
        let of = |account: Account| to_ns(accounts[account as usize]);
        Self {
            operations: state.counters.operations,
            window_ns: to_ns(state.window()),
            batch_operations: outcome.batch_operations.clone(),
            tasks: spec.workload.tasks,
            per_task_operations: per_task_operations(spec, state),
            groups: spec.groups.iter().map(|g| GroupReport { name: g.name.clone(), tasks: g.workload.tasks }).collect(),
            cpu_ns: CpuTimes {
                user: of(Account::User),
                system: of(Account::System),
                spin: of(Account::Spin),
                switch: of(Account::Switch),
                irq: of(Account::Irq),
                idle: of(Account::Idle),
            },
            context_switches: state.counters.switches,
            involuntary_switches: state.counters.involuntary,
            wakeups: state.counters.wakeups,
            migrations: state.counters.migrations,
            pulls: state.counters.pulls,
            wakes: TaskKind::ALL.iter().map(|&kind| wakes(kind, &state.wakes[kind as usize])).collect(),
            delays: gathered(state.delays().iter().map(|(name, h)| (*name, latency(h)))),
            requests: gathered(state.requests().iter().map(|(name, h)| (*name, latency(h)))),
            energy_joules: energy(spec, state, &accounts),
            events: state.processed,
            bytes: state.counters.bytes,
            latency: gathered(state.latencies().iter().map(|(name, h)| (*name, latency(h)))),
            locks: lock_reports(state),
            lines: line_reports(state),
            chains: chains(state, outcome.stall.is_some()),
            laws: law_reports(&outcome.broken, state.chains.on()),
            stall: outcome.stall.map(|stall| StallReport::new(state, stall)),
        }
    }

    /// Nothing is wrong with the run.
    pub fn is_sound(&self) -> bool {
        self.stall.is_none() && self.laws.iter().all(|law| law.ok)
    }

    /// Adds the verdict on the structures that programs have built.
    pub fn add_audit(&mut self, verdict: Result<(), String>) {
        self.laws.push(LawReport { law: AUDIT, ok: verdict.is_ok(), detail: verdict.err().unwrap_or_default() });
    }

    /// Adds what was found when the run was over.
    pub fn add(&mut self, state: &State, broken: &[Broken], stall: Option<Stall>) {
        let found = law_reports(broken, state.chains.on());
        let laws = std::mem::take(&mut self.laws).into_iter().zip(found);
        self.laws = laws.map(|(law, found)| if law.ok { found } else { law }).collect();
        self.stall = self.stall.take().or_else(|| stall.map(|stall| StallReport::new(state, stall)));
    }
}

/// Operations of each task; of those that never came to start too.
fn per_task_operations(spec: &RunSpec, state: &State) -> Vec<u64> {
    let mut operations = state.per_task_operations();
    operations.resize(operations.len().max(spec.workload.tasks as usize), 0);
    operations
}

fn energy(spec: &RunSpec, state: &State, accounts: &[Time]) -> f64 {
    let seconds = |account: Account| accounts[account as usize] as f64 * 1e-12;
    let active = [Account::User, Account::System, Account::Switch, Account::Irq].map(seconds).iter().sum::<f64>();
    active * spec.machine.watts_active + seconds(Account::Spin) * spec.machine.watts_spin + state.idle_energy()
}

fn latency(times: &Tally) -> Latency {
    let h = times.histogram();
    let at = |q: f64| h.value_at_quantile(q) as f64;
    Latency {
        count: h.len(),
        mean_ns: h.mean(),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        max_ns: h.max() as f64,
        hdr: encoded(&h),
    }
}

fn wakes(kind: TaskKind, w: &WakeStats) -> WakeReport {
    let [to_run_idle, to_run_busy] = [latency(&w.to_run[0]), latency(&w.to_run[1])];
    let &WakeStats { wakeups, on_previous, on_waker, beside_idle, stacked, .. } = w;
    WakeReport { kind: kind.name(), wakeups, on_previous, on_waker, beside_idle, stacked, to_run_idle, to_run_busy }
}

fn lock_reports(state: &State) -> Vec<LockReport> {
    let by_class = state.transfers_and_busiest_by_class();
    let counted = state.classes.iter().zip(by_class).map(|(class, of_locks)| (class, class.everywhere(), of_locks));
    let listed =
        |class: &ClassStats, counts: &PlaceStats| is_used(counts) || class.is_held() || class.still_waiting.0 > 0;
    let mut used: Vec<_> = counted.filter(|(class, counts, _)| listed(class, counts)).collect();
    used.sort_by_key(|(class, counts, _)| (std::cmp::Reverse(counts.wait_total), class.name.clone()));
    used.into_iter().map(|(class, counts, of_locks)| lock_report(state, class, counts, of_locks)).collect()
}

fn line_reports(state: &State) -> Vec<LineReport> {
    let mut named: Vec<_> = state.lines_by_name().into_iter().collect();
    named.sort_by_key(|&(_, (_, waited))| std::cmp::Reverse(waited)); // stable: equal ones by name
    let report =
        |(name, (transfers, waited)): (&str, _)| LineReport { name: name.into(), transfers, waited_ns: to_ns(waited) };
    named.into_iter().map(report).collect()
}

fn is_used(counts: &PlaceStats) -> bool {
    counts.acquired > 0 || counts.contended > 0
}

fn counts(s: PlaceStats) -> CountReport {
    let PlaceStats { acquired, contended, found_held, wait_total } = s;
    CountReport { acquired, contended, found_held, wait_total_ns: to_ns(wait_total) }
}

fn kind_report(c: &ClassStats, kind: TaskKind) -> Option<KindReport> {
    let (did, held) = (c.by_kind(kind), c.held[kind as usize]);
    let HoldTimes { running, granted_behind, granted_idle, preempted, blocked, device } = held;
    (is_used(&did) || held.total() > 0).then(|| KindReport {
        kind: kind.name(),
        counts: counts(did),
        running_ns: to_ns(running),
        granted_behind_ns: to_ns(granted_behind),
        granted_idle_ns: to_ns(granted_idle),
        preempted_ns: to_ns(preempted),
        blocked_ns: to_ns(blocked),
        device_ns: to_ns(device),
        grant_to_run: Some(&c.grants[kind as usize]).filter(|grants| !grants.is_empty()).map(latency),
    })
}

fn lock_report(state: &State, c: &ClassStats, all: PlaceStats, (line_transfers, busiest): (u64, Time)) -> LockReport {
    let site = |(number, s): (usize, PlaceStats)| SiteReport { site: state.site_name(number), counts: counts(s) };
    let held: Time = c.held.iter().map(HoldTimes::total).sum();
    let (contended, waits) = (&c.held_contended, c.waits.histogram());
    LockReport {
        name: c.name.clone(),
        role: c.role.clone(),
        r#type: c.kind.perf_name(),
        instances: c.instances,
        acquired: all.acquired,
        contended: all.contended,
        found_held: all.found_held,
        wait_total_ns: to_ns(all.wait_total),
        wait_max_ns: to_ns(c.wait_max),
        wait_p50_ns: waits.value_at_quantile(0.5) as f64,
        wait_p99_ns: waits.value_at_quantile(0.99) as f64,
        wait_hdr: encoded(&waits),
        still_waiting: c.still_waiting.0,
        still_waiting_max_ns: to_ns(c.still_waiting.1),
        hold_total_ns: to_ns(held),
        hold_max_ns: to_ns(c.hold_max),
        busiest_held_ns: to_ns(busiest),
        acquired_shared: c.acquired_shared,
        hold_shared_total_ns: to_ns(c.hold_shared_total),
        held_shared_ns: to_ns(c.held_shared),
        resolved_spinning: c.resolved_spinning,
        slept: c.slept,
        handoffs: c.handoffs,
        steals: c.steals,
        wakeups: c.wakeups,
        line_transfers,
        holder_running_ns: to_ns(contended.running),
        holder_runnable_ns: to_ns(contended.runnable()),
        holder_sleeping_ns: to_ns(contended.blocked),
        holder_device_ns: to_ns(contended.device),
        grant_to_run_ns: to_ns(c.grant_to_run),
        sites: c.by_site().filter(|(_, s)| is_used(s)).map(site).collect(),
        kinds: TaskKind::ALL.iter().filter_map(|&kind| kind_report(c, kind)).collect(),
    }
}

impl StallReport {
    fn new(state: &State, stall: Stall) -> Self {
        Self { kind: stall.kind, at_ns: state.on_the_clock(stall.at), cycle: stall.cycle }
    }
}

fn law_reports(broken: &[Broken], chains: bool) -> Vec<LawReport> {
    LAWS.iter()
        .chain(chains.then_some(&ADD_UP))
        .map(|&law| {
            let first = broken.iter().find(|b| b.law == law).map(|b| b.detail.as_str());
            LawReport { law, ok: first.is_none(), detail: first.unwrap_or_default().to_owned() }
        })
        .collect()
}
