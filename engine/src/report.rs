//! What a run gives back (`docs/seams.md`, seam 2).

use crate::hdr::encoded;
use crate::machine::lock::ClassStats;
use crate::machine::time::to_ns;
use crate::machine::{Account, Outcome, State, Time};
use crate::spec::RunSpec;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
#[allow(missing_docs)]
pub struct RunResult {
    operations: u64,
    window_ns: f64,
    batch_operations: Vec<u64>,
    tasks: u32,
    per_task_operations: Vec<u64>,
    cpu_ns: CpuTimes,
    context_switches: u64,
    involuntary_switches: u64,
    wakeups: u64,
    migrations: u64,
    energy_joules: f64,
    events: u64,
    bytes: u64,
    latency: BTreeMap<&'static str, Latency>,
    locks: Vec<LockReport>,
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

#[derive(Serialize)]
struct LockReport {
    name: String,
    role: String,
    r#type: &'static str,
    instances: u64,
    acquired: u64,
    contended: u64,
    wait_total_ns: f64,
    wait_max_ns: f64,
    wait_p50_ns: f64,
    wait_p99_ns: f64,
    wait_hdr: String,
    hold_total_ns: f64,
    hold_max_ns: f64,
    acquired_shared: u64,
    hold_shared_total_ns: f64,
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
}

#[derive(Serialize)]
struct SiteReport {
    site: &'static str,
    contended: u64,
    wait_total_ns: f64,
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
const LAWS: [&str; 4] = ["mutual exclusion", "no sleep while atomic", "time conservation", "Little's law"];

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
            per_task_operations: state.per_task_operations(),
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
            energy_joules: energy(spec, state, &accounts),
            events: state.processed,
            bytes: state.counters.bytes,
            latency: state.latencies().iter().map(|(name, h)| (*name, latency(h))).collect(),
            locks: lock_reports(state),
            laws: law_reports(&outcome),
            stall: outcome.stall.map(|s| StallReport { kind: s.kind, at_ns: to_ns(s.at), cycle: s.cycle }),
        }
    }
}

fn energy(spec: &RunSpec, state: &State, accounts: &[Time]) -> f64 {
    let seconds = |account: Account| accounts[account as usize] as f64 * 1e-12;
    let active = [Account::User, Account::System, Account::Switch, Account::Irq].map(seconds).iter().sum::<f64>();
    active * spec.machine.watts_active + seconds(Account::Spin) * spec.machine.watts_spin + state.idle_energy()
}

fn latency(h: &Histogram<u64>) -> Latency {
    let at = |q: f64| h.value_at_quantile(q) as f64;
    Latency {
        count: h.len(),
        mean_ns: h.mean(),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        max_ns: h.max() as f64,
        hdr: encoded(h),
    }
}

fn lock_reports(state: &State) -> Vec<LockReport> {
    let transfers = state.line_transfers_by_class();
    let mut reports: Vec<_> =
        state.classes.iter().zip(transfers).filter(|(c, _)| c.acquired > 0 || c.contended > 0).collect();
    reports.sort_by_key(|(c, _)| (std::cmp::Reverse(c.wait_total), c.name.clone()));
    reports.into_iter().map(|(class, transfers)| lock_report(state, class, transfers)).collect()
}

fn lock_report(state: &State, c: &ClassStats, line_transfers: u64) -> LockReport {
    let site = |(number, s): (usize, &crate::machine::lock::SiteStats)| SiteReport {
        site: state.site_name(number),
        contended: s.contended,
        wait_total_ns: to_ns(s.wait_total),
    };
    LockReport {
        name: c.name.clone(),
        role: c.role.clone(),
        r#type: c.kind.perf_name(),
        instances: c.instances,
        acquired: c.acquired,
        contended: c.contended,
        wait_total_ns: to_ns(c.wait_total),
        wait_max_ns: to_ns(c.wait_max),
        wait_p50_ns: c.waits.value_at_quantile(0.5) as f64,
        wait_p99_ns: c.waits.value_at_quantile(0.99) as f64,
        wait_hdr: encoded(&c.waits),
        hold_total_ns: to_ns(c.hold_total),
        hold_max_ns: to_ns(c.hold_max),
        acquired_shared: c.acquired_shared,
        hold_shared_total_ns: to_ns(c.hold_shared_total),
        resolved_spinning: c.resolved_spinning,
        slept: c.slept,
        handoffs: c.handoffs,
        steals: c.steals,
        wakeups: c.wakeups,
        line_transfers,
        holder_running_ns: to_ns(c.holder_running),
        holder_runnable_ns: to_ns(c.holder_runnable),
        holder_sleeping_ns: to_ns(c.holder_sleeping),
        holder_device_ns: to_ns(c.holder_device),
        grant_to_run_ns: to_ns(c.grant_to_run),
        sites: c.sites.iter().enumerate().filter(|(_, s)| s.contended > 0).map(site).collect(),
    }
}

fn law_reports(outcome: &Outcome) -> Vec<LawReport> {
    LAWS.iter()
        .map(|&law| {
            let mut broken = outcome.broken.iter().filter(|b| b.law == law).map(|b| b.detail.as_str());
            let first = broken.next();
            LawReport { law, ok: first.is_none(), detail: first.unwrap_or_default().to_owned() }
        })
        .collect()
}
