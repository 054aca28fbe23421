"""What all tasks that change btrfs meet at, besides the tree: numbers of inodes, handles, and the times of the root."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario, the_lock
from simfs.results.run_result import RunResult


def made(tmp_path: Path, kind: str, tasks: int = 1, kernel: str = "linux-6.12") -> RunResult:
    text = (
        "simfs: 1\nname: meet\ntitle: meet\n"
        "machine: {profile: server-24, cpus: 8, costs: {step_cv: 0}}\n"
        f"kernel: {kernel}\n"
        "filesystem: {kind: btrfs, size: 16 GiB}\n"
        f"workload: {{kind: {kind}, directories: per-task, tasks: {tasks}}}\n"
    )
    return run_scenario(tmp_path / "meet.yaml", text, warmup_ns=1e6, duration_ns=5e6)


def test_a_new_inode_takes_its_number_under_the_mutex_of_the_root(tmp_path: Path) -> None:
    result = made(tmp_path, "create_unlink")
    assert the_lock(result, "btrfs.objectid_mutex").acquired == pytest.approx(result.operations, abs=1)


def test_who_starts_or_joins_a_handle_takes_trans_lock(tmp_path: Path) -> None:
    """A create, an unlink and an eviction each, and now and then a worker."""
    result = made(tmp_path, "create_unlink")
    assert the_lock(result, "btrfs.trans_lock").acquired / result.operations == pytest.approx(3.03, abs=0.05)


def test_tasks_with_a_directory_each_meet_at_both(tmp_path: Path) -> None:
    result = made(tmp_path, "create", tasks=8)
    for name in ("btrfs.objectid_mutex", "btrfs.trans_lock"):
        assert the_lock(result, name).line_transfers > 0.1 * result.operations, name


@pytest.mark.parametrize(("kernel", "times"), [("linux-5.18", 3), ("linux-6.12", 2)])
def test_a_create_notes_the_time_in_the_root_for_each_inode_it_changes(
    tmp_path: Path, kernel: str, times: int
) -> None:
    """The new inode and its directory; before 5.19 the new one twice."""
    result = made(tmp_path, "create", kernel=kernel)
    assert the_lock(result, "btrfs.root_item_lock").acquired / result.operations == pytest.approx(
        times, abs=0.05
    )


def changed(tmp_path: Path, tasks: int) -> RunResult:
    text = (
        "simfs: 1\nname: times\ntitle: times\n"
        "machine: {profile: server-24, costs: {step_cv: 0}}\n"
        "kernel: linux-6.12\nfilesystem: {kind: btrfs, size: 16 GiB}\n"
        "workload: {kind: mix, operations: [{op: utimes}], directories: per-task, files: 1, "
        f"tasks: {tasks}}}\n"
    )
    return run_scenario(tmp_path / "times.yaml", text, warmup_ns=1e6, duration_ns=4e6)


def test_who_joins_a_handle_has_no_room_to_give_back(tmp_path: Path) -> None:
    """An inode that waits to be written has its room."""
    assert all(lock.acquired == 0 for lock in changed(tmp_path, 1).locks if lock.name == "btrfs.space_info")


def test_a_handle_is_counted_while_trans_lock_is_held(tmp_path: Path) -> None:
    """Who ends one takes the line of the counts away, which the holder then fetches once more."""
    alone, many = (the_lock(changed(tmp_path, tasks), "btrfs.trans_lock") for tasks in (1, 24))
    assert many.hold_total_ns / many.acquired > 4 * alone.hold_total_ns / alone.acquired
