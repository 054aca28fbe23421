"""The native and the reference machine do the same, event for event, and report the same."""

from __future__ import annotations

from functools import cache

import pytest
from generated.programs import GeneratedProgram, programs
from generated.scenarios import Drawn, file_scenarios, lock_scenarios
from hypothesis import given, settings
from machines import assert_same, short

from engine import Spec
from simfs.machine.own import is_own
from simfs.scenario import expand, load, paths, to_run_spec

SHIPPED = sorted(paths.names(paths.SCENARIOS))


def share(part: float) -> settings:
    """So many of the examples of this run, 1 is all; `python -m tests.agree` compares on more."""
    return settings(max_examples=round(part * settings().max_examples))


@pytest.mark.slow
@share(0.4)
@given(lock_scenarios())
def test_both_machines_give_the_same_trace_of_any_locks(drawn: Drawn) -> None:
    assert_same(short(drawn.spec(), 2_500))


@pytest.mark.slow
@share(0.3)
@given(programs())
def test_both_machines_give_the_same_trace_of_any_python_program(program: GeneratedProgram) -> None:
    assert_same(program.spec, program.worker, program.setup)


@pytest.mark.slow
@share(0.8)
@given(file_scenarios())
def test_both_machines_give_the_same_trace_of_any_filesystem_on_any_kernel(drawn: Drawn) -> None:
    assert_same(short(drawn.spec(), 2_500))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_both_machines_give_the_same_trace_of_every_shipped_scenario(name: str) -> None:
    events = 0
    for spec in _few(points(name)):
        events += assert_same(short(spec))
    assert events > 100


@cache
def points(name: str) -> list[Spec]:
    """The points of a shipped scenario that both machines can run."""
    specs = [to_run_spec(point, 0) for point in expand(load(name))]
    return [spec for spec in specs if not any(map(is_own, spec["kernel"]["locks"].values()))]


def _few(specs: list[Spec]) -> list[Spec]:
    """At most six points of a scenario, spread over its variants and sweep; few tasks and files."""
    few = [spec | {"workload": dict(spec["workload"])} for spec in specs[:: -(-len(specs) // 6)]]
    for workload in (spec["workload"] for spec in few):
        workload["tasks"] = min(workload["tasks"], 8)
        params = workload["params"]
        for key, most in {"initial_files": 10_000, "files": 20}.items():
            if isinstance(params.get(key), int | float):  # fio's files are a word
                params = params | {key: min(params[key], most)}
        workload["params"] = params
    return few
