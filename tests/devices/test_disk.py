"""A disk has one arm and turning platters, and serves first what it reaches first. Its cache takes writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import window
from simfs import _engine
from simfs.scenario import ScenarioError, expand, load, to_run_spec

TURN = 6e6  # ns
SCENARIO = """\
simfs: 1
name: disk
title: Direct reads of a file on a disk
machine: {profile: server-24, cpus: 8}
kernel: linux-6.12
filesystem: {kind: ext4, size: 32 GiB}
device:
  profile: hdd
  disk: {revolution: 6 ms, seek_track: 400 us, seek_full: 8 ms, capacity: 600 GB}
  read: {time: 100 us, cv: 0}
workload: {kind: fio, tasks: 1, rw: randread, direct: true, block_size: 4 KiB, size: 10 GiB}
measure: {warmup: 1 s, duration: 60 s, replications: 1}
"""


def spec(tmp_path: Path, *options: str) -> dict[str, Any]:
    path = tmp_path / "disk.yaml"
    path.write_text(SCENARIO)
    return to_run_spec(expand(load(str(path), options))[0], 0)


def time_each(tmp_path: Path, *options: str) -> float:
    """Time for each request, in ns."""
    result = json.loads(_engine.run(json.dumps(spec(tmp_path, *options))))
    assert all(law["ok"] for law in result["laws"])
    return float(result["window_ns"] / result["operations"])


def test_a_disk_that_has_one_request_at_a_time_needs_a_seek_half_a_turn_and_its_own_time_for_each(
    tmp_path: Path,
) -> None:
    """Two random places of a part p of the disk: the mean root of their distance is 8/15 of that of p."""
    seek = 0.4e6 + (8e6 - 0.4e6) * (10 * 2**30 / 600e9) ** 0.5 * 8 / 15
    each = time_each(tmp_path, "workload.tasks=16", "device.depth=1")
    assert each == pytest.approx(seek + TURN / 2 + 0.1e6, rel=0.02)


def test_one_block_again_and_again_comes_once_a_turn(tmp_path: Path) -> None:
    assert time_each(tmp_path, "workload.size=4 KiB") == pytest.approx(TURN, rel=0.01)


@pytest.mark.parametrize(("kind", "turns"), [("xfs", 1), ("ext4", 2)])
def test_a_log_lies_in_one_place_so_that_a_sync_takes_turns_and_no_seek(
    tmp_path: Path, kind: str, turns: int
) -> None:
    """What is written lies behind what the last sync wrote, and that has just passed the head. ext4 flushes twice."""
    load = "workload={kind: mix, tasks: 1, order: in-turn, operations: [{op: chmod}, {op: fsync}]}"
    each = time_each(tmp_path, f"filesystem.kind={kind}", load, "measure.duration=10 s")
    assert each == pytest.approx(turns * TURN, rel=0.1)


WRITES = ("workload.rw=randwrite", "device.write={time: 100 us, cv: 0}", "measure.duration=5 s")


def test_a_write_is_done_when_it_is_in_the_cache(tmp_path: Path) -> None:
    assert time_each(tmp_path, *WRITES, "measure.warmup=0 ns", "measure.duration=100 ms") < 0.15e6


def test_a_full_cache_takes_as_many_writes_as_the_arm_takes_out(tmp_path: Path) -> None:
    """The arm takes the nearest of the oldest 32, as of so many reads."""
    reads = time_each(tmp_path, "workload.tasks=32", "measure.duration=5 s")
    assert time_each(tmp_path, *WRITES, "device.disk.cache=1 MiB") == pytest.approx(reads, rel=0.15)


def test_without_a_cache_a_write_takes_its_seek_and_half_a_turn(tmp_path: Path) -> None:
    seek = 0.4e6 + (8e6 - 0.4e6) * (10 * 2**30 / 600e9) ** 0.5 * 8 / 15
    assert time_each(tmp_path, *WRITES, "device.write_cache=none") == pytest.approx(seek + TURN / 2, rel=0.1)


def test_without_a_cache_a_write_has_a_time_of_its_own_too(tmp_path: Path) -> None:
    def time(own: str) -> float:
        return time_each(tmp_path, *WRITES, "device.write_cache=none", f"device.write.time={own}")

    assert time("10 ms") - time("100 us") == pytest.approx(9.9e6, rel=0.1)


def test_the_more_requests_a_disk_has_the_sooner_it_reaches_one_of_them(tmp_path: Path) -> None:
    times = [time_each(tmp_path, f"workload.tasks={tasks}") for tasks in (1, 4, 16)]
    assert times[0] > 1.5 * times[1] > 1.5 * 1.5 * times[2]


@pytest.mark.parametrize(
    ("tasks", "option"),
    [(1, "device.disk.cache=64 MiB"), (7, "device.disk.cache=16 KiB"), (7, "device.write_cache=none")],
)
def test_both_machines_agree_about_a_disk(tmp_path: Path, tasks: int, option: str) -> None:
    given = spec(tmp_path, f"workload.tasks={tasks}", "workload.rw=randrw", "workload.fsync=5", option)
    assert assert_same(given | window(2e8)) > 200


def test_only_a_disk_has_an_arm(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="device nvme is no disk"):
        spec(tmp_path, "device.profile=nvme")


def test_both_machines_agree_about_a_log_on_a_disk(tmp_path: Path) -> None:
    load = "workload={kind: mix, tasks: 3, order: in-turn, operations: [{op: chmod}, {op: fsync}]}"
    given = spec(tmp_path, "filesystem.kind=xfs", load)
    assert assert_same(given | window(2e8)) > 20
