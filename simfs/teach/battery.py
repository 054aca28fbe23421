"""A lock on the simulated machine: 1, 2, n and 2n tasks, one CPU and many, with random ties and preemption."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

CPUS = 4
BESIDE = ("qspinlock", "ticket", "mutex", "semaphore")
"""Built-in locks whose throughput is laid beside."""


@dataclass(frozen=True)
class Load:
    """So many tasks on so many CPUs, for so many milliseconds."""

    name: str
    tasks: int
    cpus: int
    milliseconds: float
    preemption: str = "voluntary"


LOADS = (
    Load("1 task", 1, CPUS, 0.5),
    Load("2 tasks", 2, CPUS, 1),
    Load("as many tasks as CPUs", CPUS, CPUS, 2),
    Load("twice as many", 2 * CPUS, CPUS, 4, "full"),
    Load("one CPU", CPUS, 1, 8, "full"),
)
FEW = LOADS[:3]
"""Those with a CPU for each task."""
FULL = LOADS[2]
"""The load of which throughput is told: somebody always wants the lock."""


@dataclass(frozen=True)
class Ran:
    """What a run gave."""

    load: Load
    held: float
    """The share of the time for which the lock was held."""
    rate: float
    """Acquisitions a second."""
    slept: int
    contended: int
    least: int
    most: int
    """How often the task that had the lock least, and most, had it."""
    broken: tuple[str, ...]
    """Laws that did not hold."""
    stall: str | None


def battery(reference: str, loads: tuple[Load, ...] = LOADS) -> list[Ran]:
    """Run the lock `FILE.py:CLASS` under loads. Raises OwnLockError for what its code raises."""
    from simfs import machine

    return [_ran(load, machine.run(_spec(reference, load))) for load in loads]


def beside() -> dict[str, float]:
    """The acquisitions a second of the built-in locks under the full load."""
    from simfs import _engine

    return {kind: _ran(FULL, _engine.run(_spec(kind, FULL))).rate for kind in BESIDE}


def _spec(kind: str, load: Load) -> str:
    """The RunSpec of a load: short thinking, so that who can wants the lock again soon."""
    from simfs import scenario

    settings = [
        f"machine.cpus={load.cpus}",
        f"workload.tasks={load.tasks}",
        "workload.think={exponential: 1 us}",
        "workload.hold={exponential: 2 us}",
        f"kernel={{profile: linux-6.11, preemption: {load.preemption}, tick: 1 ms}}",
    ]
    point = next(
        point for point in scenario.expand(scenario.load("own-lock", settings)) if point.variant == "mutex"
    )
    spec = scenario.to_run_spec(point, 0)
    spec["kernel"]["locks"] = {**spec["kernel"]["locks"], "lock": kind}
    spec |= {"shuffle_ties": True, "warmup_ns": 1e5, "duration_ns": load.milliseconds * 1e6}
    return json.dumps(spec)


def _ran(load: Load, text: str) -> Ran:
    result: dict[str, Any] = json.loads(text)
    lock = next(lock for lock in result["locks"] if lock["name"] == "lock")
    stall = result["stall"]
    return Ran(
        load=load,
        held=lock["busiest_held_ns"] / result["window_ns"],
        rate=lock["acquired"] / result["window_ns"] * 1e9,
        slept=lock["slept"],
        contended=lock["contended"],
        least=min(result["per_task_operations"]),
        most=max(result["per_task_operations"]),
        broken=tuple(f"{law['law']}: {law['detail']}" for law in result["laws"] if not law["ok"]),
        stall=f"{stall['kind']}: {'; '.join(stall['cycle'])}" if stall else None,
    )
