"""A fake engine: mean value analysis of one queueing lock before N CPUs, with a little seeded noise.

It answers specs of the documented shape with results of the documented shape, so that everything after the
engine can be tested and looked at without one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simfs._engine import Histogram
from simfs.experiments.calibrate import Parameter, calibrate
from simfs.results.model import MeasuredRow, ScenarioResult, Value
from simfs.results.run import Runs, run_scenario

TASKS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48)

VARIANTS: dict[str, dict[str, Any]] = {
    "xfs, one directory": {"lock_ns": 850e3},
    "xfs, directory per task": {"lock_ns": 300e3},
    "xfs, agcount=49": {"lock_ns": 60e3},
    "xfs, spinning buffers": {"lock_ns": 600e3, "spins": True},
    "ext4": {"lock_ns": 90e3, "spins": True},
    "btrfs": {"lock_ns": 450e3, "spins": True},
    "tmpfs": {"lock_ns": 10e3, "spins": True},
}


@dataclass(frozen=True)
class FakePoint:
    """A point of a scenario as results see it, with what the fake engine needs."""

    variant: str = "ext4"
    tasks: int = 1
    cpus: int = 24
    user_ns: float = 1e7
    lock_ns: float = 1e5
    spins: bool = False
    values: Mapping[str, Value] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return "/".join([self.variant, *(f"{k}={v}" for k, v in self.values.items())])


def points(
    variants: Sequence[str] = tuple(VARIANTS), tasks: Sequence[int] = TASKS, user_ns: float = 1.4e7
) -> list[FakePoint]:
    """Every variant at every task count."""
    return [
        FakePoint(v, n, user_ns=user_ns, **VARIANTS[v], values={"workload.tasks": n})
        for v in variants
        for n in tasks
    ]


def to_spec(point: FakePoint, replication: int) -> dict[str, Any]:
    """The parts of a RunSpec that the fake engine reads."""
    return {
        "seed": 1,
        "replication": replication,
        "warmup_ns": 0.0,
        "duration_ns": 1e9,
        "batches": 20,
        "machine": {"cpus": point.cpus},
        "workload": {"tasks": point.tasks, "params": {"user_cpu_ns": point.user_ns}},
        "fake": {"lock_ns": point.lock_ns, "spins": point.spins},
    }


def engine(text: str) -> str:
    """Answer one RunSpec."""
    spec = json.loads(text)
    spec.setdefault("fake", {"lock_ns": 2e5, "spins": False})
    tasks, cpus = spec["workload"]["tasks"], spec["machine"]["cpus"]
    user, hold = spec["workload"]["params"]["user_cpu_ns"], spec["fake"]["lock_ns"]
    rng = np.random.default_rng([spec["seed"], spec["replication"], tasks, int(hold)])
    think, rate, wait = user * 1.1, 0.0, 0.0
    for n in range(1, tasks + 1):  # exact mean value analysis: a delay station, then the lock
        wait = hold * (1 + rate * wait)
        rate = n / (think * max(1.0, n / cpus) + wait)
    rate *= 1 + rng.normal(0, 0.01)
    return json.dumps(_result(spec, rate, think, hold, wait - hold, rng))


def _result(
    spec: dict[str, Any], rate: float, think: float, hold: float, wait: float, rng: np.random.Generator
) -> dict[str, Any]:
    window, tasks, cpus = spec["duration_ns"], spec["workload"]["tasks"], spec["machine"]["cpus"]
    operations = round(rate * window)
    capacity = cpus * window
    spin = operations * wait * 0.3 if spec["fake"]["spins"] else 0.0
    switch = operations * 3000.0
    busy = operations * (think + hold)
    scale = min(1.0, capacity / (busy + spin + switch))
    cpu = {
        "user": operations * think / 1.1 * scale,
        "system": operations * (hold + think / 11) * scale,
        "spin": spin * scale,
        "switch": switch * scale,
        "irq": 0.0,
    }
    cpu["idle"] = max(0.0, capacity - sum(cpu.values()))
    batches, shares = (rng.multinomial(operations, np.full(n, 1 / n)) for n in (spec["batches"], tasks))
    return {
        "operations": operations,
        "window_ns": window,
        "batch_operations": batches.tolist(),
        "tasks": tasks,
        "per_task_operations": shares.tolist(),
        "cpu_ns": cpu,
        "context_switches": 3 * operations,
        "involuntary_switches": operations // 9,
        "wakeups": 2 * operations,
        "migrations": operations // 30,
        "energy_joules": 4e-9 * (capacity - cpu["idle"]) + 1.4e-9 * cpu["idle"],
        "events": 40 * operations,
        "latency": {
            kind: _latency(operations, (think + hold + wait) * part)
            for kind, part in (("operation", 1.0), ("create", 0.1), ("unlink", 0.05))
        },
        "locks": _locks(operations, wait, hold, sleeps=not spec["fake"]["spins"]),
        "laws": [{"law": "time conservation", "ok": True, "detail": ""}],
        "stall": None,
    }


def _latency(count: int, mean: float) -> dict[str, float | str]:
    return {
        "count": count,
        "mean_ns": mean,
        "p50_ns": 0.8 * mean,
        "p90_ns": 1.9 * mean,
        "p99_ns": 3.1 * mean,
        "max_ns": 6 * mean,
        "hdr": _hdr(count, mean),
    }


def _hdr(count: int, mean: float) -> str:
    histogram = Histogram(3)
    for share in range(min(count, 20)):
        histogram.record(round(mean * (0.5 + share / 20)))
    return histogram.encode()


def _locks(operations: int, wait: float, hold: float, *, sleeps: bool) -> list[dict[str, Any]]:
    return [
        _lock("xfs.AGI", "xfs.buffer", "semaphore", operations, wait, hold, sleeps),
        _lock("vfs.i_rwsem", "vfs.i_rwsem", "rwsem:W", operations, wait / 4, hold / 3, False),
        _lock("xfs.AGF", "xfs.buffer", "semaphore", operations // 2, wait / 20, hold / 9, True),
    ]


def _lock(
    name: str, role: str, kind: str, acquired: int, wait: float, hold: float, sleeps: bool
) -> dict[str, Any]:
    contended = round(acquired * min(1.0, wait / (wait + hold))) if wait else 0
    total, held = wait * acquired, hold * acquired
    slept = contended if sleeps else contended // 3
    return {
        "name": name,
        "role": role,
        "type": kind,
        "instances": 4,
        "acquired": acquired,
        "contended": contended,
        "wait_total_ns": total,
        "wait_max_ns": 9 * wait,
        "wait_p50_ns": 0.7 * wait,
        "wait_p99_ns": 4 * wait,
        "wait_hdr": _hdr(contended, wait),
        "hold_total_ns": held,
        "hold_max_ns": 5 * hold,
        "acquired_shared": 0,
        "hold_shared_total_ns": 0.0,
        "resolved_spinning": contended - slept,
        "slept": slept,
        "handoffs": slept,
        "steals": 0 if sleeps else contended // 10,
        "wakeups": slept,
        "line_transfers": 3 * contended,
        "holder_running_ns": 0.55 * held,
        "holder_runnable_ns": 0.1 * held,
        "holder_sleeping_ns": 0.3 * held,
        "holder_device_ns": 0.05 * held,
        "grant_to_run_ns": 2000.0 * slept,
        "sites": [
            _site("unlink", acquired // 2, contended // 2, total * 0.53),
            _site("create", acquired // 2, contended - contended // 2, total * 0.47),
        ],
    }


def _site(name: str, acquired: int, contended: int, wait: float) -> dict[str, Any]:
    return {"site": name, "acquired": acquired, "contended": contended, "wait_total_ns": wait}


def row(variant: str, tasks: int, metric: str, value: float, role: str = "predict") -> MeasuredRow:
    """A measured row of a made-up dataset."""
    return MeasuredRow.model_validate(
        {
            "dataset": "fake-2024",
            "series": variant,
            "variant": variant,
            "values": {"tasks": tasks},
            "metric": metric,
            "value": value,
            "role": role,
            "approx": True,
        }
    )


ROWS = (
    row("ext4", 24, "compiles_per_s", 1500, "calibrate"),
    row("ext4", 24, "idle_percent", 0, "predict"),
    row("btrfs", 24, "compiles_per_s", 1500),
    row("xfs, one directory", 24, "compiles_per_s", 1100),
    row("xfs, one directory", 24, "idle_percent", 20),
    row("xfs, agcount=49", 24, "compiles_per_s", 1500),
)


TWO = ("ext4", "xfs, one directory")
THREE = Runs(3)


def scenario(threads: int = 2, runs: Runs = THREE, **options: Any) -> ScenarioResult:  # noqa: ANN401
    """The result of a scenario of two variants."""
    given: dict[str, Any] = {
        "engine": engine,
        "to_spec": to_spec,
        "sweep": ("workload.tasks",),
    } | options
    return run_scenario(points(TWO), runs, threads=threads, **given)


def fitted(rows: tuple[Any, ...] = ROWS, low: float = 1e6, high: float = 1e8) -> Any:  # noqa: ANN401
    """A fit of the user time on measured rows."""
    return calibrate(
        [Parameter("workload.user_cpu", low, high)],
        rows,
        lambda values: points(user_ns=values["workload.user_cpu"]),
        to_spec=to_spec,
        engine=engine,
    )
