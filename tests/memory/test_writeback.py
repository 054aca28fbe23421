"""Dirty pages: whoever writes more than the device takes waits for it, and a flusher writes them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import acquired, per_second, read_whole_answer, window, written_spec

SCENARIO = """\
simfs: 1
name: dirty
title: Buffered writes in little memory
machine: {profile: server-24, cpus: 8, memory: 512 MiB}
kernel: linux-6.12
filesystem: {kind: xfs}
device: {profile: nvme, bandwidth: {read: 1 GB, write: 200 MB}}
workload: {kind: fio, tasks: 4, rw: write, files: per-task, size: 64 MiB, block_size: 64 KiB, cached: true}
measure: {warmup: 600 ms, duration: 400 ms, replications: 1}
"""

FILESYSTEMS = pytest.mark.parametrize("kind", ["xfs", "ext4", "btrfs"])


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    return read_whole_answer(written_spec(tmp_path / "dirty.yaml", SCENARIO, *options))


def written(result: dict[str, Any]) -> float:
    """Bytes a second."""
    return per_second(result, "bytes")


@FILESYSTEMS
def test_who_writes_for_long_gets_what_the_device_takes(tmp_path: Path, kind: str) -> None:
    """200 MB/s: limits of 48 and 97 MB are reached long before the window begins."""
    result = run(tmp_path, f"filesystem.kind={kind}")
    assert 1.4e8 < written(result) < 2.6e8
    longest = result["latency"]["write"]["max_ns"]
    assert 5e6 < longest < 1e9, "pauses of 10 to 200 ms, and others behind them"


ROUND = ("workload.tasks=1", "workload.size=160 MiB", "measure.warmup=1600 ms")


@FILESYSTEMS
def test_the_flusher_goes_on_in_a_file_where_it_was(tmp_path: Path, kind: str) -> None:
    """If it began with the first dirty page each time, the last ones would stay dirty: writing over them is free."""
    assert written(run(tmp_path, f"filesystem.kind={kind}", *ROUND)) == pytest.approx(2e8, rel=0.15)


@pytest.mark.slow
@FILESYSTEMS
def test_both_machines_write_back_the_same(tmp_path: Path, kind: str) -> None:
    given = written_spec(
        tmp_path / "dirty.yaml", SCENARIO, f"filesystem.kind={kind}", "machine.memory=64 MiB"
    )
    assert assert_same(given | window(3e7)) > 500


@FILESYSTEMS
def test_without_an_end_of_memory_nobody_waits(tmp_path: Path, kind: str) -> None:
    result = run(
        tmp_path,
        f"filesystem.kind={kind}",
        "machine.memory=null",
        "measure.warmup=1 ms",
        "measure.duration=20 ms",
    )
    assert written(result) > 1e9


def test_little_that_is_dirty_is_left_alone(tmp_path: Path) -> None:
    result = run(tmp_path, "machine.memory=64 GiB", "measure.warmup=1 ms", "measure.duration=20 ms")
    assert written(result) > 1e9
    assert result["latency"]["write"]["max_ns"] < 5e6


@FILESYSTEMS
def test_files_come_and_go_while_they_are_written_back(tmp_path: Path, kind: str) -> None:
    """Appends, unlinks and syncs of files at which the flusher is; the structures are compared at the end."""
    operations = "[{op: append, size: 256 KiB, weight: 8.0}, {op: fsync}, {op: unlink}, {op: create}]"
    workload = f"workload={{kind: mix, tasks: 8, files: 4, operations: {operations}}}"
    result = run(tmp_path, f"filesystem.kind={kind}", "machine.memory=256 MiB", workload)
    assert result["operations"] > 100


@pytest.mark.parametrize("seed", [2, 7])
def test_checksums_of_neighbours_are_taken_out_at_once(tmp_path: Path, seed: int) -> None:
    """Extents side by side that go at one time: the end of an item was out of the tree meanwhile, and came back."""
    changes = "{op: append, size: 256 KiB, weight: 4.0}, {op: overwrite, size: 64 KiB, weight: 4.0}"
    operations = f"[{changes}, {{op: fsync}}, {{op: unlink}}, {{op: create}}, {{op: rename}}]"
    workload = f"workload={{kind: mix, tasks: 8, files: 4, operations: {operations}}}"
    options = ("filesystem.kind=btrfs", "machine.memory=64 MiB", f"measure.seed={seed}", "kernel=linux-5.9")
    assert run(tmp_path, *options, workload, "measure.warmup=100 ms")["operations"] > 500


READ_ONLY = (
    "workload.rw=randread",
    "workload.cached=false",
    "workload.files=shared",
    "workload.block_size=4 KiB",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xfs", "ext4"])
def test_a_file_larger_than_memory_is_read_from_the_device_for_the_part_that_does_not_fit(
    tmp_path: Path, kind: str
) -> None:
    """Random reads of 240 MB: with 8 GiB all of it gets into memory, with 128 MiB half of it at most."""
    here = (
        f"filesystem.kind={kind}",
        *READ_ONLY,
        "workload.size=228 MiB",
        "workload.cached=true",
        "measure.warmup=200 ms",
    )
    fits, half = run(tmp_path, *here, "machine.memory=8 GiB"), run(tmp_path, *here, "machine.memory=128 MiB")
    assert fits["latency"]["read"]["p99_ns"] < 20e3
    assert half["latency"]["read"]["p99_ns"] > 80e3, "a read of the device"
    assert 0.3 < half["latency"]["read"]["mean_ns"] / 100e3 < 0.8, "half of the reads or a little more miss"
    assert acquired(half, "mm.lru_lock") > 0 == acquired(fits, "mm.lru_lock")


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
def test_reads_and_writes_of_more_than_memory_go_on(tmp_path: Path, kind: str) -> None:
    """Dirty pages cannot go before they are written; who reclaims waits for that."""
    options = (
        f"filesystem.kind={kind}",
        "workload.rw=randrw",
        "workload.cached=false",
        "workload.files=shared",
    )
    result = run(
        tmp_path, *options, "workload.size=512 MiB", "workload.block_size=16 KiB", "machine.memory=64 MiB"
    )
    assert result["operations"] > 1000


@pytest.mark.parametrize(("kind", "wakeups"), [("ext4", 4.2), ("xfs", 2)])
def test_who_replaces_a_file_on_ext4_has_it_written_when_it_closes(
    tmp_path: Path, kind: str, wakeups: int
) -> None:
    """`auto_da_alloc`: cc1 opens the driver's file with O_TRUNC.

    RCU's thread wakes twice for each compile, for processes that end and inodes that were unlinked; on ext4 also the
    loop device's worker and the one that converts the extent. XFS would have to find blocks there before
    (`XFS_ITRUNCATED`).
    """
    options = ("workload={kind: compile, tasks: 1}", f"filesystem.kind={kind}", "device=loop-tmpfs")
    result = run(tmp_path, *options)
    kernel = sum(waking["wakeups"] for waking in result["wakes"] if waking["kind"] == "kernel")
    assert kernel / result["operations"] == pytest.approx(wakeups, abs=0.5)


def test_before_6_5_workers_of_btrfs_compute_the_checksums_of_what_the_flusher_writes(tmp_path: Path) -> None:
    """Each request wakes one, which switches in and out; data in place and without checksums need none."""
    switches = {}
    for rule in ("workers", "submitter"):
        for nodatacow in ("true", "false"):
            options = (
                "filesystem.kind=btrfs",
                f"filesystem.nodatacow={nodatacow}",
                f"kernel.rules.btrfs.data_sums={rule}",
            )
            result = run(tmp_path, *options)
            assert 1.4e8 < written(result) < 2.6e8
            switches[rule, nodatacow] = result["context_switches"]
    requests = 0.4 * 200e6 / (1280 << 10)
    assert switches["workers", "false"] - switches["submitter", "false"] > requests
    assert switches["workers", "true"] == pytest.approx(switches["submitter", "true"], rel=0.05)


def test_both_machines_agree_about_workers_that_compute_checksums(tmp_path: Path) -> None:
    options = ("filesystem.kind=btrfs", "kernel.rules.btrfs.data_sums=workers", "machine.memory=128 MiB")
    given = written_spec(tmp_path / "dirty.yaml", SCENARIO, *options)
    assert assert_same(given | window(3e7)) > 500
