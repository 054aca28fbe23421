"""What the flusher holds back in its plug, and which files become one request there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

SCENARIO = """\
simfs: 1
name: small
title: Small files that the flusher writes
machine: {profile: server-24, cpus: 4, memory: 64 MiB}
kernel: linux-6.12
filesystem: {kind: xfs, size: 4 GiB}
device: {profile: nvme, write: {cv: 0}}
workload: {kind: fs_mark, tasks: 1, size: 4 KiB, write: 4 KiB, sync: 0, keep: true}
measure: {warmup: 150 ms, duration: 150 ms, replications: 1}
"""


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    """What a run counts."""
    given = spec(tmp_path, *options)
    result: dict[str, Any] = json.loads(_engine.run(json.dumps(given)))
    assert all(law["ok"] for law in result["laws"])
    return result


def spec(tmp_path: Path, *options: str) -> dict[str, Any]:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return to_run_spec(expand(load(str(path), options))[0], 0)


def files_a_request(result: dict[str, Any]) -> float:
    """Files that were created for each write of the device: the flusher keeps up with who creates them."""
    written: int = result["requests"]["write"]["count"]
    return int(result["operations"]) / written


def kernel_time(result: dict[str, Any]) -> float:
    """Of all CPUs, for a file."""
    times: dict[str, float] = result["cpu_ns"]
    return (times["system"] + times["irq"] + times["switch"]) / int(result["operations"])


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
@pytest.mark.parametrize("device", ["nvme", "loop-tmpfs"])
def test_files_that_lie_side_by_side_are_one_request_of_at_most_128(
    tmp_path: Path, filesystem: str, device: str
) -> None:
    at = [f"filesystem.kind={filesystem}", f"device.profile={device}"]
    together = run(tmp_path, *at)
    apart = run(tmp_path, *at, "kernel.rules={block.flusher_plugs: false}")
    if device == "nvme":  # a worker's requests are not counted
        assert 20 < files_a_request(together) <= 128
        assert files_a_request(apart) < 1.5
    assert kernel_time(together) < kernel_time(apart)


@pytest.mark.parametrize(
    ("rules", "least", "most"), [("{block.plug_merges_any: true}", 8, 128), ("{}", 0, 2)]
)
def test_files_of_directories_in_turn_are_neighbours_of_requests_before_the_last(
    tmp_path: Path, rules: str, least: float, most: float
) -> None:
    """Eight threads create in directories of eight groups, so that no file lies behind the one before it."""
    eight = ["workload.tasks=8", "workload.directories=per-task", "filesystem.agcount=8"]
    assert least < files_a_request(run(tmp_path, *eight, f"kernel.rules={rules}")) <= most


@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs"])
@pytest.mark.parametrize("device", ["nvme", "hdd", "loop-tmpfs"])
@pytest.mark.parametrize("kernel", ["linux-4.3", "linux-6.12"])
def test_both_machines_agree(tmp_path: Path, filesystem: str, device: str, kernel: str) -> None:
    at = [f"filesystem.kind={filesystem}", f"device.profile={device}", f"kernel.profile={kernel}"]
    short = ["measure.warmup=0 ms", "measure.duration=60 ms", "machine.memory=32 MiB", "workload.tasks=2"]
    assert_same(spec(tmp_path, *at, *short))
