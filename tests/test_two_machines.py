"""The native and the reference machine do the same, event for event, and report the same."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import assert_same

from engine import CONSTANTS, FREE, Spec, lock_cycle
from simfs.machine.locks import KINDS
from simfs.machine.own import is_own
from simfs.scenario import expand, load, paths, to_run_spec

LOCKS = sorted(KINDS)
SHIPPED = sorted(paths.names(paths.SCENARIOS))

times = st.one_of(st.just(0.0), st.integers(1, 40).map(lambda n: n * 100.0), st.floats(0.5, 5e4))
"""Nanoseconds: nothing (ties), round numbers (ties again), anything."""


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    cpus = draw(st.integers(1, 8))
    sharing = [draw(st.integers(1, cpus)) for _ in range(3)]
    cheap = st.one_of(st.just(0.0), st.floats(0.1, 300))
    lines = ("line_hit", "line_smt", "line_llc", "line_socket", "line_remote")
    switches = ("context_switch", "wakeup", "ipi_send", "ipi_deliver")
    states = [{"name": "C1", "exit_ns": draw(times), "residency_ns": 500.0, "watts": 1.5}]
    return {
        "cpus": cpus,
        **dict(zip(("cpus_per_core", "cpus_per_llc", "cpus_per_socket"), sorted(sharing), strict=True)),
        "costs": {**FREE}
        | {name: draw(cheap) for name in lines}
        | {name: draw(st.one_of(st.just(0.0), st.just(1000.0), st.floats(1, 5000))) for name in switches}
        | {"line_overlap": 10.0},
        "idle_states": draw(st.sampled_from([[], states])),
        "watts_active": 4.0,
        "watts_spin": 3.0,
    }


CFS = st.fixed_dictionaries(
    {"latency_ns": st.sampled_from([2e4, 2.4e6]), "wakeup_granularity_ns": st.sampled_from([0.0, 5e3, 4e5])}
)
"""Times of the old scheduler; a kernel without them has EEVDF."""


@st.composite
def kernels(draw: st.DrawFn, locks: dict[str, str]) -> dict[str, Any]:
    patience = {"rwsem_handoff_wait": draw(times), "percpu_rwsem_grace_period": draw(times)}
    return {
        "name": "generated",
        "tick_ns": draw(st.sampled_from([1e4, 1e5, 1e6])),
        "base_slice_ns": draw(st.sampled_from([1e3, 3e4, 7e5])),
        "cfs": draw(st.one_of(st.none(), CFS)),
        "run_to_parity": draw(st.booleans()),
        "preemption": draw(st.sampled_from(["none", "voluntary", "full"])),
        "locks": locks,
        "constants": {**CONSTANTS, **patience, "migration_cost": draw(times)},
    }


@st.composite
def lock_cycles(draw: st.DrawFn) -> Spec:
    kind = draw(st.sampled_from(LOCKS))
    params: dict[str, Any] = {}
    for what in ("think", "hold"):
        params[f"{what}_ns"] = draw(times) + 50.0  # so that time goes on
        params[f"{what}_distribution"] = draw(st.sampled_from(["constant", "exponential", "lognormal"]))
        params[f"{what}_cv"] = 1.0
    params["think"] = draw(st.sampled_from(["cpu", "sleep"]))
    params["readers"] = draw(st.sampled_from([0.0, 0.3, 0.9]))
    params["blocking"] = draw(st.sampled_from([0.0, 0.5, 1.0]))
    params["locks"] = draw(st.integers(1, 2))
    params["order"] = draw(st.sampled_from(["same", "opposite"]))
    if kind == "semaphore" and draw(st.booleans()):
        params |= {"device_ns": draw(times) + 50.0, "device_distribution": "exponential", "device_cv": 1.0}
    spec = lock_cycle(kind, tasks=draw(st.integers(1, 12)), cpus=1, **params)
    spec["seed"] = draw(st.integers(0, 2**32))
    spec["warmup_ns"], spec["duration_ns"] = draw(times), 2e5
    spec["machine"] = draw(machines())
    spec["kernel"] = draw(kernels({"lock": kind}))
    if draw(st.booleans()):
        spec["workload"]["pin_to_cpu"] = draw(st.integers(0, spec["machine"]["cpus"] - 1))
    return spec


@cache
def points(name: str) -> list[Spec]:
    specs = [to_run_spec(point, 0) for point in expand(load(name))]
    return [spec for spec in specs if not any(map(is_own, spec["kernel"]["locks"].values()))]


@dataclass(frozen=True)
class FileWorkload:
    """A point of a shipped scenario on another machine and kernel."""

    point: int
    tasks: int
    machine: dict[str, Any]
    kernel: dict[str, Any]
    seed: int

    def spec(self) -> Spec:
        spec = copy.deepcopy(points("guest-2cpu")[self.point])
        spec["workload"] |= {"tasks": self.tasks, "pin_to_cpu": None}
        own = {"machine": self.machine, "kernel": self.kernel, "seed": self.seed}
        return spec | own | {"warmup_ns": 0.0, "duration_ns": 1e6}


@st.composite
def file_workloads(draw: st.DrawFn) -> FileWorkload:
    point = draw(st.integers(0, len(points("guest-2cpu")) - 1))
    sleeping = st.sampled_from(["semaphore", "mutex", "rwsem"])
    roles = points("guest-2cpu")[point]["kernel"]["locks"]
    return FileWorkload(
        point=point,
        tasks=draw(st.integers(1, 8)),
        machine=draw(machines()),
        kernel=draw(kernels({role: draw(sleeping) for role in roles})),
        seed=draw(st.integers(0, 2**32)),
    )


@given(lock_cycles())
def test_both_machines_give_the_same_trace_of_any_lock_cycle(spec: Spec) -> None:
    assert_same(spec)


@given(file_workloads())
def test_both_machines_give_the_same_trace_of_any_filesystem_on_any_kernel(workload: FileWorkload) -> None:
    assert_same(workload.spec())


@pytest.mark.parametrize("name", SHIPPED)
def test_both_machines_give_the_same_trace_of_every_shipped_scenario(name: str) -> None:
    events = 0
    for spec in _few(points(name)):
        events += assert_same(spec | {"warmup_ns": 1e6, "duration_ns": 4e6})
    assert events > 100


def _few(specs: list[Spec]) -> list[Spec]:
    """At most six points of a scenario, spread over its variants and sweep, with at most eight tasks."""
    few = specs[:: max(1, len(specs) // 6)]
    return [
        spec | {"workload": spec["workload"] | {"tasks": min(spec["workload"]["tasks"], 8)}} for spec in few
    ]
