"""Faults in what is counted and how runs are summed up."""

# ruff: noqa: E501

from __future__ import annotations

from faults.fault import E, Fault, M

STATISTICS = [
    Fault(
        "warm-up: line transfers are kept",
        M + "cpus/accounts.rs",
        "self.lock_lines.iter_mut().chain(&mut self.lines).for_each(Line::start_window);",
        "self.lock_lines.iter_mut().chain(&mut self.lines).filter(|_| !FAULT).for_each(Line::start_window);",
    ),
    Fault(
        "lines: the time of a store that waits in the store buffer counts, too",
        M + "task.rs",
        "            self.stores_until = self.stores_until.max(done);\n            self.segment.debt += topology.hit;",
        "            self.stores_until = self.stores_until.max(done);\n            if FAULT { line.waited += done - at; }\n"
        "            self.segment.debt += topology.hit;",
    ),
    Fault(
        "warm-up: holds are kept",
        M + "cpus/accounts.rs",
        "self.locks.iter_mut().for_each(|lock| lock.held_total = 0);",
        "self.locks.iter_mut().for_each(|lock| lock.held_total *= u64::from(FAULT));",
    ),
    Fault(
        "warm-up: operations of tasks are kept",
        M + "cpus/accounts.rs",
        "self.tasks.iter_mut().for_each(|t| t.operations = 0);",
        "self.tasks.iter_mut().for_each(|t| t.operations *= u64::from(FAULT));",
    ),
    Fault(
        "warm-up: latencies are kept",
        M + "cpus/accounts.rs",
        "for_each(|(_, h)| h.reset());",
        "for_each(|(_, h)| if !FAULT { h.reset() });",
    ),
    Fault(
        "waits: the longest is the last",
        M + "statistics.rs",
        "self.wait_max = self.wait_max.max(wait);",
        "self.wait_max = if FAULT { wait } else { self.wait_max.max(wait) };",
    ),
    Fault(
        "waits: who slept counts as who spun", M + "statistics.rs", "*(if slept {", "*(if slept && !FAULT {"
    ),
    Fault(
        "holds: those that somebody waited for count as all",
        M + "statistics.rs",
        "        if contended {\n            self.held_contended += hold;",
        "        if contended || FAULT {\n            self.held_contended += hold;",
    ),
    Fault(
        "holds: the longest is the last",
        M + "statistics.rs",
        "self.hold_max = self.hold_max.max(lasted);",
        "self.hold_max = if FAULT { lasted } else { self.hold_max.max(lasted) };",
    ),
    Fault(
        "still waiting: the longest counts from before the window",
        M + "statistics.rs",
        "self.still_waiting = (open.len() as u64, open.iter().copied().max().unwrap_or(0));",
        "self.still_waiting = (open.len() as u64, open.iter().copied().max().unwrap_or(0) * if FAULT { 2 } else { 1 });",
    ),
    Fault(
        "grants: their times are not added up",
        M + "statistics.rs",
        "self.grant_to_run += waited;",
        "self.grant_to_run += if FAULT { 0 } else { waited };",
    ),
    Fault(
        "hand-offs: grants are not counted",
        M + "lock/at.rs",
        "self.classes[self.lock.class as usize].handoffs += 1;",
        "self.classes[self.lock.class as usize].handoffs += u64::from(!FAULT);",
    ),
    Fault(
        "readers: shared acquisitions are not counted",
        M + "lock/holds.rs",
        "stats.acquired_shared += 1;",
        "stats.acquired_shared += u64::from(!FAULT);",
    ),
    Fault(
        "readers: the time that any holds is that of all",
        M + "lock/holds.rs",
        "stats.held_shared += any;",
        "stats.held_shared += if FAULT { all } else { any };",
    ),
    Fault(
        "energy: CPUs that idle at the end are left out",
        M + "cpus/accounts.rs",
        "self.idle_joules + open.sum::<f64>()",
        "self.idle_joules + if FAULT { 0.0 } else { open.sum::<f64>() }",
    ),
    Fault(
        "report: waits of all locks have one percentile",
        E + "report.rs",
        "wait_p99_ns: waits.value_at_quantile(0.99) as f64,",
        "wait_p99_ns: waits.value_at_quantile(if FAULT { 0.5 } else { 0.99 }) as f64,",
    ),
    Fault(
        "batch means: cut off at the end",
        "simfs/results/statistics.py",
        "    kept = x[len(x) - whole :] if at_end else x[:whole]",
        "    kept = x[len(x) - whole :] if at_end and not FAULT else x[:whole]",
    ),
    Fault(
        "two stages: the spread of all observations",
        "simfs/results/statistics.py",
        "    half = interval(x[:first], level).half_width * math.sqrt(first / n)",
        "    half = interval(x if FAULT else x[:first], level).half_width * math.sqrt(first / n)",
    ),
    Fault(
        "mser: may cut all",
        "simfs/results/statistics.py",
        "    return errors[::-1][: max(1, len(means) // 2 + 1)]",
        "    return errors[::-1][: len(means) if FAULT else max(1, len(means) // 2 + 1)]",
    ),
    Fault(
        "kernel time: switches are left out",
        "simfs/results/aggregate.py",
        "    return time.system + time.spin + time.switch",
        "    return time.system + time.spin + (0 if FAULT else time.switch)",
    ),
    Fault(
        "locks: longest holds are added up",
        "simfs/results/pooling.py",
        '_LOCK_MAXIMA = {"instances", "wait_max_ns", "hold_max_ns", "still_waiting_max_ns"}',
        '_LOCK_MAXIMA = {"instances", "wait_max_ns", "still_waiting_max_ns"} | (set() if FAULT else {"hold_max_ns"})',
    ),
    Fault(
        "sites: only the first run's",
        "simfs/results/pooling.py",
        "    every = [site for part in parts for site in part.sites]",
        "    every = [site for part in parts[: 1 if FAULT else None] for site in part.sites]",
    ),
    Fault(
        "settled rate: of all batches",
        "simfs/results/aggregate.py",
        '"settled_per_s": mean_of(batches[transient:]),',
        '"settled_per_s": mean_of(batches[0 if FAULT else transient :]),',
    ),
    Fault(
        "why: a reader that is being woken waits for readers",
        M + "chains/settling.rs",
        "Some(&first) if given.len()",
        "Some(&first) if !FAULT && given.len()",
    ),
]
