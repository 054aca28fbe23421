"""Room that buffered writes of btrfs reserve before they copy, and the list of inodes with dirty pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario, the_lock
from simfs.results.run_result import RunResult


def written(
    tmp_path: Path, operations: str, *, tasks: int = 1, files: int = 4, kernel: str = "linux-6.12"
) -> RunResult:
    text = (
        "simfs: 1\nname: write\ntitle: write\n"
        "machine: {profile: server-24, cpus: 4, costs: {step_cv: 0}}\n"
        f"kernel: {kernel}\n"
        "filesystem: {kind: btrfs, size: 8 GiB}\n"
        f"workload: {{kind: mix, tasks: {tasks}, directories: per-task, files: {files}, file_size: 4 KiB,\n"
        f"  order: in-turn, operations: [{operations}]}}\n"
    )
    return run_scenario(tmp_path / "write.yaml", text, warmup_ns=1e6, duration_ns=3e6)


@pytest.mark.parametrize(
    ("operations", "room", "lists"),
    [
        # Its only dirty page again: data and metadata are reserved, and the old ones given back; the inode
        # leaves the list and comes back.
        ("{op: overwrite, on: first}", 4, 2),
        # A new page behind dirty ones, whose extent it joins.
        ("{op: append, on: first}", 3, 0),
    ],
)
def test_a_buffered_write_reserves_room_and_gives_back_what_dirty_pages_had(
    tmp_path: Path, operations: str, room: int, lists: int
) -> None:
    result = written(tmp_path, operations)
    counts = {lock.name: lock.acquired / result.operations for lock in result.locks}
    assert counts["btrfs.space_info"] == pytest.approx(room, rel=0.02)
    assert counts.get("btrfs.delalloc_lock", 0) == pytest.approx(lists, abs=0.02)


def test_writers_of_their_own_files_meet_at_the_room(tmp_path: Path) -> None:
    result = written(tmp_path, "{op: overwrite, on: first}", tasks=2)
    assert the_lock(result, "btrfs.space_info").line_transfers > result.operations


def test_what_is_promised_lies_beside_the_lock_before_6_16(tmp_path: Path) -> None:
    """A write of one task then changes the line that another asks again and again."""
    held = {}
    for rule in ("with-use", "apart"):
        kernel = f"{{profile: linux-6.12, rules: {{btrfs.space_info_line: {rule}}}}}"
        lock = the_lock(
            written(tmp_path, "{op: overwrite, on: first}", tasks=4, kernel=kernel), "btrfs.space_info"
        )
        held[rule] = lock.hold_total_ns / lock.acquired
    assert held["with-use"] != held["apart"]


def test_a_write_before_the_end_of_a_file_searches_the_tree_once_a_page(tmp_path: Path) -> None:
    """`btrfs_find_new_delalloc_bytes`: the second of four writes into a page; others find the map of the hole."""
    operations = "{op: create}, {op: append, size: 1 KiB, repeat: 16, on: made}, {op: unlink, on: made}"

    def searches(kernel: str) -> float:
        result = written(tmp_path, operations, kernel=kernel)
        return the_lock(result, "btrfs.fs tree L0").acquired / result.operations

    without = searches("{profile: linux-6.12, rules: {btrfs.finds_new_bytes: false}}")
    assert searches("linux-6.12") - without == pytest.approx(4, abs=0.5)
