"""The heat map of a sweep over two keys: what its cells say, and whether they can be read."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import fakes
import pytest
from pictures import assert_no_overlap, boxes, overlapping

from simfs.reports.figures.factors import heat
from simfs.reports.numbers import with_prefix
from simfs.results.model import ScenarioResult
from simfs.results.run import Runs, run_scenario

KEYS = ("workload.tasks", "workload.hold")


@cache
def a_point() -> ScenarioResult:
    return run_scenario(
        [replace(p, values={**p.values, "workload.hold": 0}) for p in fakes.points(["ext4"], (1,))], Runs(2),
        engine=fakes.engine, to_spec=fakes.to_spec, sweep=KEYS,
    )  # fmt: skip


def grid(rates: list[list[float]], variants: int = 1) -> ScenarioResult:
    """A result with these throughputs; rows are numbers of tasks."""
    (like,) = a_point().points
    points = [
        like.model_copy(
            update={
                "variant": f"variant {variant}",
                "values": {"workload.tasks": row, "workload.hold": column},
                "throughput": like.throughput.model_copy(update={"mean": rate}),
            }
        )
        for variant in range(variants)
        for row, rates_of_row in enumerate(rates)
        for column, rate in enumerate(rates_of_row)
    ]
    return a_point().model_copy(update={"points": tuple(points)})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.00412, "4.12m"), (0.9996, "1.00"), (7, "7.00"), (41.26, "41.3"), (999.4, "999"), (999.6, "1.00k"),
        (1234, "1.23k"), (128_400, "128k"), (1_704_000, "1.70M"), (23.46e6, "23.5M"), (2e9, "2.00G"), (-1500, "-1.50k"),
        (float("nan"), "-"),
    ],
)  # fmt: skip
def test_numbers_with_a_prefix_have_three_digits(value: float, text: str) -> None:
    assert with_prefix(value) == text


def test_cells_have_three_digits() -> None:
    figure = heat(grid([[1_634_000, 1_701_000], [128_400, 997.3]]), KEYS)
    assert {"1.63M", "1.70M", "128k", "997"} <= {name for name, _ in boxes(figure)}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (7, 8), (5, 30), (12, 12), (3, 50), (50, 3), (30, 30)])
@pytest.mark.parametrize("variants", [1, 3, 4])
def test_numbers_in_cells_are_whole_and_apart(rows: int, columns: int, variants: int) -> None:
    assert_no_overlap(heat(grid([[12.3e6] * columns] * rows, variants), KEYS))


@pytest.mark.slow
def test_numbers_that_lie_over_one_another_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simfs.reports.figures.factors.MAX_HEAT", 3.0)
    assert ("12.3M", "12.3M") in overlapping(boxes(heat(grid([[12.3e6] * 50] * 3), KEYS)))


@pytest.mark.slow
def test_cells_of_small_grids_have_numbers() -> None:
    figure = heat(grid([[12.3e6] * 8] * 7, 3), KEYS)
    assert sum(name == "12.3M" for name, _ in boxes(figure)) == 3 * 7 * 8
