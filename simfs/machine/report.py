"""What a run gives back: the RunResult of `docs/seams.md`."""

from __future__ import annotations

from typing import Any

from simfs._engine import Histogram
from simfs.machine.chains import ADD_UP, told
from simfs.machine.cpus.cpu import Account
from simfs.machine.lock import LockClass
from simfs.machine.look_back import TOLD, look_back
from simfs.machine.machine import Machine
from simfs.machine.rcu import CALLBACKS
from simfs.machine.stall import Stall
from simfs.machine.statistics import ClassStatistics, Counts, TaskKind, WakeStatistics
from simfs.machine.time import to_ns

LAWS = ("mutual exclusion", "no sleep while atomic", "time conservation", "Little's law", TOLD, CALLBACKS)
"""The laws that every run is checked against."""


def report(machine: Machine, operations: list[int], stall: Stall | None) -> dict[str, Any]:
    """Gather the result of a run that has ended, and look back at it."""
    result = _measured(machine, operations) | told(machine.chains, stalled=stall is not None)
    if stall is None and not machine.broken_laws:
        stall = look_back(machine)
    laws = [_law(machine, law) for law in (*LAWS, *[ADD_UP] * machine.chains.on)]
    said = stall and {"kind": stall.kind, "at_ns": machine.on_the_clock(stall.at), "cycle": stall.cycle}
    return {**result, "laws": laws, "stall": said}


def _measured(machine: Machine, operations: list[int]) -> dict[str, Any]:
    accounts = {a: sum(cpu.accounts[a] for cpu in machine.scheduler.cpus) for a in Account}
    counters = machine.counters
    return {
        "operations": counters.operations,
        "window_ns": to_ns(machine.now - machine.window_start),
        "batch_operations": operations,
        "tasks": machine.spec["workload"]["tasks"],
        "per_task_operations": _per_task_operations(machine),
        **_groups(machine),
        "cpu_ns": {account.value: to_ns(time) for account, time in accounts.items()},
        "context_switches": counters.switches,
        "involuntary_switches": counters.involuntary,
        "wakeups": counters.wakeups,
        "migrations": counters.migrations,
        "pulls": counters.pulls,
        "wakes": [_wakes(kind, wakes) for kind, wakes in machine.wakes.items()],
        "delays": {name: _latency(machine.delays[name]) for name in sorted(machine.delays)},
        **_requests(machine),
        "energy_joules": _energy(machine, accounts),
        "events": machine.clock.processed,
        "bytes": counters.bytes,
        "latency": {name: _latency(machine.latencies[name]) for name in sorted(machine.latencies)},
        "locks": _locks(machine),
        **_lines(machine),
    }


def _requests(machine: Machine) -> dict[str, Any]:
    times = machine.request_times
    return {"requests": {op: _latency(times[op]) for op in sorted(times)}} if times else {}


def _groups(machine: Machine) -> dict[str, Any]:
    groups = [{"name": g["name"], "tasks": g["workload"]["tasks"]} for g in machine.spec.get("groups", ())]
    return {"groups": groups} if groups else {}


def _per_task_operations(machine: Machine) -> list[int]:
    """Operations of each task; of those that never came to start too."""
    operations = [task.operations for task in machine.tasks if not task.background]
    return operations + [0] * (machine.spec["workload"]["tasks"] - len(operations))


def _energy(machine: Machine, accounts: dict[Account, int]) -> float:
    seconds = {account: float(time) * 1e-12 for account, time in accounts.items()}
    active = 0.0
    for account in (Account.USER, Account.SYSTEM, Account.SWITCH, Account.IRQ):
        active += seconds[account]  # sum() rounds in another way since Python 3.12
    watts = machine.spec["machine"]
    spinning = seconds[Account.SPIN] * watts["watts_spin"]
    energy: float = active * watts["watts_active"] + spinning + machine.scheduler.idle_exit.energy()
    return energy


def _latency(histogram: Histogram) -> dict[str, float | str]:
    return {
        "count": histogram.count,
        "mean_ns": histogram.mean,
        "p50_ns": histogram.percentile(50),
        "p90_ns": histogram.percentile(90),
        "p99_ns": histogram.percentile(99),
        "max_ns": histogram.max,
        "hdr": histogram.encode(),
    }


def _wakes(kind: TaskKind, wakes: WakeStatistics) -> dict[str, Any]:
    counts = ("wakeups", "on_previous", "on_waker", "beside_idle", "stacked")
    return {
        "kind": kind.value,
        **{name: getattr(wakes, name) for name in counts},
        "to_run_idle": _latency(wakes.to_run_idle),
        "to_run_busy": _latency(wakes.to_run_busy),
    }


def _locks(machine: Machine) -> list[dict[str, Any]]:
    used = [c for c in machine.classes if _is_listed(c.statistics)]
    used.sort(key=lambda c: (-c.statistics.everywhere.wait_total, c.name))
    return [_lock(machine, lock_class) for lock_class in used]


def _lines(machine: Machine) -> dict[str, Any]:
    """By name the cache lines that somebody waited for, locks' and others'."""
    named = [(line.name, line) for line in machine.lines]
    named += [(lock.lock_class.name, lock.line) for lock in machine.locks if not lock.lies_in_another]
    found: dict[str, list[int]] = {}
    for name, line in named:
        if line.waited:
            sums = found.setdefault(name, [0, 0])
            sums[0] += line.transfers
            sums[1] += line.waited
    longest = sorted(found.items(), key=lambda item: (-item[1][1], item[0]))
    lines = [{"name": name, "transfers": moved, "waited_ns": to_ns(time)} for name, (moved, time) in longest]
    return {"lines": lines} if lines else {}


def _is_listed(statistics: ClassStatistics) -> bool:
    return _is_used(statistics.everywhere) or statistics.is_held or statistics.still_waiting[0] > 0


def _is_used(counts: Counts) -> bool:
    return bool(counts.acquired or counts.contended)


def _counts(counts: Counts) -> dict[str, float]:
    return {
        "acquired": counts.acquired,
        "contended": counts.contended,
        "found_held": counts.found_held,
        "wait_total_ns": to_ns(counts.wait_total),
    }


def _kinds(statistics: ClassStatistics) -> list[dict[str, Any]]:
    """What each kind of task did with the locks, and how long it held them."""
    parts = ("running", "granted_behind", "granted_idle", "preempted", "blocked", "device")
    found = []
    for kind in TaskKind:
        did, held, grants = statistics.by_kind(kind), statistics.held[kind], statistics.grants.get(kind)
        if _is_used(did) or held.total:
            times = {f"{part}_ns": to_ns(getattr(held, part)) for part in parts}
            granted = {"grant_to_run": grants and _latency(grants)}
            found.append({"kind": kind.value, **_counts(did), **times, **granted})
    return found


def _lock(machine: Machine, lock_class: LockClass) -> dict[str, Any]:
    statistics = lock_class.statistics
    locks = [lock for lock in machine.locks if lock.lock_class is lock_class]
    everywhere, contended = statistics.everywhere, statistics.held_contended
    times = ("wait_max", "hold_max", "hold_shared_total", "held_shared", "grant_to_run")
    numbers = (
        "acquired_shared",
        "resolved_spinning",
        "slept",
        "handoffs",
        "steals",
        "wakeups",
    )
    return {
        "name": lock_class.name,
        "role": lock_class.role,
        "type": lock_class.kind.perf_name,
        "instances": lock_class.instances,
        **{name: getattr(statistics, name) for name in numbers},
        **_counts(everywhere),
        **{f"{name}_ns": to_ns(getattr(statistics, name)) for name in times},
        "hold_total_ns": to_ns(sum(held.total for held in statistics.held.values())),
        "busiest_held_ns": to_ns(max((x.held_total for x in locks), default=0)),
        "holder_running_ns": to_ns(contended.running),
        "holder_runnable_ns": to_ns(contended.runnable),
        "holder_sleeping_ns": to_ns(contended.blocked),
        "holder_device_ns": to_ns(contended.device),
        "wait_p50_ns": statistics.waits.percentile(50),
        "wait_p99_ns": statistics.waits.percentile(99),
        "wait_hdr": statistics.waits.encode(),
        "still_waiting": statistics.still_waiting[0],
        "still_waiting_max_ns": to_ns(statistics.still_waiting[1]),
        "line_transfers": sum(x.line.transfers for x in locks if not x.lies_in_another),
        "sites": [
            {"site": name, **_counts(counts)}
            for name in machine.sites
            if _is_used(counts := statistics.by_site(name))
        ],
        "kinds": _kinds(statistics),
    }


def _law(machine: Machine, law: str) -> dict[str, Any]:
    first = next((detail for name, detail in machine.broken_laws if name == law), None)
    return {"law": law, "ok": first is None, "detail": first or ""}
