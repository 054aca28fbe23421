"""The native and the reference machine do the same, event for event, and report the same."""

from __future__ import annotations

import json

import pytest
from generated import GeneratedProgram, Moved, lock_cycles, moved_scenarios, points, programs
from hypothesis import given, settings
from machines import assert_same

from engine import Spec
from simfs import _engine
from simfs.scenario import paths
from simfs.scenario.program import with_programs

SHIPPED = sorted(paths.names(paths.SCENARIOS))


def share(part: float) -> settings:
    """So much of the examples of this run."""
    return settings(max_examples=round(part * settings().max_examples))


@share(0.4)
@given(lock_cycles())
def test_both_machines_give_the_same_trace_of_any_lock_cycle(spec: Spec) -> None:
    assert_same(spec)


@pytest.mark.slow
@share(0.35)
@given(programs())
def test_both_machines_give_the_same_trace_of_any_python_program(program: GeneratedProgram) -> None:
    assert_same(program.spec, program.worker, program.setup)


@pytest.mark.slow
@share(0.15)
@given(moved_scenarios("guest-2cpu"))
def test_both_machines_give_the_same_trace_of_any_filesystem_on_any_kernel(moved: Moved) -> None:
    assert_same(moved.spec())


@share(0.1)
@given(moved_scenarios("range-locks"))
def test_both_machines_give_the_same_trace_of_range_locks_over_any_lock(moved: Moved) -> None:
    assert_same(moved.spec() | {"duration_ns": 2e4})


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_both_machines_give_the_same_trace_of_every_shipped_scenario(name: str) -> None:
    events = 0
    for spec in _few(points(name)):
        events += assert_same(_short(spec))
    assert events > 100


def _few(specs: list[Spec]) -> list[Spec]:
    """At most six points of a scenario, spread over its variants and sweep; few tasks and initial files."""
    few = [spec | {"workload": dict(spec["workload"])} for spec in specs[:: -(-len(specs) // 6)]]
    for workload in (spec["workload"] for spec in few):
        workload["tasks"] = min(workload["tasks"], 8)
        if "initial_files" in workload["params"]:
            few_files = min(workload["params"]["initial_files"], 10_000)
            workload["params"] = workload["params"] | {"initial_files": few_files}
    return few


def _short(spec: Spec, most: float = 12_000) -> Spec:
    """Some milliseconds of a run, but not many more events than told; cycles without contention are none."""
    pilot = json.loads(with_programs(_engine.run)(json.dumps(spec | {"warmup_ns": 0, "duration_ns": 1e5})))
    span = min(5e6, 1e5 * most / max(pilot["events"], 4 * pilot["operations"], 1))
    return spec | {"warmup_ns": 0.2 * span, "duration_ns": 0.8 * span}
