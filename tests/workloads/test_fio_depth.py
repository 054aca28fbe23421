"""fio's jobs that have several requests under way, which nobody waits for."""

from __future__ import annotations

from pathlib import Path

import pytest
from fio_jobs import run, spec
from machines import assert_same

from engine import per_second, window


@pytest.mark.parametrize("depth", [2, 4, 8])
def test_a_task_has_as_many_requests_under_way_as_its_depth_allows(tmp_path: Path, depth: int) -> None:
    """A request takes 50 us on the device, and up to 20 more until the task has woken and submitted the next."""
    result = run(tmp_path, "workload.tasks=1", "workload.rw=randread", f"workload.iodepth={depth}")
    assert depth / 70e3 < per_second(result) / 1e9 < depth / 50e3


@pytest.mark.parametrize("how", ["exclusive", "shared"])
@pytest.mark.parametrize("rw", ["randread", "randwrite"])
def test_requests_that_nobody_waits_for_are_under_way_together_on_ext4(
    tmp_path: Path, rw: str, how: str
) -> None:
    """Also writes that have the lock for themselves, which is given back when they are submitted."""
    ext4 = (
        "filesystem.kind=ext4",
        f"kernel.rules.ext4.dio_writes={how}",
        f"workload.rw={rw}",
        "workload.tasks=1",
    )
    rates = [per_second(run(tmp_path, *ext4, f"workload.iodepth={depth}")) for depth in (1, 8)]
    assert rates[1] == pytest.approx(8 * rates[0], rel=0.25)


@pytest.mark.parametrize(("rw", "faster"), [("randread", 8), ("randwrite", 4)])
def test_requests_that_nobody_waits_for_are_under_way_together_on_btrfs(
    tmp_path: Path, rw: str, faster: float
) -> None:
    """Of writes the CPU time of the task and of `endio-write` is the limit."""
    btrfs = ("filesystem={kind: btrfs, nodatacow: true}", f"workload.rw={rw}", "workload.tasks=1")
    rates = [per_second(run(tmp_path, *btrfs, f"workload.iodepth={depth}")) for depth in (1, 8)]
    assert rates[1] == pytest.approx(faster * rates[0], rel=0.35)


def test_direct_writes_of_data_with_checksums_are_waited_for_on_btrfs_since_6_15(tmp_path: Path) -> None:
    btrfs = ("filesystem={kind: btrfs}", "workload.rw=randwrite", "workload.tasks=1", "kernel=linux-6.18")
    rates = [per_second(run(tmp_path, *btrfs, f"workload.iodepth={depth}")) for depth in (1, 8)]
    assert rates[1] == pytest.approx(rates[0], rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linux-6.12", "linux-6.18"])
def test_both_machines_do_the_same_queued_io_on_btrfs(tmp_path: Path, kernel: str) -> None:
    btrfs = ("filesystem={kind: btrfs}", f"kernel={kernel}", "workload.iodepth=4", "workload.fsync=9")
    assert assert_same(spec(tmp_path, *btrfs) | window(2e6)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exclusive", "relocked", "shared"])
def test_both_machines_do_the_same_queued_io_on_ext4(tmp_path: Path, how: str) -> None:
    ext4 = (
        "filesystem.kind=ext4",
        f"kernel.rules.ext4.dio_writes={how}",
        "workload.iodepth=4",
        "workload.fsync=9",
    )
    assert assert_same(spec(tmp_path, *ext4) | window(2e6)) > 50


def test_with_a_deep_queue_the_cpu_is_the_limit(tmp_path: Path) -> None:
    result = run(
        tmp_path, "workload.tasks=1", "workload.rw=randread", "workload.iodepth=256", "device.parallelism=256"
    )
    one_cpu = result["window_ns"]
    assert result["cpu_ns"]["idle"] == pytest.approx(7 * one_cpu, rel=0.001)
