"""A task holds requests back in its plug until that is flushed, or it sleeps (`sched_submit_work`)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from busy_machines import Machines
from machines import assert_same

from engine import Spec, window, written_spec
from simfs import _engine
from simfs.machine.chains import Reason
from simfs.machine.task import Task

SYNCED = "kind: mix, files: 1, file_size: 4 KiB, order: in-turn, operations: [{op: append}, {op: fsync, on: written}]"


def spec(folder: Path, device: str, tasks: int, subvolumes: bool = False, **keys: Any) -> Spec:  # noqa: ANN401
    text = (
        "simfs: 1\nname: s\ntitle: s\nmachine: {profile: server-24, cpus: 4, cpus_per_llc: 4, cpus_per_socket: 4}\n"
        f"kernel: linux-6.12\ndevice: {device}\n"
        f"filesystem: {{kind: btrfs, subvolumes: {str(subvolumes).lower()}}}\n"
        f"workload: {{{SYNCED}, directories: per-task, tasks: {tasks}}}\n"
    )
    return written_spec(folder / "s.yaml", text) | window(3e6) | keys


def submissions(of: Spec) -> list[int]:
    """How many requests came to the device at one time, for each time."""
    events = _engine.trace(json.dumps(of))[1]
    times = Counter(time for time, _, _, what, _ in events if what == "submit")
    return [times[time] for time in sorted(times)]


def test_blocks_of_a_log_come_to_the_device_with_the_block_of_its_root(tmp_path: Path) -> None:
    """Data, two blocks in two copies, the superblock: `btrfs_sync_log` has one plug for the blocks of both trees."""
    assert submissions(spec(tmp_path, "null-blk", 1))[:6] == [1, 4, 1, 1, 4, 1]


def test_who_sleeps_with_a_plug_gives_up_what_it_holds(tmp_path: Path) -> None:
    """In subvolumes of their own tasks wait for the tree of log roots, and do not keep their logs back meanwhile."""
    assert 2 in submissions(spec(tmp_path, "{profile: nvme, flush: {time: 1 ms}}", 4, subvolumes=True))


@pytest.fixture
def machine() -> Machines:
    return Machines(2, idle=())


def test_a_plug_is_flushed_as_its_task_sleeps(machine: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    task, worker, seen = machine.busy[0], machine.task(1), list[Task | None]()
    monkeypatch.setattr(worker, "kick", seen.append)
    task.plug.hold_wakeup(worker)
    assert not seen
    machine.machine.scheduler.sleep(task, Reason.LOCK)
    assert seen == [None]
    assert task.plug.flushed == 1


@pytest.mark.parametrize(("limit", "most"), [("16-requests-or-128-kib", 16), ("32-requests-or-128-kib", 32)])
def test_a_commit_of_many_blocks_goes_to_the_device_in_plugs_full(
    tmp_path: Path, limit: str, most: int
) -> None:
    churn = "kind: create, tasks: 2, initial_files: 3000"
    text = (
        "simfs: 1\nname: s\ntitle: s\nmachine: {profile: server-24, cpus: 4, cpus_per_llc: 4, cpus_per_socket: 4}\n"
        f"kernel: {{profile: linux-6.12, rules: {{block.plug_limit: {limit}}}}}\n"
        "device: null-blk\nfilesystem: {kind: btrfs, costs: {commit_interval: 8 ms}}\n"
        f"workload: {{{churn}, directories: per-task}}\n"
    )
    of = written_spec(tmp_path / "s.yaml", text) | window(2e7)
    assert max(submissions(of)) == most


@pytest.mark.parametrize("device", ["null-blk", "loop-tmpfs", "nvme", "ramdisk"])
def test_both_machines_hold_the_same_back(tmp_path: Path, device: str) -> None:
    assert_same(spec(tmp_path, device, 3, subvolumes=True))
