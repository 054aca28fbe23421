"""Designs of sweeps hold what their names promise, and refinement looks where it should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simfs.experiments.sweep_design import DesignError, Factor, Kind, factor, rows_from, rows_of
from simfs.experiments.sweep_refine import crossings, knee, refinement


def drawn(kind: Kind, *options: str, points: int | None = None) -> list[list[Any]]:
    return [list(row.values()) for row in rows_of([factor(o) for o in options], kind, points, seed=1)]


def test_a_grid_has_every_combination_the_last_key_fastest() -> None:
    assert drawn("grid", "a.b=1,2", "a.c=x,y") == [[1, "x"], [1, "y"], [2, "x"], [2, "y"]]


def test_a_range_in_a_grid_has_both_its_ends() -> None:
    assert drawn("grid", "a.b=5 ms..25 ms", points=3) == [["5 ms"], ["15 ms"], ["25 ms"]]
    assert drawn("grid", "a.b=1..16:log", points=5) == [[1], [2], [4], [8], [16]]


def test_zip_takes_the_lists_in_step() -> None:
    assert drawn("zip", "a.b=1,2,3", "a.c=10..30") == [[1, 10], [2, 20], [3, 30]]


@pytest.mark.parametrize("kind", ["random", "lhs", "sobol"])
def test_drawn_points_stay_in_their_ranges_and_are_the_same_again(kind: Kind) -> None:
    options = ("a.b=1..48", "a.c=5 us..500 us:log", "a.d=xfs,ext4", "a.e=1 MiB..1 GiB", "a.f=0.5..2")
    rows = drawn(kind, *options, points=64)
    assert rows == drawn(kind, *options, points=64)
    assert all(isinstance(row[0], int) and 1 <= row[0] <= 48 for row in rows)
    assert {row[2] for row in rows} == {"xfs", "ext4"}
    assert all(0.5 <= row[4] <= 2 for row in rows)


def test_a_latin_hypercube_has_one_point_in_every_slice() -> None:
    rows = drawn("lhs", "a.b=0.0..1.0", "a.c=0.0..1.0", points=20)
    for column in zip(*rows, strict=True):
        assert sorted(int(x * 20) for x in column) == list(range(20))


def test_sobol_points_fill_every_eighth_alike() -> None:
    rows = np.array(drawn("sobol", "a.b=0.0..1.0", "a.c=0.0..1.0", "a.d=0.0..1.0", points=64))
    eighths = (rows >= 0.5) @ np.array([1, 2, 4])
    assert np.bincount(eighths, minlength=8).tolist() == [8] * 8


def test_whole_numbers_of_a_range_are_equally_likely() -> None:
    one = Factor("a.b", ends=(1.0, 4.0), scale=factor("a.b=1..4").scale)
    counts = np.bincount([int(str(one.at(u))) for u in (np.arange(1000) + 0.5) / 1000])
    assert counts.tolist() == [0, 250, 250, 250, 250]


def test_a_list_comes_from_a_table(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("workload.tasks,workload.hold\n1,5 us\n4,7 us\n4,7 us\n")
    rows = rows_from(tmp_path / "rows.csv")
    assert [dict(row) for row in rows] == [
        {"workload.tasks": 1, "workload.hold": "5 us"},
        {"workload.tasks": 4, "workload.hold": "7 us"},
    ]


def test_a_number_beside_texts_in_a_table_is_a_number(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("workload.tasks,a.b\n1,2\nx,2\n")
    assert [row["workload.tasks"] for row in rows_from(tmp_path / "rows.csv")] == [1, "x"]


def test_a_table_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"workload.tasks\xff\n1\n")
    with pytest.raises(DesignError, match=r"rows\.csv:.* is not UTF-8 text"):
        rows_from(tmp_path / "rows.csv")
    (tmp_path / "rows.csv").write_bytes(b"workload.lock\nmut\xffex\n")
    with pytest.raises(DesignError, match=r"rows\.csv:.* is not UTF-8 text"):
        rows_from(tmp_path / "rows.csv")


def test_two_columns_of_one_key_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("workload.tasks,workload.tasks\n1,2\n")
    with pytest.raises(DesignError, match=r"has two columns 'workload\.tasks'"):
        rows_from(tmp_path / "rows.csv")


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        (["a.b"], "grid", "KEY=LOW..HIGH"),
        (["a.b=5 ms..3"], "grid", "two ends of one unit"),
        (["a.b=5..3"], "grid", "below"),
        (["a.b=0..3:log"], "grid", "above 0"),
        (["a.b=1..3:cubic"], "grid", "no spacing"),
        (["a.b=1,2", "a.b=3"], "grid", "varied twice"),
        (["a.b=1,2", "a.c=1,2,3"], "zip", "3 values where 2"),
        (["a.b=1..9"], "sobol", "--points"),
        (["a.b=[1"], "grid", "not valid YAML"),
    ],
)
def test_what_is_wrong_with_a_design_is_told(options: list[str], kind: Kind, says: str) -> None:
    with pytest.raises(DesignError, match=r"^--(vary|design) ") as caught:
        drawn(kind, *options)
    assert says in str(caught.value)


def test_the_knee_is_where_the_curve_leaves_its_line() -> None:
    curve = [(float(x), min(x, 10) * 100.0) for x in (1, 5, 10, 20, 40)]
    assert knee(curve) == [5, 10, 20]
    assert knee([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]) == []
    assert knee([(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]) == []


def test_crossings_are_found_between_neighbours() -> None:
    one, other = [(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)], [(1.0, 3.0), (2.0, 3.0), (4.0, 3.0)]
    assert list(crossings(one, other)) == [(2.0, 4.0)]
    assert list(crossings(one, one)) == []


def test_refinement_goes_along_the_tasks_if_they_vary() -> None:
    rows = [{"workload.hold": f"{h} us", "workload.tasks": n} for h in (1, 2, 3) for n in (1, 2, 3)]
    assert refinement("knee", rows, ["mutex"]).key == "workload.tasks"
