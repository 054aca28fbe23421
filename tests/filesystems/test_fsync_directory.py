"""`fsync` of a directory: what each filesystem waits for, and what the log of btrfs learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_directory_operations import FILESYSTEMS, spec

from engine import acquired_each, audited, the_lock
from simfs.results.run_result import RunResult

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
    """`log_new_dir_dentries`: the log is asked for each file, and gets its inode. The names go there together."""
    one, many = (
        audited(spec(tmp_path, "btrfs", *["create"] * files, "fsync_dir") | {"duration_ns": 3e7})
        for files in (1, 9)
    )
    searches = [acquired_each(result, "btrfs.log tree L0") for result in (one, many)]
    assert (searches[1] - searches[0]) / 8 == pytest.approx(2, abs=0.2)


def test_a_name_that_went_into_another_directory_commits_the_transaction(tmp_path: Path) -> None:
    """The log cannot tell where it went (`last_unlink_trans`)."""
    moved = audited(
        spec(tmp_path, "btrfs", "create", "move", "fsync_dir", directories="per-task", subdirectories=2)
        | {"duration_ns": 3e7}
    )
    stayed = audited(spec(tmp_path, "btrfs", *ROUND) | {"duration_ns": 3e7})
    assert acquired_each(stayed, "btrfs.extent tree L0") == 0
    assert acquired_each(moved, "btrfs.extent tree L0") > 0


def by_design(folder: Path, *operations: str, **keys: Any) -> list[RunResult]:  # noqa: ANN401
    """Of 6.0, which puts what is delayed into the tree before it logs a directory, and of 6.1."""
    results = []
    for design in ("new", "delayed"):
        run = spec(folder, "btrfs", *operations, **keys) | {"duration_ns": 3e7}
        run["kernel"]["rules"]["btrfs.log_directory"] = design
        run["filesystem"]["costs"]["commit_interval"] = 5e6
        results.append(audited(run))
    return results


def searches(result: RunResult, tree: str) -> float:
    """How often the root of a tree is locked for each fsync of a directory."""
    return the_lock(result, f"btrfs.{tree} tree L0").acquired / result.latency["fsync_dir"].count


def test_delayed_names_stay_delayed_when_btrfs_logs_their_directory_since_6_1(tmp_path: Path) -> None:
    """Before, an fsync puts two names into the tree with one search and the inode with another, and reads them in two.

    The worker of delayed items puts those of many fsyncs there together. Until 6.0 all ranges leave the log first,
    with two searches.
    """
    before, since = by_design(tmp_path, "create", "create", "fsync_dir")
    assert 2.5 < searches(before, "fs") - searches(since, "fs") < 7
    assert searches(before, "log") - searches(since, "log") == pytest.approx(2, abs=0.5)


def test_names_that_are_lost_leave_the_log_or_are_a_range_of_it(tmp_path: Path) -> None:
    """Of files that the last commit has: who unlinks one looks for the name in the log, if that has the directory.

    Who logs this looks again, for both names, and enters a range for each. Before 6.1 only the tree is changed,
    and all ranges leave the log.
    """
    first = {"op": "unlink", "on": "first"}
    operations = [{"op": "create"}, first, first, {"op": "fsync_dir"}]
    before, since = by_design(tmp_path, files=200, operations=operations)
    assert 1 < searches(since, "log") - searches(before, "log") < 9


def test_the_log_learns_of_gaps_between_old_names_since_5_18(tmp_path: Path) -> None:
    """`process_dir_items_leaf`: names that go anywhere leave a gap each, which is a range; those at the front none."""
    front, anywhere = (
        by_design(
            tmp_path,
            files=300,
            operations=[{"op": "create"}, {"op": "unlink", "on": on}, {"op": "fsync_dir"}],
        )
        for on in ("first", "any")
    )
    for without, with_gaps in zip(front, anywhere, strict=True):
        assert searches(with_gaps, "log") > searches(without, "log") + 10
