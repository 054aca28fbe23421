"""What `simfs validate` makes of rows and their predictions: errors, changes and their signs, baselines."""

from __future__ import annotations

from typing import Any

import pytest

from simfs.results.validation import SAYERS, Row, changes, score, with_baselines


def row(series: str, x: float, measured: float, role: Any = "predict", **more: Any) -> Row:  # noqa: ANN401
    return Row(
        "set", series, x, role, more.pop("metric", "files_per_s"), more.pop("unit", "1/s"), measured, **more
    )


def test_errors_are_absolute_relative_and_of_predict_rows_alone() -> None:
    rows = [
        row("a", 1, 100, "calibrate", predicted=900.0),
        row("a", 2, 100, predicted=110.0),
        row("a", 4, 100, predicted=80.0),
        row("a", 8, 100, predicted=160.0),
        row("a", 16, 100),
        row("a", 32, 100, "info", predicted=900.0),
        row("a", 2, 20, metric="idle_percent", unit="%", predicted=32.0),
        row("a", 4, 0, metric="idle_percent", unit="%", predicted=2.0),
    ]
    found = score(rows)
    assert found.rows == 5
    assert (found.median, found.worst) == pytest.approx((0.2, 0.6))
    assert found.points == pytest.approx((7, 12))
    assert rows[7].error is None


def test_changes_are_along_x_and_between_series_that_follow_each_other() -> None:
    rows = [row(s, x, v) for s, x, v in [("a", 1, 1), ("a", 4, 3), ("a", 2, 2), ("b", 2, 5), ("c", 2, 7)]]
    found = [(a.series, a.x, b.series, b.x) for a, b in changes(rows)]
    assert found == [("a", 1, "a", 2), ("a", 2, "a", 4), ("a", 2, "b", 2), ("b", 2, "c", 2)]


def test_no_change_counts_that_was_not_measured_or_leads_between_rows_that_were_fitted_on() -> None:
    same = [row("a", 1, 5), row("b", 1, 5)]
    within_runs = [row("a", 1, 5, low=4.0, high=7.0), row("b", 1, 6, low=5.0, high=8.0)]
    fitted = [row("a", 1, 5, "calibrate"), row("b", 1, 6, "calibrate")]
    told = [row("a", 1, 5), row("b", 1, 6, "info")]
    one_run = [row("a", 1, 100), row("b", 1, 101.5)]
    about = [row("a", 1, 100, approx=True), row("b", 1, 108, approx=True)]
    idle = [
        row("a", 1, 0.2, metric="idle_percent", unit="%"),
        row("b", 1, 1.9, metric="idle_percent", unit="%"),
    ]
    other = [row("a", 1, 5), row("b", 1, 6, metric="creates_per_s")]
    for rows in (same, within_runs, fitted, told, other, one_run, about, idle):
        assert list(changes(rows)) == []


def test_a_sign_is_right_where_the_prediction_moves_the_same_way() -> None:
    rows = [
        row("a", 1, 10, "calibrate", predicted=10.0),
        row("a", 2, 20, predicted=11.0),
        row("a", 4, 15, predicted=12.0),
        row("a", 8, 18, predicted=12.0),
    ]
    assert (score(rows).right, score(rows).changes) == (1, 3)
    assert score(rows).signs == pytest.approx(1 / 3)


def test_nothing_changes_says_the_nearest_calibrate_row_of_its_own_series_or_another() -> None:
    rows = [
        row("a", 1, 10, "calibrate"),
        row("a", 16, 70, "calibrate"),
        row("a", 4, 20),
        row("a", 12, 60),
        row("b", 16, 90),
        row("b", 16, 5, metric="idle_percent", unit="%"),
    ]
    assert [r.nothing for r in with_baselines(rows, over_tasks=True)] == [10, 70, 10, 70, 70, None]


def test_the_scalability_law_goes_through_three_calibrate_rows_of_a_series() -> None:
    law = {n: 1000 * n / (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1)) for n in (1, 4, 16, 48)}
    rows = [row("a", n, rate, "calibrate" if n < 48 else "predict") for n, rate in law.items()]
    rows += [row("b", 48, 5.0), row("a", 48, 5.0, metric="idle_percent", unit="%")]
    found = with_baselines(rows, over_tasks=True)
    assert found[3].usl == pytest.approx(law[48])
    assert [r.usl for r in found[4:]] == [None, None]
    assert score(found, SAYERS["USL"]).worst == pytest.approx(0, abs=1e-6)
    assert {r.usl for r in with_baselines(rows, over_tasks=False)} == {None}
    assert {r.usl for r in with_baselines(rows[1:], over_tasks=True)} == {None}
