"""`fsync` of a directory: what each filesystem waits for, and what the log of btrfs learns."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_directory_operations import FILESYSTEMS, spec

from engine import acquired_each, audited

ROUND = ("create", "fsync_dir")


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_who_syncs_a_directory_after_a_create_waits_for_the_device_but_on_tmpfs(
    tmp_path: Path, filesystem: str
) -> None:
    latency = audited(spec(tmp_path, filesystem, *ROUND) | {"duration_ns": 3e7}).latency
    waits = latency["fsync_dir"].mean_ns
    assert waits < 2000 if filesystem == "tmpfs" else waits > 8000


@pytest.mark.parametrize("filesystem", ["btrfs", "xfs"])
def test_a_directory_without_changes_is_on_disk_already(tmp_path: Path, filesystem: str) -> None:
    again = audited(spec(tmp_path, filesystem, "create", "fsync_dir", "fsync_dir") | {"duration_ns": 3e7})
    alone = audited(spec(tmp_path, filesystem, *ROUND) | {"duration_ns": 3e7})
    assert again.latency["fsync_dir"].mean_ns < 0.7 * alone.latency["fsync_dir"].mean_ns


def test_btrfs_logs_files_whose_names_are_new_with_their_directory(tmp_path: Path) -> None:
    """`log_new_dir_dentries`: each file has two searches of the log for its name, and two for its inode."""
    one, many = (
        audited(spec(tmp_path, "btrfs", *["create"] * files, "fsync_dir") | {"duration_ns": 3e7})
        for files in (1, 9)
    )
    searches = [acquired_each(result, "btrfs.log tree L0") for result in (one, many)]
    assert (searches[1] - searches[0]) / 8 == pytest.approx(4, abs=0.5)


def test_a_name_that_went_into_another_directory_commits_the_transaction(tmp_path: Path) -> None:
    """The log cannot tell where it went (`last_unlink_trans`)."""
    moved = audited(
        spec(tmp_path, "btrfs", "create", "move", "fsync_dir", directories="per-task", subdirectories=2)
        | {"duration_ns": 3e7}
    )
    stayed = audited(spec(tmp_path, "btrfs", *ROUND) | {"duration_ns": 3e7})
    assert acquired_each(stayed, "btrfs.extent tree L0") == 0
    assert acquired_each(moved, "btrfs.extent tree L0") > 0
