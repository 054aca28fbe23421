"""What a run gives back: the RunResult of `docs/seams.md`."""

from __future__ import annotations

from typing import Any

from simfs._engine import Histogram
from simfs.machine.cpu import Account
from simfs.machine.lock import LockClass
from simfs.machine.machine import Machine
from simfs.machine.stall import Stall
from simfs.machine.time import to_ns

LAWS = ("mutual exclusion", "no sleep while atomic", "time conservation", "Little's law")
"""The laws that every run is checked against."""


def report(machine: Machine, operations: list[int], stall: Stall | None) -> dict[str, Any]:
    """Gather the result of a run."""
    accounts = {a: sum(cpu.accounts[a] for cpu in machine.scheduler.cpus) for a in Account}
    counters = machine.counters
    return {
        "operations": counters.operations,
        "window_ns": to_ns(machine.now - machine.window_start),
        "batch_operations": operations,
        "tasks": machine.spec["workload"]["tasks"],
        "per_task_operations": [task.operations for task in machine.tasks if not task.background],
        "cpu_ns": {account.value: to_ns(time) for account, time in accounts.items()},
        "context_switches": counters.switches,
        "involuntary_switches": counters.involuntary,
        "wakeups": counters.wakeups,
        "migrations": counters.migrations,
        "energy_joules": _energy(machine, accounts),
        "events": machine.clock.processed,
        "bytes": counters.bytes,
        "latency": {name: _latency(machine.latencies[name]) for name in sorted(machine.latencies)},
        "locks": _locks(machine),
        "laws": [_law(machine, law) for law in LAWS],
        "stall": stall and {"kind": stall.kind, "at_ns": to_ns(stall.at), "cycle": stall.cycle},
    }


def _energy(machine: Machine, accounts: dict[Account, int]) -> float:
    seconds = {account: float(time) * 1e-12 for account, time in accounts.items()}
    active = sum(seconds[a] for a in (Account.USER, Account.SYSTEM, Account.SWITCH, Account.IRQ))
    watts = machine.spec["machine"]
    spinning = seconds[Account.SPIN] * watts["watts_spin"]
    energy: float = active * watts["watts_active"] + spinning + machine.scheduler.idle_energy()
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


def _locks(machine: Machine) -> list[dict[str, Any]]:
    used = [c for c in machine.classes if c.statistics.acquired or c.statistics.contended]
    used.sort(key=lambda c: (-c.statistics.wait_total, c.name))
    return [_lock(machine, lock_class) for lock_class in used]


def _lock(machine: Machine, lock_class: LockClass) -> dict[str, Any]:
    statistics = lock_class.statistics
    times = ("wait_total", "wait_max", "hold_total", "hold_max", "hold_shared_total", "grant_to_run")
    holder = ("holder_running", "holder_runnable", "holder_sleeping", "holder_device")
    counts = (
        "acquired",
        "acquired_shared",
        "contended",
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
        **{name: getattr(statistics, name) for name in counts},
        **{f"{name}_ns": to_ns(getattr(statistics, name)) for name in times + holder},
        "wait_p50_ns": statistics.waits.percentile(50),
        "wait_p99_ns": statistics.waits.percentile(99),
        "wait_hdr": statistics.waits.encode(),
        "line_transfers": sum(
            lock.line.transfers
            for lock in machine.locks
            if lock.lock_class is lock_class and not lock.lies_in_another
        ),
        "sites": [
            {"site": name, "contended": site.contended, "wait_total_ns": to_ns(site.wait_total)}
            for name in machine.sites
            if (site := statistics.sites.get(name))
        ],
    }


def _law(machine: Machine, law: str) -> dict[str, Any]:
    first = next((detail for name, detail in machine.broken_laws if name == law), None)
    return {"law": law, "ok": first is None, "detail": first or ""}
