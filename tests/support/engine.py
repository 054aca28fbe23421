"""Short runs of the native engine for the tests: lock cycles on an ideal machine, points of a scenario."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from simfs._engine import Lock, Machine
from simfs.results.run_result import LockStats, RunResult
from simfs.scenario import expand, load, to_run_spec
from simfs.scenario.models import load_kernel

Spec = dict[str, Any]

FREE: Mapping[str, float] = {
    "line_hit": 0, "line_smt": 0, "line_llc": 0, "line_socket": 0, "line_remote": 0, "line_overlap": 1, "step_cv": 0,
    "smt_speed": 1, "cpu_relax": 0, "context_switch": 0, "wakeup": 0, "ipi_send": 0, "ipi_deliver": 0, "speed": 1,
}  # fmt: skip
"""Costs of an ideal machine: nothing but the program takes time."""

SEED = int(os.environ.get("SIMFS_TEST_SEED", "1"))
"""Of all lock cycles; `python -m tests.seeds` tries others."""

PLAIN: Mapping[str, bool | str] = {"sched.delay_dequeue": False, "sched.groups": "none"}
"""Rules of the scheduler that leave each task a task among others."""

CONSTANTS: Mapping[str, float] = {
    name: quantity.plain for name, quantity in load_kernel("linux-6.12").constants.items()
}
"""Constants of a kernel that there is; tests lay their own over them."""


def window(duration_ns: float) -> Spec:
    """What of a spec says that it is measured from its beginning on, for so long."""
    return {"warmup_ns": 0.0, "duration_ns": duration_ns}


def lock_cycle(
    lock: str = "semaphore",
    tasks: int = 1,
    cpus: int | None = None,
    *,
    warmup_ns: float = 0.0,
    duration_ns: float = 1e6,
    costs: Mapping[str, float] | None = None,
    idle_states: Sequence[Mapping[str, Any]] = (),
    kernel: Mapping[str, Any] | None = None,
    pin_to_cpu: int | None = None,
    binding: str = "none",
    **params: Any,  # noqa: ANN401
) -> Spec:
    """A RunSpec of tasks that think, take a lock, hold it, release it; one CPU a task unless told otherwise."""
    cpus = cpus or tasks
    params = {"think_ns": 1000.0, "hold_ns": 50.0, **params}
    return {
        "seed": SEED,
        "replication": 0,
        "warmup_ns": warmup_ns,
        "duration_ns": duration_ns,
        "machine": {
            **{"cpus": cpus, "cpus_per_core": 1, "cpus_per_llc": cpus, "cpus_per_socket": cpus},
            "costs": {**FREE, **(costs or {})},
            "idle_states": list(idle_states),
            "watts_active": 4.0,
            "watts_spin": 4.0,
        },
        "kernel": {
            **{"name": "test", "tick_ns": 4e6, "base_slice_ns": 3e6, "preemption": "voluntary"},
            **{"locks": {"lock": lock}, "constants": CONSTANTS},
            **(kernel or {}),
            "rules": {**PLAIN, **(kernel or {}).get("rules", {})},
        },
        "filesystem": {"kind": "none"},
        "workload": {"kind": "lock_cycle", "tasks": tasks, "params": params}
        | {"pin_to_cpu": pin_to_cpu, "binding": binding},
    }


def scenario_spec(name: str, variant: str, *overrides: str, warmup_ns: float, duration_ns: float) -> Spec:
    """The RunSpec of the one point that `overrides` leave of a scenario's variant, for a given time."""
    points = [p for p in expand(load(name, list(overrides))) if p.variant == variant]
    if len(points) != 1:
        raise ValueError(f"{name}, {variant}, {overrides}: {len(points)} points instead of one")
    return to_run_spec(points[0], 0) | {"warmup_ns": warmup_ns, "duration_ns": duration_ns}


@cache
def guest_run(variant: str, tasks: int, pin_to_cpu: str = "null", kind: str = "create_unlink") -> RunResult:
    """One point of the guest's scenario, for a fifth of a second."""
    sweep = [
        f"sweep.workload.tasks=[{tasks}]",
        f"sweep.workload.kind=[{kind}]",
        f"sweep.workload.pin_to_cpu=[{pin_to_cpu}]",
    ]
    return simulate(scenario_spec("guest-2cpu", variant, *sweep, warmup_ns=5e7, duration_ns=2e8))


def written_spec(path: Path, text: str, *settings: str) -> Spec:
    """The RunSpec of the first point of a scenario that a test writes, at `path`."""
    path.write_text(text)
    return to_run_spec(expand(load(str(path), settings))[0], 0)


def run_scenario(path: Path, text: str, *, warmup_ns: float, duration_ns: float) -> RunResult:
    """A run of a scenario that a test writes, at `path`, for a given time; it must not stall."""
    return simulate_whole(written_spec(path, text) | {"warmup_ns": warmup_ns, "duration_ns": duration_ns})


def answer(spec: Spec) -> str:
    """What the engine returns, as it returns it."""
    text: str = import_module("simfs._engine").run(json.dumps(spec))
    return text


def read_answer(spec: Spec) -> dict[str, Any]:
    """The same, read. A broken law fails the test."""
    result: dict[str, Any] = json.loads(answer(spec))
    assert [law for law in result["laws"] if not law["ok"]] == []
    return result


def read_whole_answer(spec: Spec) -> dict[str, Any]:
    """The same of a run that must not stall."""
    result = read_answer(spec)
    assert result["stall"] is None
    return result


def per_second(result: Mapping[str, Any], of: str = "operations") -> float:
    """Operations a second of what the engine returned, or `bytes`."""
    return float(result[of] / result["window_ns"] * 1e9)


def acquired(result: Mapping[str, Any], lock: str) -> int:
    """Acquisitions of the locks of one class."""
    return sum(one["acquired"] for one in result["locks"] if one["name"] == lock)


def refused(spec: Spec) -> str:
    """Why the engine refuses a RunSpec; it must."""
    with pytest.raises(ValueError, match=r"\w") as error:
        answer(spec)
    return str(error.value)


def one_lock(machine: Machine) -> Lock:
    """What tasks share that take one lock."""
    return machine.new_lock("lock")


def simulate(spec: Spec) -> RunResult:
    """One run. A broken law fails the test, whatever the test is about."""
    result = RunResult.model_validate_json(answer(spec))
    assert [law for law in result.laws if not law.ok] == []
    return result


def simulate_whole(spec: Spec) -> RunResult:
    """One run, which must not stall."""
    result = simulate(spec)
    assert result.stall is None
    return result


def simulate_all(specs: Sequence[Spec]) -> list[RunResult]:
    """Several runs, on as many threads as there are CPUs."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(simulate, specs))


def replications(spec: Spec, count: int) -> list[RunResult]:
    """The same point with independent random streams."""
    return simulate_all([replicate(spec, number) for number in range(count)])


def replicate(spec: Spec, number: int) -> Spec:
    """One replication of a point."""
    return copy.deepcopy(spec) | {"replication": number}


def the_lock(result: RunResult, name: str = "lock") -> LockStats:
    """The statistics of a lock class."""
    return next(lock for lock in result.locks if lock.name == name)


def rate(result: RunResult) -> float:
    """Operations per nanosecond."""
    return result.operations / result.window_ns


def idle(result: RunResult) -> float:
    """Share of CPU time in which nothing ran."""
    return result.cpu_ns.idle / result.cpu_ns.total


def audited(spec: Spec) -> RunResult:
    """The result of a run whose structures were compared with its files and directories."""
    result = simulate_whole(spec)
    assert result.operations > 20
    return result


def held_each(result: RunResult, name: str) -> float:
    """How long a lock class is held by operation, in nanoseconds."""
    return sum(lock.hold_total_ns for lock in result.locks if lock.name == name) / result.operations


def acquired_each(result: RunResult, name: str) -> float:
    """Acquisitions of a lock class by operation."""
    return sum(lock.acquired for lock in result.locks if lock.name == name) / result.operations
