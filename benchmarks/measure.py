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

ENGINE = Path(__file__).resolve().parent.parent / "engine"

Spec = dict[str, Any]

#: `models/machines/server-24.yaml` and `models/kernels/linux-6.11.yaml` as numbers (ns, W).
BASE: Spec = {
    "seed": 1,
    "warmup_ns": 0,
    "duration_ns": 1e6,
    "machine": {
        "cpus": 24,
        "cpus_per_core": 1,
        "cpus_per_llc": 24,
        "cpus_per_socket": 24,
        "costs": {
            "line_hit": 2,
            "line_smt": 8,
            "line_llc": 49,
            "line_socket": 49,
            "line_remote": 120,
            "line_overlap": 10,
            "cpu_relax": 37,
            "context_switch": 1500,
            "wakeup": 1000,
            "ipi_send": 0,
            "ipi_deliver": 0,
            "speed": 1.0,
        },
        "idle_states": [
            {"name": "C1", "exit_ns": 1e3, "residency_ns": 1e3, "watts": 1.44},
            {"name": "C1E", "exit_ns": 4e3, "residency_ns": 4e3, "watts": 0.88},
            {"name": "C6", "exit_ns": 1.7e5, "residency_ns": 6e5, "watts": 0.1},
        ],
        "watts_active": 4.0,
        "watts_spin": 4.0,
    },
    "kernel": {
        "name": "linux-6.11",
        "tick_ns": 4e6,
        "base_slice_ns": 3e6,
        "run_to_parity": True,
        "preemption": "voluntary",
        "locks": {},
    },
    "filesystem": {"kind": "none"},
    "workload": {"kind": "lock_cycle", "tasks": 24, "params": {}},
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
