"""A cold walk on ext4 looks up the leaf of each name and the block of each inode, of which a CPU knows the last 16."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import acquired, read_whole_answer, written_spec

SCENARIO = """\
simfs: 1
name: walk
title: Walking cold files
machine: {profile: server-24, cpus: 2}
kernel: linux-6.12
filesystem: {kind: ext4, size: 8 GiB}
workload: {kind: mix, tasks: 1, files: 0, operations: [{op: walk}], directories: per-task}
measure: {warmup: 1 ms, duration: 20 ms, replications: 1}
"""


def looked_up(tmp_path: Path, *options: str) -> float:
    """How often a walk finds a block only in the page cache."""
    result = read_whole_answer(written_spec(tmp_path / "walk.yaml", SCENARIO, *options))
    return acquired(result, "block.private_lock") / float(result["operations"])


@pytest.mark.parametrize(
    ("kernel", "files", "low", "high"),
    [
        ("linux-6.12", 1000, 0.7, 0.9),  # 63 blocks of inodes, of which 13 or 14 are known
        ("linux-6.12", 12_000, 0.8, 1.0),  # sorted by inodes, so that the leaf is another each time
        ("linux-6.14", 1000, 0.7, 0.9),
        ("linux-6.15", 1000, 0.0, 0.0),
    ],
)
def test_a_block_that_is_not_among_sixteen_takes_the_lock(
    tmp_path: Path, kernel: str, files: int, low: float, high: float
) -> None:
    share = looked_up(tmp_path, f"kernel={kernel}", f"workload.initial_files={files}")
    assert low <= share <= high


def test_inodes_in_order_share_blocks(tmp_path: Path) -> None:
    """Sorted by inodes, 13 of 85 leaves are known, and a block of inodes is new once in 16; else 98 in 100 are new."""
    assert looked_up(tmp_path, "workload.initial_files=12000") < 0.95
