"""A benchmark that sleeps before its tasks start, and whose clock runs meanwhile."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfs.results.paused import Paused
from simfs.results.statistics import Estimate
from simfs.scenario import ScenarioError
from simfs.scenario.measured.dataset import load_dataset
from simfs.scenario.measured.metrics import metric

RUN = Paused(operations=300_000, seconds=10)
AIM7 = """
name: n
title: t
source: {author: a, date: d, where: w}
machine: m
kernel: k
series: {s: {pause: 10 s, operations: 300000}}
rows: [{series: s, x: 1, metric: operations_per_s, unit: 1/s, value: 14806}]
"""


def seen(name: str, mean: float, rate: float = 30_000) -> float:
    estimate = RUN.seen(metric(name), Estimate(mean=mean, low=mean, high=mean, n=1), rate)
    assert estimate is not None
    return estimate.mean


def test_half_of_a_run_of_twenty_seconds_is_the_pause() -> None:
    assert seen("operations_per_s", 30_000) == 15_000
    assert seen("context_switches_per_s", 1000) == 500
    assert seen("system_percent", 90) == 45
    assert seen("idle_percent", 4) == 52
    assert seen("real_s", 10) == 20
    assert seen("avg_latency_us", 7) == 7
    assert seen("context_switches_per_operation", 7) == 7


@given(st.floats(1, 1e6))
def test_what_is_drawn_beside_a_simulated_rate_is_the_measured_one_without_the_pause(rate: float) -> None:
    assert RUN.while_running(RUN.rate(rate)) == pytest.approx(rate)


def test_no_rate_is_so_low_that_the_pause_does_not_fit() -> None:
    assert RUN.while_running(30_000) == math.inf


def test_a_pause_needs_the_operations_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(AIM7)
    assert load_dataset(str(path)).series["s"].pause == 10e9
    path.write_text(AIM7.replace(", operations: 300000", ""))
    with pytest.raises(ScenarioError, match="only the operations of the run can tell"):
        load_dataset(str(path))
