"""Nice levels and groups: how CPUs are shared between kernel threads and a load that competes as one session."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from engine import Spec, lock_cycle
from simfs import _engine
from simfs._engine import Step, Task
from simfs.machine.sched.load import HALF_LIFE, MOST, Average, Wanted
from simfs.results.run_result import RunResult

CFS: dict[str, Any] = {"cfs": {"latency_ns": 24e6, "wakeup_granularity_ns": 4e6}}
EEVDF: dict[str, Any] = {}

THREADS = {"bound_interval_ns": 1.0, "unbound_interval_ns": 1e15, "run_ns": 2e7}
"""A kernel thread bound to each CPU, which always wants it."""


def two_a_cpu(policy: dict[str, Any], groups: str, cpus: int = 1) -> Spec:
    """Two tasks on each CPU that want all of it in user mode, for four seconds, the second half of them measured."""
    rules = {"sched.class": "cfs" if policy else "eevdf", "sched.groups": groups}
    kernel = {**policy, "tick_ns": 1e6, "preemption": "full", "rules": rules}
    times: dict[str, Any] = {"think": "cpu", "think_ns": 1e5, "hold_ns": 1, "binding": "compact"}
    return lock_cycle(
        "rwsem", 2 * cpus, cpus, warmup_ns=2e9, duration_ns=2e9, kernel=kernel, readers=1.0, **times
    )


def simulate(given: Spec, *worker: Any) -> RunResult:  # noqa: ANN401
    result = RunResult.model_validate_json(_engine.run(json.dumps(given), *worker))
    assert [law for law in result.laws if not law.ok] == []
    return result


def hog(task: Task, nice: int = 0, what: str = "hog") -> Generator[Step, Any, None]:
    """Uses CPU time, an operation each 100 us."""
    yield task.set_nice(nice)
    while True:
        yield task.begin()
        yield task.run(1e5)
        yield task.end(what)


# ---- nice levels ---------------------------------------------------------------------------------------------------


def two_hogs(task: Task) -> Generator[Step, Any, None]:
    yield task.spawn(hog, 0, "nice 0", pinned=0, background=True)
    yield task.spawn(hog, 5, "nice 5", pinned=0, background=True)


@pytest.mark.parametrize("groups", ["none", "autogroup"])
@pytest.mark.parametrize("policy", [EEVDF, CFS], ids=["eevdf", "cfs"])
def test_tasks_share_a_cpu_by_the_weights_of_their_nice_levels(policy: dict[str, Any], groups: str) -> None:
    given = two_a_cpu(policy, groups) | {"workload": {"kind": "python", "tasks": 1}}
    result = simulate(given, two_hogs)
    assert result.latency["nice 5"].count / result.operations == pytest.approx(335 / (335 + 1024), rel=0.05)


# ---- groups --------------------------------------------------------------------------------------------------------


def kernel_share(given: Spec) -> float:
    """How much of the time kernel threads have, one on each CPU."""
    given["kernel"]["kernel_threads"] = THREADS
    times = simulate(given).cpu_ns
    return times.system / (times.system + times.user)


@pytest.mark.parametrize(("groups", "share"), [("none", 1 / 3), ("autogroup", 1 / 2), ("cgroup", 1 / 2)])
@pytest.mark.parametrize("policy", [EEVDF, CFS], ids=["eevdf", "cfs"])
def test_a_session_has_as_much_of_a_cpu_as_one_kernel_thread(
    policy: dict[str, Any], groups: str, share: float
) -> None:
    assert kernel_share(two_a_cpu(policy, groups)) == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize("policy", [EEVDF, CFS], ids=["eevdf", "cfs"])
def test_a_nice_load_without_groups_has_less_of_a_cpu_than_a_kernel_thread(policy: dict[str, Any]) -> None:
    given = two_a_cpu(policy, "none")
    given["workload"]["nice"] = 5
    assert kernel_share(given) == pytest.approx(1024 / (1024 + 2 * 335), rel=0.05)


@pytest.mark.parametrize("policy", [EEVDF, CFS], ids=["eevdf", "cfs"])
def test_the_groups_weight_is_divided_among_the_cpus_that_have_tasks_of_it(policy: dict[str, Any]) -> None:
    """With eight CPUs the group weighs an eighth of a kernel thread on each of them."""
    assert kernel_share(two_a_cpu(policy, "autogroup", cpus=8)) == pytest.approx(8 / 9, rel=0.02)


# ---- averages ------------------------------------------------------------------------------------------------------


def test_an_average_of_what_was_always_on_is_its_weight() -> None:
    average = Average()
    for ms in range(1, 400):
        average.update(ms * 10**9, Wanted(1, 1, running=True), 1024)
    assert 1022 <= average.load <= 1024
    assert 1022 <= average.utilization <= 1024
    assert average.runnable == average.utilization


@pytest.mark.parametrize("steps", [1, 7, 32])
def test_what_was_a_half_life_ago_counts_half_however_often_one_looks(steps: int) -> None:
    average = Average(load_sum=MOST, running_sum=MOST << 10)
    for step in range(1, steps + 1):
        average.update(HALF_LIFE * 1024 * 1024 * 1000 * step // steps, Wanted(0, 0, running=False), 1024)
    assert average.load == pytest.approx(512 * MOST / (MOST - 1024), abs=steps)
    assert average.utilization == pytest.approx(average.load, abs=1)


def test_a_member_takes_away_from_its_queue_what_it_brought() -> None:
    queue, member = Average(), Average(load=1024, utilization=300, runnable=700)
    member.align(queue, 1024)
    queue.attach(member, 1024)
    assert (queue.load, queue.utilization, queue.runnable) == (1024, 300, 700)
    queue.detach(member, 1024)
    assert (queue.load, queue.utilization, queue.runnable) == (0, 0, 0)
