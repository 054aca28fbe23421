"""From a scenario to its points and their RunSpecs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simfs.cli import app
from simfs.scenario import (
    Point,
    ScenarioError,
    expand,
    load,
    paths,
    placed_rows,
    selecting_none,
    swept_anyway,
    to_run_spec,
    value_of,
    with_values,
    without_effect,
)
from simfs.scenario.points import drafts
from simfs.scenario.reading.document import Document
from simfs.scenario.schema import Scenario
from simfs.scenario.sections.filesystem import Ext4, Xfs
from simfs.scenario.sections.workload import Dbench

SCENARIO = """\
simfs: 1
name: small
title: Small
machine: server-24
kernel: linux-6.11
filesystem: {kind: xfs, size: 8 GiB, agcount: 49, costs: {cu_short.lock_agi: 1 us}}
workload: {kind: tmpfile, write: 8 KiB, directories: per-task}
variants:
  - {name: xfs}
  - {name: ext4, filesystem: {kind: ext4}, machine: {cpus: 8}, locks: {vfs.i_rwsem: mutex}}
sweep:
  workload.tasks: [1, 2]
  workload.kind: [tmpfile, create]
"""


@pytest.fixture
def small(tmp_path: Path) -> Scenario:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return load(path)


def test_points_come_in_order_and_have_stable_names(small: Scenario) -> None:
    assert [point.id for point in expand(small)] == [
        f"{variant} workload.tasks={tasks} workload.kind={kind}"
        for variant in ("xfs", "ext4")
        for tasks in (1, 2)
        for kind in ("tmpfile", "create")
    ]


def test_a_key_of_one_variant_has_a_value_and_can_be_set(small: Scenario) -> None:
    assert value_of(small, "variants.ext4.machine.cpus") == 8
    changed = with_values(small, {"variants.ext4.machine.cpus": 4})
    assert [point.scenario.machine.cpus for point in expand(changed)] == [None] * 4 + [4] * 4
    with pytest.raises(KeyError):
        value_of(small, "variants.btrfs.machine.cpus")


def test_a_variant_keeps_what_it_does_not_change(small: Scenario) -> None:
    points = expand(small)
    xfs, ext4 = points[0].scenario, points[-1].scenario
    assert isinstance(xfs.filesystem, Xfs)
    assert xfs.filesystem.agcount == 49
    assert isinstance(ext4.filesystem, Ext4)
    assert ext4.filesystem.size == 8 << 30
    assert ext4.filesystem.costs == {}
    assert ext4.machine.profile == "server-24"
    assert ext4.machine.cpus == 8
    assert xfs.machine.cpus is None
    assert ext4.workload.kind == "create"
    assert ext4.workload.directories == "per-task"


def test_a_new_kind_keeps_no_value_that_it_cannot_have() -> None:
    """Both `fs_mark` and `dbench` have `sync`: one a number, the other yes or no."""
    mixed = {
        "simfs": 1, "name": "mixed", "title": "Mixed", "machine": "server-24", "kernel": "linux-6.11",
        "filesystem": {"kind": "xfs"}, "workload": {"kind": "fs_mark", "sync": 0, "tasks": 3},
        "variants": [{"name": "played", "workload": {"kind": "dbench"}}],
    }  # fmt: skip
    (point,) = expand(load(mixed))
    assert isinstance(point.scenario.workload, Dbench)
    assert (point.scenario.workload.tasks, point.scenario.workload.sync) == (3, False)
    with pytest.raises(ScenarioError, match="sync: 2 is not one of 0, 1, 3 or 5"):
        load(mixed | {"workload": {"kind": "fs_mark", "sync": 2}})


NAMED_ALONE = """\
simfs: 1
name: named
title: A variant names a profile alone
machine: {profile: server-24, cpus: 8}
kernel: linux-6.11
workload: {kind: lock_cycle, tasks: 2, lock: mutex, think: 1 us, hold: 1 us}
variants:
  - {name: here}
  - {name: there, machine: dual-socket-48}
"""


def test_a_profile_named_alone_in_a_variant_is_laid_over_its_section(tmp_path: Path) -> None:
    path = tmp_path / "named.yaml"
    path.write_text(NAMED_ALONE)
    checked = [Scenario.model_validate(draft.document.data) for draft in drafts(Document.read(path))]
    run = [point.scenario for point in expand(load(path))]
    assert [scenario.machine.profile for scenario in run] == ["server-24", "dual-socket-48"]
    assert [scenario.machine.cpus for scenario in run] == [8, 8]
    assert checked == run


def test_points_have_nothing_left_to_vary(small: Scenario) -> None:
    for point in expand(small):
        assert not point.scenario.variants
        assert not point.scenario.sweep


def test_overrides_reach_every_point_and_end_a_sweep(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    options = ["workload.tasks=7", "variants.ext4.machine.cpus=4", "measure.seed=9", "machine.cpus=2"]
    points = expand(load(path, options))
    assert {point.scenario.workload.tasks for point in points} == {7}
    assert {(point.variant, point.scenario.machine.cpus) for point in points} == {("xfs", 2), ("ext4", 4)}
    assert {point.scenario.measure.seed for point in points} == {9}
    assert set(points[0].values) == {"workload.kind"}


def test_a_run_spec_has_profile_numbers_with_overrides_on_them(small: Scenario) -> None:
    points = expand(small)
    first, last = to_run_spec(points[0], 3), to_run_spec(points[-1], 0)
    assert first["replication"] == 3
    assert first["filesystem"]["costs"]["cu_short.lock_agi"] == 1000
    assert first["filesystem"]["agcount"] == 49
    assert first["workload"]["params"]["write_bytes"] == 8192
    assert last["machine"]["cpus"] == 8
    assert last["kernel"]["locks"]["vfs.i_rwsem"] == "mutex"
    assert "agcount" not in last["filesystem"]


@pytest.fixture(scope="module", params=paths.names(paths.SCENARIOS))
def shipped(request: pytest.FixtureRequest) -> Scenario:
    """Each shipped scenario; its tests run one after the other, so that it is loaded once."""
    return load(request.param)


@pytest.fixture(scope="module")
def points(shipped: Scenario) -> tuple[Point, ...]:
    return expand(shipped)


def test_every_shipped_point_has_a_run_spec(points: tuple[Point, ...]) -> None:
    assert len({point.id for point in points}) == len(points)
    for point in points:
        spec = json.dumps(to_run_spec(point, 0), allow_nan=False)
        assert json.loads(spec)["workload"]["tasks"] >= 1


def test_a_scenario_dumped_is_the_same_scenario(shipped: Scenario) -> None:
    assert Scenario.model_validate(shipped.model_dump(mode="json", exclude_unset=True)) == shipped


def test_measured_rows_of_modelled_variants_have_a_point(
    shipped: Scenario, points: tuple[Point, ...]
) -> None:
    """Rows of another program, with values that nothing sweeps, are run by `simfs validate` only."""
    variants = {point.variant for point in points}
    for row in placed_rows(shipped.measured):
        if row.variant in variants and row.values.keys() <= shipped.sweep.keys():
            there = (p.values.items() for p in points if p.variant == row.variant)
            assert any(row.values.items() <= values for values in there), f"not in the sweep: {row.values}"


def test_only_calibrate_rows_are_named_by_the_compile_question() -> None:
    scenario = load("compile-24")
    assert [fit.parameter for fit in scenario.calibrate] == ["workload.user_cpu"]
    assert {choice.series for fit in scenario.calibrate for choice in fit.rows} == {"ext4 one directory"}


def test_values_are_set_in_nanoseconds() -> None:
    changed = with_values(load("compile-24"), {"workload.user_cpu": 12_345_678.9})
    assert changed.text == load("compile-24").text != ""  # what the manifest of a fitted run keeps
    assert value_of(changed, "workload.user_cpu") == 12_345_678.9
    assert value_of(expand(changed)[0].scenario, "workload.user_cpu") == 12_345_678.9


def test_a_time_that_the_scenario_leaves_to_a_profile_is_set_in_nanoseconds() -> None:
    given = load("xfs-dbench-kthread").model_dump(mode="json", exclude_unset=True) | {"device": "nvme"}
    changed = with_values(Scenario.model_validate(given), {"device.flush.time": 307e3})
    assert value_of(changed, "device.flush.time") == 307e3


def test_quick_is_shorter_and_keeps_the_points() -> None:
    scenario = load("lock-cycle")
    quick = scenario.model_copy(update={"measure": scenario.measure.quick()})
    assert to_run_spec(expand(quick)[0], 0)["duration_ns"] == scenario.measure.duration / 5
    assert expand(quick)[0].scenario.measure.replications == 5


@pytest.mark.parametrize(
    ("given", "stays"),
    [("measure.duration", "duration"), ("measure.replications", "replications"), ("measure", "duration")],
)
def test_quick_leaves_what_is_set_by_hand(given: str, stays: str) -> None:
    measure = load("lock-cycle", ["measure.duration=70 ms", "measure.replications=3"]).measure
    assert getattr(measure.quick([given]), stays) == getattr(measure, stays)
    assert measure.quick(["workload.tasks"]).duration == measure.duration / 5


@pytest.mark.parametrize(
    ("setting", "lost"),
    [
        ("filesystem.kind=ext4", False),  # one variant leaves it
        ("machine.cpus=12", False),
        ("workload.directories=per-task", False),
        ("workload={kind: create, tasks: 4, directories: shared}", False),  # the kind is left
        ("kernel.rules={xfs.iunlink: on-disk, xfs.inodegc: task}", False),  # one of two is
        ("sweep.workload.tasks=[1, 2]", False),  # no point has a sweep
        ("kernel.rules={xfs.iunlink: on-disk}", True),
        ("kernel.rules.xfs.iunlink=on-disk", True),
    ],
)
def test_a_setting_that_each_variant_sets_itself_is_without_effect(setting: str, *, lost: bool) -> None:
    rules = {"kernel": {"rules": {"xfs.iunlink": "in-memory"}}}
    variants = [{"name": "one", "machine": {"cpus": 8}, **rules}, {"name": "two", **rules}]
    small = {"simfs": 1, "name": "small", "title": "Small", "machine": "server-24", "kernel": "linux-6.11"}
    small |= {"filesystem": {"kind": "xfs"}, "workload": {"kind": "create"}, "variants": variants}
    key = setting.partition("=")[0]
    assert list(without_effect(load(small, [setting]), [key])) == [key] * lost


def test_what_a_variant_sets_of_a_swept_key_is_told(tmp_path: Path) -> None:
    small = {
        "simfs": 1, "name": "a", "title": "A", "machine": "server-24", "kernel": "linux-6.12",
        "workload": {"kind": "lock_cycle", "lock": "mutex", "think": "1 us", "hold": "1 us"},
        "variants": [{"name": "a", "workload": {"tasks": 3}}, {"name": "b", "workload": {"hold": "2 us"}}],
        "sweep": {"workload.tasks": [1, 2]},
    }  # fmt: skip
    assert list(swept_anyway(load(small))) == ["variants.a.workload.tasks"]
    assert list(swept_anyway(load(small, ["workload.tasks=2"]))) == []
    (tmp_path / "a.yaml").write_text(json.dumps(small))
    told = CliRunner().invoke(app, ["explain", str(tmp_path / "a.yaml")]).stderr
    assert "variants.a.workload.tasks has no effect: workload.tasks is swept" in told


def test_no_shipped_scenario_says_anything_in_vain(shipped: Scenario) -> None:
    assert list(swept_anyway(shipped)) == []
    assert list(selecting_none(shipped)) == []


def test_a_setting_of_a_variant_s_lock_role_and_where_it_is_wrong() -> None:
    """The role was cut at its dot, and what is wrong was looked for in the file."""
    changed = load("compile-24", ["variants.xfs-spinning.locks.xfs.buffer=mutex"])
    assert {v.name: v for v in changed.variants}["xfs-spinning"].locks == {"xfs.buffer": "mutex"}
    for wrong in ("locks.xfs.buffer=foo", "filesystem.agcount=-1"):
        with pytest.raises(ScenarioError, match=rf"^--set variants\.xfs-spinning\.{wrong}: "):
            load("compile-24", [f"variants.xfs-spinning.{wrong}"])
