"""`points:`: what differs at some points of a sweep, and what of it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from simfs.cli import app
from simfs.scenario import ScenarioError, expand, load, points_at, selecting_none, to_run_spec

BASE: dict[str, Any] = {
    "simfs": 1,
    "name": "changed",
    "title": "Files grow with tasks",
    "machine": "server-24",
    "kernel": "linux-6.12",
    "workload": {"kind": "create", "tasks": 1},
    "variants": [{"name": name, "filesystem": {"kind": name}} for name in ("xfs", "ext4")],
    "sweep": {"workload.tasks": [1, 8]},
    "measure": {"duration": "10 ms", "warmup": "5 ms"},
}
MORE = {"at": {"workload.tasks": 8}, "workload": {"initial_files": 80}, "measure": {"duration": "40 ms"}}


def write(folder: Path, *points: object) -> Path:
    file = folder / "changed.yaml"
    with file.open("w", encoding="utf-8") as out:
        YAML(typ="safe").dump(BASE | {"points": list(points)}, out)
    return file


def files_and_windows(file: Path, *options: str) -> dict[str, tuple[int, float, float]]:
    found = {}
    for point in expand(load(file, options)):
        spec = to_run_spec(point, 0)
        files = spec["workload"]["params"]["initial_files"]
        found[point.id] = files, spec["duration_ns"], spec["warmup_ns"]
    return found


def test_only_points_where_all_holds_differ(tmp_path: Path) -> None:
    file = write(
        tmp_path, MORE, {"variant": "ext4", "at": {"workload.tasks": 1}, "measure": {"warmup": "1 ms"}}
    )
    assert files_and_windows(file) == {
        "xfs workload.tasks=1": (0, 10e6, 5e6),
        "xfs workload.tasks=8": (80, 40e6, 5e6),
        "ext4 workload.tasks=1": (0, 10e6, 1e6),
        "ext4 workload.tasks=8": (80, 40e6, 5e6),
    }


def test_later_entries_are_laid_over_earlier_ones(tmp_path: Path) -> None:
    file = write(tmp_path, MORE, {"variant": "xfs", "workload": {"initial_files": 7}})
    assert [files for files, _, _ in files_and_windows(file).values()] == [7, 7, 0, 80]


def test_an_entry_that_selects_nothing_is_told(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        MORE,
        {"at": {"workload.tsks": 8}, "workload": {"initial_files": 7}},
        {"at": {"workload.tasks": 9}, "workload": {"initial_files": 7}},
    )
    assert list(selecting_none(load(file))) == [1, 2]
    told = CliRunner().invoke(app, ["explain", str(file)]).stderr
    assert "points.1: selects no point" in told
    by_hand = CliRunner().invoke(app, ["explain", str(file), "--set", "workload.tasks=9"]).stderr
    assert "selects no point" not in by_hand


def test_it_holds_also_where_a_key_is_set_by_hand_or_points_are_asked_for(tmp_path: Path) -> None:
    file = write(tmp_path, MORE)
    assert [files for files, _, _ in files_and_windows(file, "workload.tasks=8").values()] == [80, 80]
    points = points_at(load(file), [{"workload.tasks": 8}])
    assert [to_run_spec(point, 0)["duration_ns"] for point in points] == [40e6, 40e6]


def test_a_first_look_takes_a_fifth_of_every_window(tmp_path: Path) -> None:
    quick = load(write(tmp_path, MORE, {"workload": {"initial_files": 3}})).quick()
    specs = [to_run_spec(point, 0) for point in expand(quick)]
    assert [spec["duration_ns"] for spec in specs] == [2e6, 8e6, 2e6, 8e6]
    assert {spec["workload"]["params"]["initial_files"] for spec in specs} == {3}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"variant": "ext"}, "no variant 'ext' (did you mean 'ext4'?)"),
        ({"at": {"worklod.tasks": 8}}, "did you mean 'workload.tasks'"),
        ({"measure": {"seed": 2}}, "unknown key 'seed'"),
        ({"workload": {"initial_file": 2}}, "did you mean 'initial_files'"),
        ("xfs", "expected a mapping"),
        (["xfs"], "expected a mapping"),
        ({"at": "workload.tasks"}, "expected a mapping"),
        ({"at": 8}, "expected a mapping"),
    ],
)
def test_what_cannot_differ_is_refused_at_its_place(tmp_path: Path, change: object, says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load(write(tmp_path, change))
    assert says in str(refused.value)
    assert "changed.yaml:" in str(refused.value)
