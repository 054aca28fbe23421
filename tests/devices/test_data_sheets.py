"""What a data sheet says of a drive comes out of fio on its profile: the device is one pipe that all requests share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import assert_same

from engine import per_second, read_answer, window, written_spec
from simfs.scenario import ScenarioError
from simfs.scenario.models import load_device

SCENARIO = """\
simfs: 1
name: sheet
title: fio on a device
machine: {profile: server-24, cpus: 12}
kernel: linux-6.12
filesystem: {kind: xfs, size: 16 GiB}
device: {profile: nvme}
workload: {kind: fio, tasks: 1, rw: randread, direct: true, block_size: 4 KiB, size: 4 GiB}
measure: {warmup: 10 ms, duration: 100 ms, replications: 1}
"""
FULL = "device.small_writes.burst=1"
"""A drive that has been written full over and over, as it is when data sheets are measured."""


def spec(tmp_path: Path, *options: str) -> dict[str, Any]:
    return written_spec(tmp_path / "sheet.yaml", SCENARIO, *options)


def fio(tmp_path: Path, rw: str, *options: str) -> dict[str, Any]:
    return read_answer(spec(tmp_path, f"workload.rw={rw}", *options))


def bandwidth(result: dict[str, Any]) -> float:
    """Bytes a second."""
    return per_second(result, "bytes")


LARGE = ("workload.block_size=128 KiB", "workload.iodepth=32")
DEEP = ("workload.tasks=8", "workload.iodepth=32")
SHEETS = [  # rw, options, unit, what the sheet says
    ("nvme", "read", LARGE, bandwidth, 3.2e9),
    ("nvme", "write", LARGE, bandwidth, 1.05e9),
    ("nvme", "randread", DEEP, per_second, 490e3),
    ("nvme", "randwrite", (*DEEP, FULL), per_second, 38e3),
    ("nvme-client", "read", LARGE, bandwidth, 3.5e9),
    ("nvme-client", "write", LARGE, bandwidth, 2.1e9),
    ("nvme-client", "randread", DEEP, per_second, 440e3),
    ("nvme-client", "randwrite", (*DEEP, FULL), per_second, 360e3),
    ("sata-ssd", "read", LARGE, bandwidth, 560e6),
    ("sata-ssd", "write", LARGE, bandwidth, 530e6),
    ("sata-ssd", "randread", DEEP, per_second, 94e3),
    ("sata-ssd", "randwrite", (*DEEP, FULL), per_second, 65e3),
    ("sata-ssd-server", "read", LARGE, bandwidth, 500e6),
    ("sata-ssd-server", "write", LARGE, bandwidth, 450e6),
    ("sata-ssd-server", "randread", DEEP, per_second, 75e3),
    ("sata-ssd-server", "randwrite", (*DEEP, FULL), per_second, 11.5e3),
    ("hdd", "read", (*LARGE, "measure.duration=1 s"), bandwidth, 200e6),
    ("hdd", "write", (*LARGE, "measure.duration=1 s"), bandwidth, 200e6),
    ("virtio-blk", "randread", DEEP, per_second, 260e3),
    ("pmem", "read", ("workload.block_size=128 KiB", "workload.tasks=12"), bandwidth, 39.4e9),
    ("pmem", "write", ("workload.block_size=128 KiB", "workload.tasks=12"), bandwidth, 13.9e9),
]


@pytest.mark.parametrize(("profile", "rw", "options", "unit", "says"), SHEETS)
def test_fio_measures_what_the_data_sheet_says(
    tmp_path: Path,
    profile: str,
    rw: str,
    options: tuple[str, ...],
    unit: Callable[[dict[str, Any]], float],
    says: float,
) -> None:
    assert unit(fio(tmp_path, rw, f"device={profile}", *options)) == pytest.approx(says, rel=0.05)


@pytest.mark.parametrize(
    ("profile", "rw", "us"),
    [
        ("nvme", "randread", 85),
        ("nvme", "randwrite", 20),
        ("nvme-client", "randread", 71),
        ("sata-ssd", "randread", 140),
        ("virtio-blk", "randread", 11.5),
    ],
)
def test_a_request_alone_takes_the_latency_of_the_sheet_and_the_time_of_its_host(
    tmp_path: Path, profile: str, rw: str, us: float
) -> None:
    each = 1e6 / per_second(fio(tmp_path, rw, f"device={profile}"))
    assert us < each < us + 12


def test_a_disk_needs_its_average_seek_and_half_a_turn_for_a_random_read(tmp_path: Path) -> None:
    each = 1e9 / per_second(
        fio(tmp_path, "randread", "device=hdd", "device.disk.capacity=4 GiB", "measure.duration=20 s")
    )
    assert each == pytest.approx(8.5e6 + 8.333e6 / 2 + 0.3e6, rel=0.06)


@pytest.mark.parametrize("rw", ["randrw", "randread"])
def test_readers_and_writers_share_the_pipe(tmp_path: Path, rw: str) -> None:
    """Half of the requests are writes: each KiB read and each written keeps the pipe for its own time."""
    result = fio(
        tmp_path, rw, "device=nvme", "workload.block_size=128 KiB", "workload.tasks=8", "workload.iodepth=8"
    )
    mixed = 2 / (1 / 3.2e9 + 1 / 1.05e9)
    assert bandwidth(result) == pytest.approx(mixed if rw == "randrw" else 3.2e9, rel=0.05)


def test_flash_takes_a_burst_at_the_speed_of_the_pipe_and_then_its_rate(tmp_path: Path) -> None:
    burst = (
        "device.small_writes.rate=1000",
        "device.small_writes.burst=5000",
        "workload.tasks=8",
        "workload.iodepth=4",
    )
    result = fio(tmp_path, "randwrite", *burst, "measure.warmup=0 ns", "measure.duration=200 ms")
    assert result["operations"] == pytest.approx(5000 + 0.2 * 1000, rel=0.02)


@pytest.mark.parametrize("rw", ["read", "write"])
def test_neighbours_that_wait_before_the_device_become_one_request(tmp_path: Path, rw: str) -> None:
    """At a depth of one, each further request of a batch costs its bytes alone."""
    slow = (
        "device=sata-ssd",
        "device.depth=1",
        "device.parallelism=1",
        f"device.{rw}.time=1 ms",
        f"device.{rw}.cv=0",
    )
    alone = per_second(fio(tmp_path, f"rand{rw}", *slow, "workload.iodepth=32"))
    assert alone == pytest.approx(1000, rel=0.02)
    assert per_second(fio(tmp_path, rw, *slow, "workload.iodepth=32")) > 10 * alone


def test_neighbours_of_other_tasks_stay_apart(tmp_path: Path) -> None:
    """Their files lie over each other: places of two tasks say nothing about each other."""
    slow = (
        "device=sata-ssd",
        "device.depth=1",
        "device.parallelism=1",
        "device.read.time=1 ms",
        "device.read.cv=0",
    )
    assert per_second(fio(tmp_path, "read", *slow, "workload.tasks=8")) == pytest.approx(1000, rel=0.03)


DEVICES = st.fixed_dictionaries(
    {"profile": st.sampled_from(["nvme", "sata-ssd", "hdd", "pmem"])},
    optional={
        "depth": st.sampled_from([1, 3, 32]),
        "parallelism": st.sampled_from([1, 4]),
        "bandwidth": st.sampled_from([{"read": "50 MB", "write": "20 MB"}]),
        "small_writes": st.sampled_from([{"rate": 5000, "burst": 1}, {"rate": 20000, "burst": 10}]),
    },
)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    device=DEVICES,
    rw=st.sampled_from(["read", "write", "randrw"]),
    depth=st.sampled_from([1, 8]),
    tasks=st.integers(1, 3),
)
def test_both_machines_share_the_pipe_alike(
    tmp_path: Path, device: dict[str, Any], rw: str, depth: int, tasks: int
) -> None:
    load_options = (f"workload.rw={rw}", f"workload.iodepth={depth}", f"workload.tasks={tasks}")
    asked = spec(tmp_path, f"device={json.dumps(device)}", *load_options)
    assert assert_same(asked | window(2e6)) > 5


def test_no_device_moves_more_than_its_pipe(tmp_path: Path) -> None:
    """Half of the bytes read and half written come at the harmonic mean, but for what is under way."""
    for block in ("4 KiB", "64 KiB"):
        result = fio(tmp_path, "randrw", "device=nvme", f"workload.block_size={block}", *DEEP)
        assert bandwidth(result) <= 2 / (1 / 3.2e9 + 1 / 1.05e9) * 1.1


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("device.bandwidth.read=0", "device.bandwidth.read"),
        ("device.small_writes.burst=0", "device.small_writes.burst"),
        ("device.depth=0", "device.depth"),
    ],
)
def test_limits_of_nothing_are_refused(tmp_path: Path, option: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        spec(tmp_path, option)


def test_half_a_limit_is_refused_where_the_profile_has_none(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"ramdisk.*give both"):
        spec(tmp_path, "device=ramdisk", "device.bandwidth.read=1 GB")
    assert load_device("ramdisk").bandwidth is None


def test_an_fsync_of_a_drive_without_a_protected_cache_is_a_flush_and_a_write_past_the_cache(
    tmp_path: Path,
) -> None:
    """3.5 ms on a Samsung 960 Pro (P. Zaitsev, Percona, 18 July 2018); here the writes come besides."""
    options = ("filesystem={kind: ext4}", "workload.direct=false", "workload.fsync=1", "workload.cached=true")
    each = 1e3 / per_second(fio(tmp_path, "randwrite", "device=nvme-client", *options))
    assert 3.5 < each < 4.2
