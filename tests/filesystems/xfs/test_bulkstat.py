"""`XFS_IOC_BULKSTAT`: inodes by number, group by group, in at the superblock's list and out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired_each, audited, held_each, window
from simfs.results.run_result import RunResult
from simfs.scenario import ScenarioError, expand, load, to_run_spec


def spec(folder: Path, filesystem: str = "xfs", **keys: Any) -> Spec:  # noqa: ANN401
    workload = {"kind": "mix", "operations": [{"op": "bulkstat"}], "files": 0, "subdirectories": 4}
    path = folder / "b.yaml"
    path.write_text(
        "simfs: 1\nname: b\ntitle: b\nmachine: {profile: server-24, cpus: 8}\nkernel: linux-6.12\n"
        f"{'' if filesystem == 'tmpfs' else 'device: nvme'}\nfilesystem: {{kind: {filesystem}}}\n"
        f"workload: {json.dumps(workload | keys)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | window(4e6)


def run(folder: Path, **keys: Any) -> RunResult:  # noqa: ANN401
    return audited(spec(folder, **keys))


def test_an_inode_is_looked_up_with_the_agi_locked_and_does_not_stay(tmp_path: Path) -> None:
    """`xfs_imap_lookup` of a number that nobody trusts; and once for 40 records of 64 inodes."""
    result = run(tmp_path, initial_files=4000)
    for lock in ("xfs.AGI", "xfs.inobt"):
        assert acquired_each(result, lock) == pytest.approx(1, abs=0.02)
    assert acquired_each(result, "xfs.inode cluster") == pytest.approx(1, abs=0.02)
    assert acquired_each(result, "vfs.s_inode_list_lock") == pytest.approx(2, abs=0.02)
    assert result.requests["read"].count == pytest.approx(result.operations / 32, rel=0.1)


def test_what_is_in_memory_is_copied_under_its_ilock(tmp_path: Path) -> None:
    """`xfs_iget_cache_hit` asks no allocation group."""
    result = run(tmp_path, files=3000)
    assert acquired_each(result, "xfs.ILOCK (file)") == pytest.approx(1, abs=0.1)
    assert acquired_each(result, "xfs.AGI") < 0.02


def test_tasks_begin_in_different_groups_and_meet_at_the_list(tmp_path: Path) -> None:
    """Four of them have a group each, eight two to a group: then they meet at the AGI as well."""
    four, eight = (run(tmp_path, tasks=tasks, initial_files=40_000) for tasks in (4, 8))

    def waits(result: RunResult, name: str) -> float:
        found = next(lock for lock in result.locks if lock.name == name)
        return found.contended / found.acquired

    assert waits(four, "xfs.AGI") < 0.01
    assert waits(eight, "xfs.AGI") > 0.05
    assert held_each(eight, "vfs.s_inode_list_lock") > 0


def test_a_walk_goes_through_all_groups_and_begins_again(tmp_path: Path) -> None:
    result = run(tmp_path, initial_files=100)
    assert result.operations > 300
    agis = next(lock for lock in result.locks if lock.name == "xfs.AGI")
    assert agis.instances == 4
    assert agis.acquired > result.operations


def test_both_machines_do_the_same(tmp_path: Path) -> None:
    assert assert_same(spec(tmp_path, tasks=3, initial_files=500) | {"duration_ns": 3e5}) > 100


@pytest.mark.parametrize("filesystem", ["btrfs", "ext4", "tmpfs"])
def test_it_is_a_call_of_xfs(tmp_path: Path, filesystem: str) -> None:
    with pytest.raises(ScenarioError, match="bulkstat is an ioctl of XFS"):
        spec(tmp_path, filesystem)
