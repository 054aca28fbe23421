"""The allocator of ext4: who asks for blocks meets others in a group and under `s_md_lock`, as its era has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, read_answer, window, written_spec
from simfs import _engine, machine
from simfs.scenario import ScenarioError

SCENARIO = """\
simfs: 1
name: mballoc
title: Blocks for several files
machine: {profile: server-24, cpus: 8}
kernel: linux-6.16
filesystem: {kind: ext4, size: 8 GiB}
device: nvme
workload:
  kind: mix
  tasks: 8
  directories: per-task
  order: in-turn
  operations: [{op: fallocate, size: 8 KiB, repeat: 128}, {op: truncate}]
measure: {warmup: 10 ms, duration: 30 ms, replications: 1}
"""
GROUP_BYTES = (32768 - 514) * 4096
PIECES = "workload.operations=[{op: fallocate, size: 8 KiB}, {op: truncate}]"


def spec(tmp_path: Path, *options: str) -> Spec:
    return written_spec(tmp_path / "mballoc.yaml", SCENARIO, *options)


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    return read_answer(spec(tmp_path, *options))


def acquired(result: dict[str, Any], name: str) -> int:
    return next((int(lock["acquired"]) for lock in result["locks"] if lock["name"] == name), 0)


def per_turn(result: dict[str, Any], name: str) -> float:
    return acquired(result, name) / float(result["operations"])


def test_one_task_takes_the_locks_of_its_era(tmp_path: Path) -> None:
    """256 blocks, one extent: the first 8 requests have goals of their own, each takes the group's lock twice."""
    one = "workload.tasks=1"
    before, after = (run(tmp_path, one, f"kernel={kernel}") for kernel in ("linux-6.16", "linux-6.17"))
    for result in (before, after):
        assert per_turn(result, "ext4.group lock") == pytest.approx(2 * 128 + 2, rel=0.02)
    assert per_turn(before, "ext4.s_md_lock") == pytest.approx(2 * 120 + 1, rel=0.02)
    assert per_turn(after, "ext4.s_md_lock") <= 1


@pytest.mark.parametrize(("kernel", "holds"), [("linux-6.6", 3), ("linux-6.12", 4)])
def test_blocks_are_freed_in_two_holds_since_6_7(tmp_path: Path, kernel: str, holds: int) -> None:
    once = run(tmp_path, PIECES, "workload.tasks=1", f"kernel={kernel}")
    assert per_turn(once, "ext4.group lock") == pytest.approx(holds, rel=0.02)


def test_what_stands_beside_s_md_lock_is_read_while_others_have_it(tmp_path: Path) -> None:
    """A turn takes the lock once; who allocates or marks an inode dirty reads its line (0.5 transfers without)."""
    result = run(tmp_path, PIECES, "kernel.rules.ext4.stream_goal=several")
    lock = next(lock for lock in result["locks"] if lock["name"] == "ext4.s_md_lock")
    assert lock["line_transfers"] > 1.5 * lock["acquired"]


def test_who_searches_sets_a_bit_of_all_groups_behind_the_goal_since_5_9(tmp_path: Path) -> None:
    """With two groups to a task nobody else is in the group, but all are in one flex group."""
    options = PIECES, "filesystem.size=2 GiB"
    before, after = (
        run(tmp_path, *options, f"kernel.rules.ext4.prefetches_groups={on}") for on in ("false", "true")
    )
    assert after["operations"] < 0.95 * before["operations"]


@pytest.mark.slow
def test_who_skips_busy_groups_is_faster_and_ends_in_others(tmp_path: Path) -> None:
    waits = run(tmp_path)
    skips = run(tmp_path, "kernel.rules.ext4.busy_groups=skip", "kernel.rules.ext4.stream_goal=several")
    assert skips["operations"] > 1.5 * waits["operations"]


@pytest.mark.parametrize("kernel", ["linux-6.16", "linux-6.17"])
@pytest.mark.parametrize("journal", ["true", "false"])
def test_both_machines_do_the_same(tmp_path: Path, kernel: str, journal: str) -> None:
    made = spec(tmp_path, f"kernel={kernel}", f"filesystem.journal={journal}", "workload.tasks=3")
    assert assert_same(made | window(3e5)) > 100


def test_who_finds_no_blocks_has_those_committed_that_were_freed(tmp_path: Path) -> None:
    """A filesystem of one group has room for 15 files of 8 MiB; what they had comes back with a commit."""
    size, turn = "filesystem.size=128 MiB", "workload.operations.0.repeat=1024"
    result = run(tmp_path, size, turn, "workload.tasks=1", "measure.duration=400 ms")
    assert result["stall"] is None
    assert result["operations"] > 15
    assert acquired(result, "ext4.j_list_lock") > 0  # blocks of a transaction that is committed


def test_a_full_filesystem_is_told_by_its_name(tmp_path: Path) -> None:
    """Nothing is truncated: all blocks of the group are taken, and the audit holds."""
    result = run(
        tmp_path, "filesystem.size=128 MiB", "workload.operations=[{op: fallocate, size: 1 MiB}]",
        "workload.tasks=2", "measure.warmup=0 ns", "measure.duration=1 s",
    )  # fmt: skip
    assert result["stall"]["kind"] == "no space left"
    assert result["operations"] == GROUP_BYTES // (1 << 20)


@pytest.mark.slow
def test_both_machines_tell_a_full_filesystem_so(tmp_path: Path) -> None:
    made = spec(tmp_path, "filesystem.size=128 MiB", "workload.operations=[{op: fallocate, size: 1 MiB}]")
    assert assert_same(made | window(1e8)) > 100
    native, reference = (run(json.dumps(made | {"duration_ns": 1e8})) for run in (_engine.run, machine.run))
    assert json.loads(native)["stall"] == json.loads(reference)["stall"]


def test_a_filesystem_without_this_operation_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="btrfs has no extents without data here"):
        spec(tmp_path, "filesystem={kind: btrfs}")
