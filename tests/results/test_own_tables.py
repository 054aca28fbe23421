"""`simfs import` of a table of one's own: every cell is used, or told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.interchange import read
from simfs.interchange.reading import BadCellsError
from simfs.scenario.measured.dataset import Dataset, load_dataset

RUNNER = CliRunner()


def imported(text: str, folder: Path) -> Dataset:
    (folder / "mine.csv").write_text(text, "utf-8")
    out = folder / "mine.yaml"
    answer = RUNNER.invoke(app, ["import", str(folder / "mine.csv"), "-o", str(out)])
    assert answer.exit_code == 0, answer.stderr
    return load_dataset(str(out))


@pytest.mark.parametrize(
    "text",
    [
        "series,tasks,value\next4,1,10\nxfs,1,20\next4,8,30\nxfs,8,40\n",
        "threads,ext4,xfs\n1,10,20\n8,30,40\n",
        "Threads;ext4;xfs\r\n1;10;20\r\n8;30;40\r\n",
        "\ufeff# of last week\nx\text4\txfs\n\n1\t10\t20\n8\t30\t40\n",
        'tasks,"ext4",xfs,predicted\n1,"10",20,7\n8,30,40,7\n',
        "processes  ext4  xfs\n1          10    20\n8          30    40\n",
    ],
    ids=["long", "wide", "semicolons", "tabs", "quoted", "blanks"],
)
def test_a_table_becomes_rows_that_are_scored(text: str, tmp_path: Path) -> None:
    rows = imported(text, tmp_path).rows
    assert {(r.series, r.x, r.value) for r in rows} == {
        ("ext4", 1, 10),
        ("xfs", 1, 20),
        ("ext4", 8, 30),
        ("xfs", 8, 40),
    }
    assert {(r.metric, r.unit, r.role) for r in rows} == {("operations_per_s", "1/s", "predict")}


def test_a_column_may_be_a_metric(tmp_path: Path) -> None:
    rows = imported("threads,ops/s,idle_percent\n1,1000,50\n2,-,60\n", tmp_path).rows
    assert [(r.series, r.x, r.metric, r.value) for r in rows] == [
        ("measured", 1, "operations_per_s", 1000),
        ("measured", 1, "idle_percent", 50),
        ("measured", 2, "idle_percent", 60),
    ]


def test_lines_say_range_role_and_metric(tmp_path: Path) -> None:
    text = (
        "tasks,value,low,high,role,metric,unit,approx\n1,10,9,11,calibrate,,,\n2,50,,,,idle_percent,%,true\n"
    )
    first, second = imported(text, tmp_path).rows
    assert (first.low, first.high, first.role, first.metric) == (9, 11, "calibrate", "operations_per_s")
    assert (second.low, second.role, second.metric, second.approx) == (None, "predict", "idle_percent", True)


def test_runs_of_one_place_become_their_median(tmp_path: Path) -> None:
    (row,) = imported("tasks,ops/s\n4,30\n4,10\n4,20\n", tmp_path).rows
    assert (row.value, row.low, row.high, row.note) == (20, 10, 30, "3 runs")


@pytest.mark.slow
def test_what_validate_prints_is_read_again(tmp_path: Path) -> None:
    printed = RUNNER.invoke(
        app, ["validate", "cas-loops-2026", "--quick", "--format", "csv", "--store", str(tmp_path)]
    ).stdout
    rows = imported(printed, tmp_path).rows
    shipped = {(r.series, r.x, r.metric): (r.value, r.role) for r in load_dataset("cas-loops-2026").rows}
    assert {(r.series, r.x, r.metric): (r.value, r.role) for r in rows}.items() <= shipped.items()


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("tasks,ops/s\n1,10\n2,fast\n", "3:3", "'fast' is no number"),
        ("tasks,ops/s\n1,10k\n", "2:3", "'10k' is no number"),
        ("tasks,ops/s\n1, 50%\n", "2:4", "'50%' is no number"),
        ("tasks,ops/s\n0,10\n", "2:1", "'0' is no number of tasks"),
        ("tasks,ops/s\n1.5,10\n", "2:1", "'1.5' is no number of tasks"),
        ("tasks,ops/s\n1,10,000\n", "2:6", "3 cells, where the line of headings has 2"),
        ("tasks,ops/s\n1\n", "2:1", "1 cells"),
        ("tasks,value\n1,\n", "2:3", "has no value"),
        ("tasks,value,low\n1,2,3\n", "2:3", "2 lies outside its low and high"),
        ("tasks,value,role\n1,2,predct\n", "2:5", "'predct' is no role"),
        ("tasks,value,roel\n1,2,predict\n", "1:13", "did you mean 'role'"),
        ("tasks,value,metric\n1,2,idle_precent\n", "2:5", "did you mean 'idle_percent'"),
        ("tasks,value,metric,unit\n1,2,idle_percent,s\n", "2:18", "is given in %, not in 's'"),
        ("tasks,value,measured\n1,2,3\n", "1:13", "the second column that is value"),
        ("tasks,,value\n1,2,3\n", "1:7", "a column has no heading"),
        ("tasks,a,b,low\n1,2,3,4\n", "1:11", "goes with one column of values"),
        ("tasks,predicted\n1,2\n", "1:1", "no column has values"),
    ],
)
def test_a_cell_that_cannot_be_read_is_told_with_its_place(
    text: str, place: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(text, "utf-8")
    answer = RUNNER.invoke(app, ["import", str(file)])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"{file}:{place}: " in answer.stderr
    assert says in answer.stderr


def test_all_cells_that_cannot_be_read_are_told_at_once() -> None:
    with pytest.raises(BadCellsError) as refused:
        read("tasks,ext4,xfs\n1,a,2\nb,3,c\n")
    assert [(c.line, c.column) for c in refused.value.cells] == [(2, 3), (3, 1), (3, 5)]


def test_a_data_set_in_the_place_of_a_scenario_is_called_that(tmp_path: Path) -> None:
    imported("tasks,mutex\n4,10\n", tmp_path)
    answer = RUNNER.invoke(app, ["run", str(tmp_path / "mine.yaml")])
    assert answer.exit_code == 2
    assert answer.stderr.count("\n") == 1
    assert "is a data set, no scenario; a scenario names it: measured:" in answer.stderr


@pytest.mark.slow
def test_a_data_set_is_compared_by_its_file(tmp_path: Path) -> None:
    imported("tasks,mutex\n4,100000\n", tmp_path)
    answer = RUNNER.invoke(app, ["compare", str(tmp_path / "mine.yaml"), "lock-cycle:mutex", "--quick"])
    assert answer.exit_code == 0, answer.stderr
    assert " 100000 " in answer.stdout
