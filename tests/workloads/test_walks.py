"""Where a walk is when the run begins: in the middle, or each task at another directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, audited, window
from simfs.scenario import ScenarioError, expand, load, to_run_spec


def spec(folder: Path, filesystem: str = "btrfs", **keys: Any) -> Spec:  # noqa: ANN401
    workload = {
        "kind": "mix",
        "operations": [{"op": "walk"}],
        "files": 0,
        "initial_files": 8000,
        "subdirectories": 8,
    }
    path = folder / "w.yaml"
    path.write_text(
        "simfs: 1\nname: w\ntitle: w\nmachine: {profile: server-24, cpus: 4}\nkernel: linux-6.12\ndevice: nvme\n"
        f"filesystem: {{kind: {filesystem}}}\nworkload: {json.dumps(workload | keys)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | window(2e6)


def reads_of_a_step(folder: Path, **keys: Any) -> float:  # noqa: ANN401
    result = audited(spec(folder, **keys))
    return result.requests["read"].count / result.operations


def test_in_the_middle_of_a_directory_of_btrfs_most_leaves_have_been_read(tmp_path: Path) -> None:
    """Names come by hash, so that at the beginning each is in a leaf that nobody has read."""
    large = {"subdirectories": 1, "initial_files": 1000}
    middle, begin = (reads_of_a_step(tmp_path, **large, **keys) for keys in ({"walked": "50 %"}, {}))
    assert middle < 0.5 * begin


def test_a_walk_reads_each_leaf_of_a_large_directory_once(tmp_path: Path) -> None:
    """A leaf of 16 KiB has entries of 58 bytes, or inodes and their references of some 220 together."""
    names = 20_000
    made = spec(tmp_path, subdirectories=1, initial_files=names)
    result = audited(made | {"warmup_ns": 0, "duration_ns": 1e8})
    assert 4000 < result.operations < names
    assert result.requests["read"].count < names * (58 + 220) / 16_384


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_tasks_that_are_spread_lock_directories_of_their_own(tmp_path: Path, filesystem: str) -> None:
    together, spread = (
        audited(spec(tmp_path, filesystem, tasks=4, **keys)) for keys in ({}, {"walked": "spread"})
    )
    assert "vfs.i_rwsem (directory)" in {lock.name for lock in spread.locks}
    used = [
        next(lock for lock in result.locks if lock.name == "vfs.i_rwsem (directory)").line_transfers
        for result in (together, spread)
    ]
    assert used[1] < 0.1 * used[0]


def test_both_machines_do_the_same(tmp_path: Path) -> None:
    made = spec(tmp_path, tasks=2, walked="spread", initial_files=800)
    assert assert_same(made | {"duration_ns": 3e5}) > 100


def test_who_does_not_walk_has_not_walked(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="walked is about walk"):
        spec(tmp_path, operations=[{"op": "stat"}], files=1, walked="spread")
