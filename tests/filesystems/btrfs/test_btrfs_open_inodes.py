"""A subvolume of btrfs has an index of its inodes in memory, under one lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from red_black import lines_moved

from engine import run_scenario, the_lock
from simfs.results.run_result import LockStats, RunResult

HOLD, NODE = 60, 4


def run(
    tmp_path: Path,
    index: str,
    workload: str,
    tasks: int = 1,
    cached: int = 0,
    rules: str = "",
    line: str = "23 ns",
) -> RunResult:
    text = (
        "simfs: 1\nname: index\ntitle: index\n"
        "machine: {profile: server-24, cpus: 8, cpus_per_core: 1, speed: 1,"
        f" costs: {{step_cv: 0, line_llc: {line}}}}}\n"
        f"kernel: {{profile: linux-6.10, rules: {{btrfs.inode_index: {index}{rules}}}}}\n"
        f"filesystem: {{kind: btrfs, size: 16 GiB, cached_inodes: {cached}}}\n"
        f"workload: {{{workload}, tasks: {tasks}}}\n"
    )
    return run_scenario(tmp_path / "index.yaml", text, warmup_ns=2e6, duration_ns=10e6)


def index_lock(result: RunResult) -> LockStats:
    return the_lock(result, "btrfs.inode_lock")


def test_an_inode_enters_the_index_when_it_is_made_and_leaves_it_when_it_goes(tmp_path: Path) -> None:
    made = run(tmp_path, "xarray", "kind: create")
    gone = run(tmp_path, "xarray", "kind: create_unlink")
    assert [index_lock(result).acquired / result.operations for result in (made, gone)] == pytest.approx(
        [1, 2], abs=0.02
    )


def hold_each(result: RunResult) -> float:
    """How long the lock is held each time, in ns."""
    lock = index_lock(result)
    return lock.hold_total_ns / lock.acquired


def test_who_enters_a_tree_goes_down_its_right_edge_with_the_lock(tmp_path: Path) -> None:
    """Eight more levels are sixteen nodes; an xarray is as deep for all."""
    holds = {
        (index, cached): hold_each(run(tmp_path, index, "kind: create", cached=cached))
        for index in ("tree", "xarray")
        for cached in (2**12, 2**20)
    }
    assert holds["tree", 2**20] - holds["tree", 2**12] == pytest.approx(16 * NODE, rel=0.1)
    assert holds["xarray", 2**20] == pytest.approx(holds["xarray", 2**12], rel=0.02)
    assert holds["xarray", 2**20] == pytest.approx(HOLD, rel=0.3)


def test_the_lowest_nodes_of_a_tree_come_from_who_changed_them_last(tmp_path: Path) -> None:
    """As in a real tree; two lines of a node move together, in 23 ns and a tenth. Alone none moves.

    Those who wait for the lock have it one after the other. (Of eight tasks many sleep for the tree's own locks,
    and one makes several files in a row.)
    """
    alone, many = (
        hold_each(run(tmp_path, "tree", "kind: create, directories: per-task", tasks, 2**16))
        for tasks in (1, 6)
    )
    assert many - alone == pytest.approx(lines_moved(6, in_turn=True) / 2 * 1.1 * 23, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("index", "times"), [("tree", 2), ("xarray", 1)])
def test_who_reads_an_inode_looks_for_a_delayed_node_under_the_same_lock(
    tmp_path: Path, index: str, times: int
) -> None:
    walk = "kind: mix, operations: [{op: walk}], files: 0, directories: per-task, initial_files: 4000"
    result = run(tmp_path, index, walk)
    assert index_lock(result).acquired / result.operations == pytest.approx(times, abs=0.02)


def test_inodes_hold_a_reference_on_their_root_since_5_7(tmp_path: Path) -> None:
    """One who creates alone has its count in his cache. Of two who read inodes each fetches it from the other."""
    walk = "kind: mix, operations: [{op: walk}], files: 0, directories: per-task, initial_files: 4000"

    def seconds(tasks: int, holds: str) -> float:
        result = run(
            tmp_path, "xarray", walk, tasks, rules=f", btrfs.inodes_hold_root: {holds}", line="500 ns"
        )
        return tasks / result.throughput_per_s

    alone, two = (1e9 * (seconds(tasks, "true") - seconds(tasks, "false")) for tasks in (1, 2))
    assert alone < 15
    assert 100 < two < 800
