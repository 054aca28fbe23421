"""Inodes and dentries that nobody uses fill memory: who brings in more makes others go (`shrink_slab`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import simulate_whole, the_lock, written_spec
from simfs.results.run_result import RunResult

SCENARIO = """\
simfs: 1
name: shrinkers
title: Walking files in full memory
machine: {profile: server-24, cpus: 1, memory: 1 GiB}
kernel: linux-6.12
filesystem: {kind: ext4, cached_inodes: 1000000}
device: ramdisk
workload:
  kind: mix
  tasks: 1
  directories: per-task
  operations: [{op: walk}]
  files: 0
  subdirectories: 2
  initial_files: 4000
measure: {warmup: 30 ms, duration: 60 ms, replications: 1}
"""

FILESYSTEMS = pytest.mark.parametrize("kind", ["xfs", "btrfs", "ext4"])


def run(tmp_path: Path, kind: str, *options: str) -> RunResult:
    return simulate_whole(written_spec(tmp_path / "s.yaml", SCENARIO, f"filesystem.kind={kind}", *options))


@FILESYSTEMS
def test_for_each_inode_that_comes_into_full_memory_one_goes(tmp_path: Path, kind: str) -> None:
    """Each takes the lock of the superblock's list when it comes and when it goes."""
    full, ample = run(tmp_path, kind), run(tmp_path, kind, "machine.memory=64 GiB")
    for result, times in ((full, 2), (ample, 1)):
        assert the_lock(result, "vfs.s_inode_list_lock").acquired == pytest.approx(
            times * result.operations, rel=0.1
        )


@pytest.mark.parametrize("tasks", [2, 8])
def test_as_many_go_as_come_while_several_tasks_free_inodes_at_one_time(tmp_path: Path, tasks: int) -> None:
    cpus = (f"machine.cpus={tasks}", f"workload.tasks={tasks}", f"workload.initial_files={2000 * tasks}")
    files = (f"workload.subdirectories={2 * tasks}", "measure.warmup=60 ms", "measure.duration=120 ms")
    full = run(tmp_path, "xfs", *cpus, *files)
    assert the_lock(full, "vfs.s_inode_list_lock").acquired == pytest.approx(2 * full.operations, rel=0.05)


def test_on_one_cpu_a_walk_takes_as_much_longer_as_drop_caches_needs_for_an_inode(tmp_path: Path) -> None:
    """1.77 us on a guest whose speed is 0.38, and here a load from memory for the dentry.

    On XFS, as it has no hash of inodes, whose chains would be longer in less memory.
    """
    speed = "machine.speed=0.38"
    full, ample = run(tmp_path, "xfs", speed), run(tmp_path, "xfs", speed, "machine.memory=64 GiB")
    longer = 1e6 / full.throughput_per_s - 1e6 / ample.throughput_per_s
    assert longer == pytest.approx(1.77 + 0.09, rel=0.1)


def test_who_outruns_kswapd_frees_inodes_himself(tmp_path: Path) -> None:
    """Eight tasks bring in more than one CPU can free: they do it in the middle of a call."""
    cpus = (
        "machine.cpus=8",
        "workload.tasks=8",
        "workload.initial_files=16000",
        "workload.subdirectories=16",
    )
    full, ample = run(tmp_path, "btrfs", *cpus), run(tmp_path, "btrfs", *cpus, "machine.memory=64 GiB")
    longest = [max(latency.max_ns for latency in result.latency.values()) for result in (full, ample)]
    assert longest[0] > 3 * longest[1]
