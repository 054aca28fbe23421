"""`lseek`: which lock of the inode a filesystem takes to look for a hole, and none to set a position."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same
from operations import spec

from engine import acquired_each, audited, window
from simfs.scenario import ScenarioError
from simfs.scenario.models import load_vfs

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")
LOCK = {"xfs": ("xfs.ILOCK (file)", 1), "tmpfs": ("vfs.i_rwsem (file)", 0)}
"""`xfs_seek_iomap_begin`; `shmem_file_llseek`, exclusive. Others hold `i_rwsem` shared."""


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_hole_is_looked_for_under_a_lock_of_the_inode(tmp_path: Path, filesystem: str) -> None:
    name, shared = LOCK.get(filesystem, ("vfs.i_rwsem (file)", 1))
    result = audited(spec(tmp_path, "seek_hole", filesystem=filesystem))
    assert acquired_each(result, name) == pytest.approx(1, abs=0.02)
    of_it = sum(lock.acquired_shared for lock in result.locks if lock.name == name)
    assert of_it / result.operations == pytest.approx(shared, abs=0.02)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_position_is_set_without_a_lock_of_the_inode(tmp_path: Path, filesystem: str) -> None:
    result = audited(spec(tmp_path, "lseek", filesystem=filesystem))
    for name in ("xfs.ILOCK (file)", "xfs.IOLOCK", "vfs.i_rwsem (file)"):
        assert acquired_each(result, name) == 0


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize("operation", ["lseek", "seek_hole"])
def test_a_call_takes_what_was_measured(tmp_path: Path, filesystem: str, operation: str) -> None:
    took = audited(spec(tmp_path, operation, filesystem=filesystem)).latency[operation].mean_ns
    assert took == pytest.approx(load_vfs(filesystem).spec()[f"call.{operation}"], rel=0.1)


def test_both_machines_do_the_same(tmp_path: Path) -> None:
    made = spec(tmp_path, tasks=3, filesystem="ext4", operations=[{"op": "lseek"}, {"op": "seek_hole"}])
    assert assert_same(made | window(1e5)) > 100


def test_before_6_2_btrfs_looked_at_extents(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"before 6\.2 btrfs looks for each extent of a file"):
        spec(tmp_path, "seek_hole", filesystem="btrfs", kernel="linux-6.1")
