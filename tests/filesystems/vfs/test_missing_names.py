"""`stat` of a name that is not there, and `statfs`: what their callers share on each filesystem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from operations import holds

from engine import Spec, rate, simulate
from simfs.scenario import expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")


def spec(
    path: Path,
    op: str,
    tasks: int,
    *,
    filesystem: str = "tmpfs",
    directories: str = "shared",
    kernel: str = "linux-6.12",
) -> Spec:
    """Tasks on CPUs of their own that do one operation."""
    workload: dict[str, Any] = {
        "kind": "mix",
        "tasks": tasks,
        "binding": "compact",
        "operations": [{"op": op}],
        "directories": directories,
    }
    scenario = path / "missing.yaml"
    scenario.write_text(
        "simfs: 1\nname: m\ntitle: m\nmachine: server-24\n"
        f"kernel: {kernel}\nfilesystem: {{kind: {filesystem}}}\nworkload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {"warmup_ns": 1e6, "duration_ns": 2e6}


def gain(path: Path, op: str, tasks: int, **where: str) -> float:
    """Of so many tasks over one."""
    one, many = (rate(simulate(spec(path, op, n, **where))) for n in (1, tasks))
    return many / one


def test_tmpfs_looks_a_missing_name_up_each_time_with_the_directory_locked_shared(tmp_path: Path) -> None:
    run = simulate(spec(tmp_path, "stat_missing", 1))
    assert holds(run, "vfs.i_rwsem (directory)") == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("filesystem", ["xfs", "btrfs", "ext4"])
def test_others_keep_a_negative_dentry_that_a_walk_finds_without_locks(
    tmp_path: Path, filesystem: str
) -> None:
    run = simulate(spec(tmp_path, "stat_missing", 1, filesystem=filesystem))
    assert holds(run, "vfs.i_rwsem (directory)") == 0
    assert gain(tmp_path, "stat_missing", 8, filesystem=filesystem) > 7.5


def test_processes_that_ask_for_a_missing_name_of_one_directory_of_tmpfs_do_not_scale(tmp_path: Path) -> None:
    assert gain(tmp_path, "stat_missing", 12) < 4
    assert gain(tmp_path, "stat_missing", 12, directories="per-task") > 9  # they meet in the dentry of /


def test_who_kills_a_dentry_comes_to_its_directory_once_less_since_6_8(tmp_path: Path) -> None:
    before, after = (
        holds(simulate(spec(tmp_path, "stat_missing", 12, kernel=kernel)), "vfs.d_lock")
        for kernel in ("linux-6.7", "linux-6.8")
    )
    assert before - after == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("filesystem", "counters"), [("xfs", 3), ("ext4", 3), ("tmpfs", 1), ("btrfs", 0)])
def test_a_statfs_takes_the_lock_of_each_counter_that_it_adds_up(
    tmp_path: Path, filesystem: str, counters: int
) -> None:
    run = simulate(spec(tmp_path, "statfs", 1, filesystem=filesystem))
    assert holds(run, "vfs.percpu_counter") == pytest.approx(counters, rel=0.01)
    assert holds(run, "btrfs.block_rsv") == pytest.approx(float(filesystem == "btrfs"), rel=0.01)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_statfs_of_one_mount_does_not_scale(tmp_path: Path, filesystem: str) -> None:
    assert gain(tmp_path, "statfs", 24, filesystem=filesystem) < 20
    if filesystem in ("xfs", "ext4"):
        assert gain(tmp_path, "statfs", 24, filesystem=filesystem) < 8


@pytest.mark.parametrize("op", ["stat_missing", "statfs"])
def test_both_machines_agree(tmp_path: Path, op: str) -> None:
    assert_same(spec(tmp_path, op, 4) | {"duration_ns": 1e5})
