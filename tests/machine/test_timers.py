"""Timers of the wheel on both machines: when they ring, and that arming moves them."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, window
from simfs import _engine
from simfs import machine as reference
from simfs._engine import Step, Task
from simfs.results.run_result import RunResult
from simfs.scenario import expand, load, to_run_spec
from simfs.scenario.models import load_kernel

TICK = 1e6
ENGINES = pytest.mark.parametrize("engine", [_engine, reference], ids=["native", "reference"])


def spec(wheel: str = "levels", **changes: float) -> Spec:
    made = lock_cycle("semaphore", 1)
    made["kernel"] = made["kernel"] | {"tick_ns": TICK, "rules": {"time.wheel": wheel}}
    made["workload"] = {"kind": "python", "tasks": 1, "params": {}}
    return made | window(900 * TICK) | changes


def run(engine: Any, given: Spec, worker: Callable[..., Generator[Step, Any, None]]) -> RunResult:  # noqa: ANN401
    return RunResult.model_validate_json(engine.run(json.dumps(given), worker))


RINGS = [
    ("levels", 0, 1),
    ("levels", 1, 2),
    ("levels", 62, 63),
    ("levels", 63, 64),
    ("levels", 65, 72),
    ("levels", 503, 504),
    ("levels", 504, 512),
    ("levels", 520, 576),
    ("cascading", 0, 1),
    ("cascading", 1, 1),
    ("cascading", 65, 65),
    ("cascading", 520, 520),
]
"""By wheel and jiffies: the tick that ends a wait which begins before the first one."""


@ENGINES
@pytest.mark.parametrize(("wheel", "jiffies", "ticks"), RINGS)
def test_a_timer_rings_when_its_granule_is_over(engine: Any, wheel: str, jiffies: int, ticks: int) -> None:  # noqa: ANN401
    woken: list[float] = []

    def worker(task: Task) -> Generator[Step, Any, None]:
        yield task.wake_at_tick(task.id, jiffies)
        yield task.park()
        woken.append(task.now)

    run(engine, spec(wheel), worker)
    assert woken == [pytest.approx(ticks * TICK, abs=0.1 * TICK)]


@ENGINES
@pytest.mark.parametrize(("last", "expected"), [("arm", 5), ("wake", 3), ("sooner", 4)])
def test_a_timer_that_is_armed_again_moves_and_one_that_is_not_needed_stops(
    engine: Any,  # noqa: ANN401
    last: str,
    expected: float,
) -> None:
    woken: list[float] = []

    def sleeper(task: Task) -> Generator[Step, Any, None]:
        while True:
            yield task.park()
            woken.append(task.now)

    def worker(task: Task) -> Generator[Step, Any, None]:
        other = yield task.spawn(sleeper, background=True)
        yield task.wake_at_tick(other, 1 if last == "arm" else 9)
        yield task.sleep(0.5 * TICK)
        yield task.wake_at_tick(other, 2 if last == "arm" else 9)
        yield task.sleep(2 * TICK)
        yield task.wake_at_tick(other, 2 if last == "arm" else 1)
        if last == "wake":
            yield task.sleep(0.5 * TICK)
            yield task.wake(other)

    result = run(engine, spec(duration_ns=30 * TICK), worker)
    assert woken == [pytest.approx(expected * TICK, abs=0.1 * TICK)]
    assert sum(wakes.wakeups for wakes in result.wakes if wakes.kind != "load") == 1


@ENGINES
def test_a_tick_accounts_the_running_task_before_its_timers_wake_somebody(engine: Any) -> None:  # noqa: ANN401
    """The new slice of who runs is older than that of who is woken: it runs on until the next tick (`sched_tick`)."""
    ran: list[float] = []

    def sleeper(task: Task) -> Generator[Step, Any, None]:
        yield task.wake_at_tick(task.id, 1)
        yield task.park()
        ran.append(task.now)

    def worker(task: Task) -> Generator[Step, Any, None]:
        yield task.spawn(sleeper, pinned=0, background=True)
        yield task.sleep(0.1 * TICK)
        yield task.run(8 * TICK)

    given = spec()
    given["kernel"]["base_slice_ns"] = 0.75 * TICK
    given["machine"]["costs"]["instruction"] = 0.3
    run(engine, given, worker)
    assert ran == [pytest.approx(3 * TICK, abs=0.1 * TICK)]


UNLINKS = """
simfs: 1
name: unlinks
title: one file after the other, with time between them
machine: guest-2cpu
kernel: linux-6.12
filesystem: {kind: xfs}
workload: {kind: mix, operations: [{op: create, think: 20.3 ms}, {op: unlink}], order: in-turn, tasks: 1}
"""


def test_the_inodegc_worker_starts_at_the_second_tick(tmp_path: Path) -> None:
    path = tmp_path / "unlinks.yaml"
    path.write_text(UNLINKS)
    (point,) = expand(load(path))
    given = to_run_spec(point, 0) | window(400e6)
    tick = given["kernel"]["tick_ns"]
    delay = RunResult.model_validate_json(_engine.run(json.dumps(given))).delays["inodegc"]
    assert delay.count > 10
    assert tick < delay.p50_ns < 2.2 * tick
    assert_same(given | {"duration_ns": 60e6})


STATFS = UNLINKS.replace("linux-6.12", "{profile: linux-6.12, rules: {xfs.statfs_inodegc: RULE}}").replace(
    "{op: unlink}", "{op: unlink}, {op: statfs}"
)


def test_statfs_on_xfs_has_the_inodegc_worker_start_and_from_5_15_to_5_18_waits_for_it(
    tmp_path: Path,
) -> None:
    def of(rule: str) -> tuple[float, float]:
        path = tmp_path / f"{rule}.yaml"
        path.write_text(STATFS.replace("RULE", rule))
        (point,) = expand(load(path))
        given = to_run_spec(point, 0) | window(400e6)
        assert_same(given | {"duration_ns": 60e6})
        found = RunResult.model_validate_json(_engine.run(json.dumps(given)))
        return found.delays["inodegc"].p50_ns, found.latency["statfs"].mean_ns

    timer, push, flush = of("nothing"), of("push"), of("flush")
    assert timer[0] > 4e6
    assert push[0] < 1e4 > flush[0]
    assert 3 * timer[1] < push[1] < flush[1]  # the worker runs before the call returns, which waits or not


def test_a_statfs_goes_over_the_workers_of_all_cpus_also_where_nothing_waits(tmp_path: Path) -> None:
    """`flush_workqueue`: a mutex, and under it two lines of each CPU that another CPU wrote last."""

    def of(rule: str) -> tuple[int, float]:
        path = tmp_path / f"{rule}.yaml"
        text = STATFS.replace("RULE", rule).replace("{op: create, think: 20.3 ms}, {op: unlink}, ", "")
        path.write_text(text.replace("tasks: 1", "tasks: 2"))
        (point,) = expand(load(path))
        given = to_run_spec(point, 0) | window(2e6)
        assert_same(given | {"duration_ns": 1e5})
        found = RunResult.model_validate_json(_engine.run(json.dumps(given)))
        queue = sum(lock.acquired for lock in found.locks if lock.name == "xfs.inodegc_wq")
        return queue - found.operations if queue else 0, found.latency["statfs"].mean_ns

    flush, push = of("flush"), of("push")
    assert abs(flush[0]) <= 2
    assert push[0] == 0
    assert flush[1] > push[1] + 200


@pytest.mark.parametrize(("version", "wheel"), [("4.7", "cascading"), ("4.8", "levels"), ("6.18", "levels")])
def test_the_wheel_has_had_levels_since_4_8(version: str, wheel: str) -> None:
    assert load_kernel(f"linux-{version}").rules["time.wheel"] == wheel
