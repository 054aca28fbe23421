"""Marks of numbers to be careful with: wide intervals, and replications that fall into two groups."""

from __future__ import annotations

import io
import json

import fakes
import numpy as np
import pytest
from rich.console import Console

import simfs
from simfs.reports.text import print_report, sentences
from simfs.results.aggregate import summarise
from simfs.results.marks import KNOWN, drawn_point, is_wide, observed, two_groups
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.run_result import RunResult
from simfs.results.statistics import Estimate
from simfs.results.tables import tables

BISTABLE = (23_100, 49_000, 23_500, 48_200, 23_300)


def estimate(mean: float, half: float | None) -> Estimate:
    low, high = (None, None) if half is None else (mean - half, mean + half)
    return Estimate(mean=mean, low=low, high=high, n=5)


@pytest.mark.parametrize(
    ("mean", "half", "unit", "wide"),
    [(100, 9.9, "1/s", False), (100, 10.1, "1/s", True), (0, 1, "1/s", True), (100, None, "1/s", False),
     (40, 4.1, "%", True), (0.5, 0.9, "%", False), (3, 1.1, "%", True)],
)  # fmt: skip
def test_an_interval_is_wide_beyond_a_fifth_of_its_value(
    mean: float, half: float | None, unit: str, wide: bool
) -> None:
    assert is_wide(estimate(mean, half), unit) == wide


def test_two_groups_are_told_with_their_means_and_sizes() -> None:
    groups = two_groups(BISTABLE)
    assert groups is not None
    assert groups.means == (pytest.approx(23_300), pytest.approx(48_600))  # type: ignore[comparison-overlap]
    assert groups.sizes == (3, 2)
    assert str(groups) == "3 replications at 2.33e+04, 2 at 4.86e+04"


@pytest.mark.parametrize(
    "rates",
    [(100, 101, 99, 100.5, 100.2), (50, 75, 100, 125, 150), (100, 100, 100, 100, 180), (90, 90.1, 100, 100.1, 90),
     (20, 50, 50), (7, 7, 7, 7)],
    ids=["one group", "spread evenly", "one outlier", "near each other", "too few", "all equal"],
)  # fmt: skip
def test_what_are_no_two_groups(rates: tuple[float, ...]) -> None:
    assert two_groups(rates) is None


@pytest.mark.parametrize("size", [4, 5, 10, 20])
def test_normal_observations_are_found_to_be_two_groups_once_in_a_hundred(size: int) -> None:
    rng = np.random.default_rng(7)
    found = [two_groups(100 + 40 * rng.standard_normal(size)) is not None for _ in range(3000)]
    assert 0.003 < np.mean(found) < 0.02


def test_of_a_single_replication_the_batches_are_looked_at() -> None:
    fast, slow = [50.0] * 10, [20.0] * 10
    steady = [20.0, 21.0] * 10
    assert two_groups(*observed([35.0], fast + slow)) is not None
    assert two_groups(*observed([20.5], steady)) is None
    assert observed([1.0, 2.0], fast) == ([1.0, 2.0], "replications")


@pytest.fixture(scope="module")
def point() -> PointResult:
    asked = fakes.FakePoint(tasks=4)
    one = RunResult.model_validate_json(fakes.engine(json.dumps(fakes.to_spec(asked, 0))))
    seconds = one.window_ns / 1e9
    runs = [one.model_copy(update={"operations": round(rate * seconds)}) for rate in BISTABLE]
    return summarise(asked, runs)


def test_a_bistable_point_is_marked(point: PointResult) -> None:
    assert point.marks == ("wide", "two groups")
    assert point.groups is not None
    assert point.groups.means == (pytest.approx(23_300, rel=1e-3), pytest.approx(48_600, rel=1e-3))  # type: ignore[comparison-overlap]


def test_marks_are_in_the_report_and_in_the_tables(point: PointResult) -> None:
    whole = ScenarioResult.model_validate({"name": "bistable", "points": (point,)})
    out = io.StringIO()
    print_report(whole, Console(file=out, width=118))
    said = " ".join(out.getvalue().split())
    assert "wide, two groups" in said
    assert "a bistable point, not noise" in said
    row = tables(whole)["points"].to_pylist()[0]
    assert row["marks"] == "wide, two groups"
    assert row["groups"].startswith("3 replications at 2.33e+04")


@pytest.mark.parametrize("n", [4, 5, 12, 20])
def test_the_known_percentage_points_are_those_that_are_drawn(n: int) -> None:
    assert KNOWN[n - 4] == pytest.approx(drawn_point(n), rel=1e-12)


def test_a_first_look_says_that_it_is_one() -> None:
    """What builds up slowly is in no interval of short windows."""
    asked = simfs.load(
        "lock-cycle", "workload.tasks=4", "measure={duration: 1 ms, warmup: 0 ms, replications: 2}"
    )
    quick, whole = asked.run(quick=True), asked.run()
    assert quick.result.first_look_of_ns is None  # what is set by hand is not cut
    assert whole.result.first_look_of_ns is None
    cut = simfs.load("lock-cycle", "workload.tasks=4").run(quick=True).result
    assert cut.first_look_of_ns == simfs.load("lock-cycle").scenario.measure.duration
    assert any("a first look (--quick)" in line for line in sentences(cut))
    assert not any("first look" in line for line in sentences(whole.result))
