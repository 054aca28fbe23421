"""A subvolume of btrfs has an index of its inodes in memory, under one lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import run_scenario, the_lock
from simfs.results.run_result import LockStats, RunResult

HOLD, NODE = 60, 6


def run(tmp_path: Path, index: str, workload: str) -> RunResult:
    text = (
        "simfs: 1\nname: index\ntitle: index\nmachine: {profile: server-24, cpus: 8, speed: 1, costs: {step_cv: 0}}\n"
        f"kernel: {{profile: linux-6.10, rules: {{btrfs.inode_index: {index}}}}}\n"
        f"filesystem: {{kind: btrfs, size: 16 GiB}}\nworkload: {{{workload}, tasks: 1}}\n"
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


@pytest.mark.parametrize(("files", "levels"), [(0, 8), (70_000, 16)])
def test_who_enters_a_tree_goes_down_its_right_edge_with_the_lock(
    tmp_path: Path, files: int, levels: int
) -> None:
    """Some 400 files are made besides those that are there; an xarray is as deep for all."""
    holds = []
    for index in ("tree", "xarray"):
        lock = index_lock(run(tmp_path, index, f"kind: create, initial_files: {files}"))
        holds.append(lock.hold_total_ns / lock.acquired)
    assert holds[0] - holds[1] == pytest.approx(2 * levels * NODE, rel=0.15)
    assert holds[1] == pytest.approx(HOLD, rel=0.3)
