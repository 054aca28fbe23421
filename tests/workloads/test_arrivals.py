"""`workload.arrivals`: requests that wait for a free task, their delays, and saturation."""

from __future__ import annotations

from typing import Any

import pytest

import simfs
from simfs.results.model import PointResult
from simfs.scenario import ScenarioError, expand, load
from simfs.scenario.sections.lock_tasks import LockCycle

FREE = {"context_switch": 0, "wakeup": 0, "line_hit": 0, "line_llc": 0, "step_cv": 0}
QUEUE: dict[str, Any] = {
    "simfs": 1,
    "name": "queue",
    "title": "A queue",
    "machine": {"profile": "server-24", "cpus": 8, "costs": FREE},
    "kernel": "linux-6.11",
    "workload": {"kind": "lock_cycle", "lock": "qspinlock", "think": 0, "hold": {"exponential": "10 us"}},
    "measure": {"warmup": "5 ms", "duration": "300 ms", "replications": 2},
    "expect": ["response_avg_delay_us > 0", "queue_avg_delay_us >= 0"],
}


def _point(arrivals: dict[str, Any], **workload: Any) -> PointResult:  # noqa: ANN401
    asked = {**QUEUE, "workload": {**QUEUE["workload"], "arrivals": arrivals, **workload}}
    (point,) = simfs.load(asked).run(progress=False).result.points
    return point


def _mean(point: PointResult, name: str) -> float:
    return point.metrics[f"{name}_avg_delay_us"].mean


WAKE = 5.0
"""Longest mean time (us) that the one server takes to leave idle; it is part of what a request waits."""


def test_one_server_is_the_queue_of_the_textbooks() -> None:
    """M/M/1 at half load: a response of 10 us / (1 - 0.5). M/D/1: of 10 us + 10 us * 0.5 / (2 * 0.5)."""
    drawn = _point({"poisson": "50000 /s"})
    assert 19 < _mean(drawn, "response") < 20 + WAKE
    assert _mean(drawn, "response") - _mean(drawn, "queue") == pytest.approx(10, rel=0.05)
    constant = _point({"poisson": "50000 /s"}, hold="10 us")
    assert 14.5 < _mean(constant, "response") < 15 + WAKE
    assert drawn.throughput.mean == pytest.approx(50_000, rel=0.05)
    assert drawn.marks == constant.marks == ()


def test_a_clock_leaves_nobody_waiting_and_a_burst_does() -> None:
    clock = _point({"every": "40 us"}, hold="10 us")
    assert _mean(clock, "queue") < WAKE
    burst = _point({"trace": ["0 ns", "0 ns", "120 us"]}, hold="10 us")
    # three at once: they wait 0, 10 and 20 us
    assert 10 <= _mean(burst, "queue") < 10 + 2 * WAKE
    assert burst.throughput.mean == pytest.approx(clock.throughput.mean, rel=0.01)


def test_a_point_that_cannot_serve_all_is_saturated() -> None:
    point = _point({"poisson": "150000 /s"})
    assert point.marks == ("saturated",)
    assert point.throughput.mean == pytest.approx(100_000, rel=0.05)
    assert _mean(point, "queue") > 10_000


def test_more_servers_serve_more() -> None:
    point = _point({"poisson": "150000 /s"}, tasks=4, think={"exponential": "10 us"}, hold=0)
    assert point.throughput.mean == pytest.approx(150_000, rel=0.05)
    assert "saturated" not in point.marks


@pytest.mark.parametrize("kind", ["create_unlink", "tmpfile", "create", "mix", "compile"])
def test_loads_on_files_serve_requests(kind: str) -> None:
    own: dict[str, Any] = {"files": 2, "operations": [{"op": "stat"}]} if kind == "mix" else {}
    asked = {
        **QUEUE,
        "filesystem": {"kind": "tmpfs"},
        "workload": {"kind": kind, "tasks": 8, "arrivals": {"every": "5 ms"}, **own},
        "measure": {"warmup": "0 ns", "duration": "200 ms", "replications": 1},
    }
    (point,) = simfs.load(asked).run(progress=False).result.points
    assert point.operations == pytest.approx(40, abs=8)
    assert _mean(point, "response") > _mean(point, "queue")


@pytest.mark.parametrize(
    ("arrivals", "says"),
    [
        ({}, "give one of poisson, every, trace"),
        ({"poisson": "1 /s", "every": "1 s"}, "give one of"),
        ({"poisson": 5}, "write a rate as, for example, '5000 /s'"),
        ({"poisson": "5 us"}, "unknown unit 'us' for a rate"),
        ({"poisson": "0 /s"}, "must be above 0"),
        ({"every": "0 us"}, "all arrive at once"),
        ({"trace": []}, "needs at least 1 entry"),
        ({"poison": "1 /s"}, "did you mean 'poisson'"),
    ],
)
def test_what_cannot_arrive_is_refused(arrivals: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load({**QUEUE, "workload": {**QUEUE["workload"], "arrivals": arrivals}})
    assert says in str(refused.value)


def test_a_variant_that_says_how_requests_arrive_says_all_of_it() -> None:
    every = {"every": {"gamma": "9 us", "cv": 0.7}}
    changed = {
        **QUEUE,
        "workload": {**QUEUE["workload"], "arrivals": {"poisson": "20000 /s"}},
        "variants": [{"name": "regular", "workload": {"arrivals": every}}],
    }
    (point,) = expand(load(changed))
    assert isinstance(point.scenario.workload, LockCycle)
    arrivals = point.scenario.workload.arrivals
    assert arrivals is not None
    assert arrivals.poisson is None
    assert arrivals.every is not None
