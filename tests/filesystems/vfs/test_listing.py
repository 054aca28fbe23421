"""Listing one directory by several tasks: what each names' filesystem locks while it gives them to the caller."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import rate, run_scenario, the_lock
from simfs.results.run_result import RunResult


def listed(
    tmp_path: Path, filesystem: str, *, kernel: str = "linux-6.12", names: int = 30, **workload: str
) -> RunResult:
    keys = "".join(f", {key}: {value}" for key, value in workload.items())
    text = (
        "simfs: 1\nname: list\ntitle: list\n"
        "machine: {profile: server-24, cpus: 4, costs: {step_cv: 0}}\n"
        f"kernel: {kernel}\n"
        f"filesystem: {{kind: {filesystem}, size: 8 GiB}}\n"
        f"workload: {{kind: mix, tasks: 2, files: {names}, operations: [{{op: readdir}}]{keys}}}\n"
    )
    return run_scenario(tmp_path / "list.yaml", text, warmup_ns=1e6, duration_ns=5e6)


@pytest.mark.parametrize(("directories", "waits"), [("shared", True), ("per-task", False)])
def test_who_lists_a_block_of_a_directory_of_xfs_that_another_lists_sleeps(
    tmp_path: Path, directories: str, waits: bool
) -> None:
    block = the_lock(listed(tmp_path, "xfs", directories=directories), "xfs.directory block")
    assert (block.contended > 0) == waits


def test_names_in_the_inode_of_a_directory_are_given_away_without_a_buffer(tmp_path: Path) -> None:
    few = listed(tmp_path, "xfs", directories="shared", names=2)
    assert all(lock.name != "xfs.directory block" or not lock.acquired for lock in few.locks)


def test_a_directory_with_more_blocks_locks_each(tmp_path: Path) -> None:
    """4 KiB have room for some 125 names of 14 bytes."""
    result = listed(tmp_path, "xfs", names=400, directories="per-task")
    assert the_lock(result, "xfs.directory block").acquired / result.operations == pytest.approx(4, abs=0.1)


def test_a_block_is_locked_as_long_as_its_own_names_take(tmp_path: Path) -> None:
    """Two tasks' 65 names fill a block and leave a few for the next."""
    block = the_lock(listed(tmp_path, "xfs", names=65, directories="shared"), "xfs.directory block")
    assert block.hold_max_ns > 1.8 * block.hold_total_ns / block.acquired


@pytest.mark.parametrize(
    ("kernel", "loses"), [("linux-5.3", False), ("linux-5.4", True), ("linux-6.6", True)]
)
def test_two_who_list_the_same_names_of_tmpfs_take_them_from_each_other_since_5_4(
    tmp_path: Path, kernel: str, loses: bool
) -> None:
    """The shared directory has the names of both: without a loss that is 0.65 of the listings."""
    apart, together = (
        rate(listed(tmp_path, "tmpfs", kernel=kernel, directories=kind)) for kind in ("per-task", "shared")
    )
    assert (together < 0.58 * apart) == loses


def test_who_lists_names_of_tmpfs_locks_their_directory_until_6_5_and_since_6_14(tmp_path: Path) -> None:
    """`scan_positives` and `find_positive_dentry`, not `offset_find_next` between: 60 names of two tasks."""
    locks = {}
    for kernel in ("linux-5.4", "linux-6.6", "linux-6.14"):
        result = listed(tmp_path, "tmpfs", kernel=kernel, directories="shared")
        taken = sum(lock.acquired for lock in result.locks if lock.name.startswith("vfs.d_lock"))
        locks[kernel] = taken / result.operations / 60
    assert locks == pytest.approx({"linux-5.4": 2, "linux-6.6": 1, "linux-6.14": 2}, rel=0.01)
