"""Processor time and memory of the engine's example programs, as ratios within one run.

Everything that is compared is run in turns (a, b, c, a, b, c, ...) so that other load on the computer meets
all alike; the minimum is the figure, the median tells how far to trust it.
"""

from __future__ import annotations

import copy
import json
import os
import statistics
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simfs.scenario import expand, load, to_run_spec

ENGINE = Path(__file__).resolve().parent.parent / "engine"

Spec = dict[str, Any]

#: 24 tasks and one lock on server-24 under linux-6.11, as the scenario has them.
BASE: Spec = to_run_spec(expand(load("lock-cycle", ["workload.tasks=24"]))[0], 0) | {
    "warmup_ns": 0,
    "duration_ns": 1e6,
}


@dataclass(frozen=True)
class Run:
    """What one run took and did."""

    #: Processor time, user and system (ns).
    cpu_ns: float
    #: Largest resident set (bytes).
    rss_bytes: int
    #: Lock cycles done.
    cycles: int
    #: Events processed.
    events: int
    #: Share of simulated time during which the lock was held.
    utilisation: float

    @property
    def cpu_ns_per_cycle(self) -> float:
        """Processor time per lock cycle (ns)."""
        return self.cpu_ns / self.cycles


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one thing."""

    values: tuple[float, ...]

    @property
    def minimum(self) -> float:
        """The least disturbed measurement."""
        return min(self.values)

    @property
    def median(self) -> float:
        """The usual measurement."""
        return statistics.median(self.values)


def lock_cycle(lock: str, *, tasks: int = 24, duration_ns: float = 1e7, **params: float | str) -> Spec:
    """Return the spec of a lock cycle with exponential times that thinks on the CPU, but for `params`."""
    spec = copy.deepcopy(BASE)
    spec["duration_ns"] = duration_ns
    spec["kernel"]["locks"] = {"lock": lock}
    spec["workload"]["tasks"] = tasks
    spec["workload"]["params"] = {
        "think": "cpu",
        "think_ns": 1000,
        "think_distribution": "exponential",
        "hold_ns": 50,
        "hold_distribution": "exponential",
        **params,
    }
    return spec


def lasting(spec: Spec, cycles: int) -> Spec:
    """Return `spec` with the simulated time in which it does about `cycles` cycles."""
    spec["duration_ns"] *= cycles / run_engine(spec).cycles
    return spec


def build() -> None:
    """Compile the two example programs, optimised."""
    command = ["cargo", "build", "--release", "--quiet", "--example", "run", "--example", "floor"]
    subprocess.run(command, cwd=ENGINE, check=True)


def run_engine(spec: Spec) -> Run:
    """Run `spec` in a process of its own."""
    return _run("run", [], json.dumps(spec))


def run_floor(tasks: int, cycles: int) -> Run:
    """Run the loop that models nothing."""
    return _run("floor", [str(tasks), str(cycles)], "")


def interleaved(repeats: int, measurements: Mapping[str, Callable[[], float]]) -> dict[str, Sample]:
    """Take every measurement `repeats` times, in turns."""
    values: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(repeats):
        for name, measurement in measurements.items():
            values[name].append(measurement())
    return {name: Sample(tuple(taken)) for name, taken in values.items()}


def verdict(name: str, value: float, bound: float, *, at_most: bool = False, unit: str = "") -> bool:
    """Print a figure beside what is asked of it; return whether it holds."""
    holds = value <= bound if at_most else value >= bound
    wanted = f"at {'most' if at_most else 'least'} {bound:g}{unit}"
    print(f"{name:<58} {value:9.2f}{unit}   {wanted:<18} {'yes' if holds else 'NO'}")
    return holds


def _run(program: str, arguments: list[str], text: str) -> Run:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ENGINE / "target"))
    command = [str(target / "release" / "examples" / program), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(text)
        process.stdin.close()
        result = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or result.get("stall") is not None:
        raise RuntimeError(f"{program} failed: {result.get('stall')}")
    held = sum(lock["hold_total_ns"] for lock in result.get("locks", []) if lock["name"] == "lock")
    return Run(
        cpu_ns=(usage.ru_utime + usage.ru_stime) * 1e9,
        rss_bytes=usage.ru_maxrss * 1024,
        cycles=result["operations"],
        events=result.get("events", 0),
        utilisation=held / result["window_ns"],
    )
