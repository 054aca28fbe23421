"""Every column of `points`, `locks` and `latency`, of runs whose numbers a person can add up."""

from __future__ import annotations

import math
from typing import Any

import fakes
import pytest

from engine import lock_cycle, simulate, the_lock
from simfs._engine import Histogram
from simfs.results.aggregate import summarise
from simfs.results.model import ScenarioResult, Wall
from simfs.results.run_result import RunResult
from simfs.results.tables import tables

T = math.tan(0.95 * math.pi / 2)
"""Student's t of one degree of freedom, at 95 %: with two runs an interval is T times half their difference."""


def histogram(*ns: int) -> str:
    of = Histogram(3)
    for one in ns:
        of.record(one)
    return of.encode()


def latency(*ns: int) -> dict[str, Any]:
    unread = dict.fromkeys(("mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"), 0.0)
    return {"count": len(ns), **unread, "hdr": histogram(*ns)}


LOCKS: dict[str, tuple[float, float, float]] = {
    "acquired": (10, 20, 30), "contended": (4, 1, 5), "found_held": (3, 1, 4), "wait_total_ns": (400, 600, 1000),
    "instances": (7, 9, 9), "wait_max_ns": (250, 600, 600), "still_waiting": (2, 5, 7),
    "still_waiting_max_ns": (80, 30, 80), "hold_total_ns": (500, 700, 1200), "hold_max_ns": (90, 60, 90),
    "busiest_held_ns": (300, 200, 500), "acquired_shared": (6, 2, 8), "hold_shared_total_ns": (40, 70, 110),
    "held_shared_ns": (30, 50, 80), "resolved_spinning": (1, 0, 1), "slept": (3, 1, 4), "handoffs": (2, 1, 3),
    "steals": (1, 3, 4), "wakeups": (5, 2, 7), "line_transfers": (12, 15, 27), "holder_running_ns": (100, 210, 310),
    "holder_runnable_ns": (10, 20, 30), "holder_sleeping_ns": (1, 3, 4), "holder_device_ns": (5, 8, 13),
    "grant_to_run_ns": (17, 19, 36),
}  # fmt: skip
"""Of a lock by column: in the first run, in the second, together."""

OTHER = {
    "role": "b",
    "type": "rwsem",
    "wait_p50_ns": 100,
    "wait_p99_ns": 600,
    "wait_mean_ns": 200,
    "caller": "unlink",
}
"""Of the same: names, what waits of 100, 100, 100, 100 and 600 ns make, and who waited longest."""


def lock(run: int) -> dict[str, Any]:
    waits, longest = ((100,) * 4, "create") if run == 0 else ((600,), "unlink")
    site = {"site": longest, "acquired": 1, "contended": 1, "found_held": 0, "wait_total_ns": sum(waits)}
    numbers = {name: values[run] for name, values in LOCKS.items()}
    text = {"name": "a", "role": "b", "type": "rwsem", "wait_hdr": histogram(*waits), "sites": [site]}
    return {**numbers, **text, "wait_p50_ns": 0, "wait_p99_ns": 0}


CPU = (
    {"user": 1000, "system": 800, "spin": 400, "switch": 200, "irq": 100, "idle": 1500},
    {"user": 2000, "system": 400, "spin": 0, "switch": 200, "irq": 200, "idle": 1200},
)
"""Of four CPUs in 1000 ns."""


def run(number: int) -> RunResult:
    of = {
        "operations": (40, 60), "batch_operations": ((1, 13, 13, 13), (3, 19, 19, 19)), "cpu_ns": CPU,
        "per_task_operations": ((30, 10), (30, 30)), "context_switches": (20, 60), "energy_joules": (8.0, 6.0),
        "events": (500, 700), "latency": ({"read": latency(100, 100, 100, 700)}, {"read": latency(200)}),
        "locks": ([lock(0)], [lock(1)]),
    }  # fmt: skip
    changes = {name: values[number] for name, values in of.items()}
    plain = {
        "window_ns": 1000,
        "tasks": 2,
        "involuntary_switches": 0,
        "wakeups": 0,
        "migrations": 0,
        "laws": [],
    }
    return RunResult.model_validate(plain | changes)


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    point = summarise(fakes.FakePoint("ext4", 2, cpus=4), [run(0), run(1)])
    wall = Wall(total_s=0, points_s={}, threads=1)
    result = ScenarioResult(
        name="a", operation="operation", sweep=(), points=(point,), findings=(), unmatched=(), wall=wall
    )
    return {name: table.to_pylist()[0] for name, table in tables(result).items() if table.num_rows}


def columns(name: str, first: float, second: float) -> dict[str, float]:
    """A column of means over two runs, and its interval."""
    mean, half = (first + second) / 2, T * abs(first - second) / 2
    return {name: mean, f"ci_low_{name}": mean - half, f"ci_high_{name}": mean + half}


POINT = {"point": "ext4", "variant": "ext4", "tasks": 2}

POINTS: dict[str, Any] = {
    **POINT, "cpus": 4, "origin": "predicted", "replications": 2, "window_ns": 1000, "operations": 100, "events": 1200,
    "throughput_per_s": 50e6, "ci_low_per_s": 50e6 - T * 10e6, "ci_high_per_s": 50e6 + T * 10e6,
    "ideal_per_s": None, "twin_per_s": None, "bound_per_s": None, "groups": None,
    **columns("user_percent", 25, 50), **columns("system_percent", 20, 10), **columns("spin_percent", 10, 0),
    **columns("switch_percent", 5, 5), **columns("irq_percent", 2.5, 5), **columns("idle_percent", 37.5, 30),
    **columns("context_switches_per_s", 20e6, 60e6), **columns("context_switches_per_operation", 0.5, 1),
    **columns("joules_per_operation", 0.2, 0.1), **columns("fairness", 0.8, 1), **columns("max_min", 3, 1),
    "transient_batches": 1, "settled_per_s": 64e6,
}  # fmt: skip
"""Batches of 250 ns have 2, 16, 16 and 16 operations on average: the first is the transient."""


def test_every_column_of_points(rows: dict[str, dict[str, Any]]) -> None:
    found = rows["points"]
    assert found.pop("marks") == "wide"
    assert found == {name: pytest.approx(value) for name, value in POINTS.items()}


def test_every_column_of_locks(rows: dict[str, dict[str, Any]]) -> None:
    together = {name: values[2] for name, values in LOCKS.items()}
    assert rows["locks"] == {
        name: pytest.approx(v) for name, v in {**POINT, "lock": "a", **together, **OTHER}.items()
    }


def test_every_column_of_latency(rows: dict[str, dict[str, Any]]) -> None:
    times = {"count": 5, "mean_ns": 240, "p50_ns": 100, "p90_ns": 700, "p99_ns": 700, "max_ns": 700}
    assert rows["latency"] == {
        name: pytest.approx(v) for name, v in {**POINT, "operation": "read", **times}.items()
    }


def test_time_in_the_kernel_has_spinning_and_switching() -> None:
    point = summarise(fakes.FakePoint("ext4", 2, cpus=4), [run(0), run(1)])
    assert point.system_ns_per_operation is not None
    assert point.system_ns_per_operation.mean == pytest.approx((1400 / 40 + 600 / 60) / 2)


SATURATED: dict[str, float] = {
    "acquired": 200, "contended": 200, "found_held": 200, "instances": 1, "wait_total_ns": 39_900, "wait_max_ns": 200,
    "wait_p50_ns": 200, "wait_p99_ns": 200, "still_waiting": 1, "still_waiting_max_ns": 100, "hold_total_ns": 60_000,
    "hold_max_ns": 300, "busiest_held_ns": 60_000, "acquired_shared": 0, "hold_shared_total_ns": 0,
    "held_shared_ns": 0, "steals": 0, "holder_running_ns": 60_000, "holder_runnable_ns": 0, "holder_sleeping_ns": 0,
    "holder_device_ns": 0, "grant_to_run_ns": 0,
}  # fmt: skip
"""Two tasks think for 100 ns and hold a lock for 300, in 60 us: it is always held, who does not hold it
waits for 200 of 300 ns, and the window has 100 ns of the last wait."""

SPINS = {"resolved_spinning": 200, "slept": 0, "handoffs": 0, "wakeups": 0, "line_transfers": 800}
SLEEPS = {"resolved_spinning": 0, "slept": 200, "handoffs": 200, "wakeups": 200, "line_transfers": 200}
"""Who spins fetches the lock's line twice to queue, to take and to leave it; who sleeps to queue."""

READERS = {
    "acquired": 300, "acquired_shared": 300, "contended": 0, "found_held": 0, "hold_shared_total_ns": 90_000,
    "hold_total_ns": 0, "wait_total_ns": 0, "busiest_held_ns": 0,
}  # fmt: skip
"""The same as readers of an rwsem: each holds it for 300 of 400 ns."""


@pytest.mark.parametrize(("kind", "waits"), [("qspinlock", SPINS), ("semaphore", SLEEPS)])
def test_every_number_of_a_lock_that_is_always_held(kind: str, waits: dict[str, float]) -> None:
    result = simulate(lock_cycle(kind, 2, 2, think_ns=100, hold_ns=300, warmup_ns=60_000, duration_ns=60_000))
    of = the_lock(result).model_dump(exclude={"name", "role", "type", "wait_hdr", "sites", "kinds"})
    assert of == SATURATED | waits
    assert result.operations == 200
    spent = {"user": 20_000, "system": 60_000, "switch": 0, "irq": 0}
    waited = {"spin": 40_000, "idle": 0} if kind == "qspinlock" else {"spin": 0, "idle": 40_000}
    assert result.cpu_ns.model_dump() == spent | waited
    assert (result.latency["cycle"].count, result.latency["cycle"].p50_ns) == (200, 500)


def test_every_number_of_a_lock_that_readers_share() -> None:
    result = simulate(
        lock_cycle(
            "rwsem", 2, 2, think_ns=100, hold_ns=300, readers=1.0, warmup_ns=60_000, duration_ns=60_000
        )
    )
    of = the_lock(result)
    assert {name: getattr(of, name) for name in READERS} == READERS
    assert of.held_shared_ns == 45_000
