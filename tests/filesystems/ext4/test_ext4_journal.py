"""The journal of ext4: a transaction has a size, the log has room for some of them, and who wants more waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import assert_same

from engine import Spec, per_second, read_whole_answer, window, written_spec
from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

SCENARIO = """\
simfs: 1
name: journal
title: Creating files beside each other
machine: {profile: server-24, cpus: 8}
kernel: linux-6.12
filesystem: {kind: ext4, size: 512 MiB, inode_ratio: 1 KiB}
device: {profile: nvme}
workload: {kind: create, tasks: 4, directories: per-task, initial_files: 60000}
measure: {warmup: 200 ms, duration: 200 ms, replications: 1}
"""
BLOCK = 4096
SLOW = ("device.bandwidth.read=20 MB", "device.bandwidth.write=20 MB")


def spec(tmp_path: Path, *options: str) -> Spec:
    return written_spec(tmp_path / "journal.yaml", SCENARIO, *options)


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    return read_whole_answer(spec(tmp_path, *options))


def lock(result: dict[str, Any], name: str) -> dict[str, Any]:
    """What is told of a lock; of one that nobody took, that."""
    locks: list[dict[str, Any]] = result["locks"]
    return next((one for one in locks if one["name"] == name), {"acquired": 0, "contended": 0})


@pytest.mark.slow
def test_each_block_is_written_twice_so_that_a_slow_device_is_the_limit(tmp_path: Path) -> None:
    """A create in a huge directory changes a leaf of its own and a sixteenth of a block of inodes.

    A leaf that is changed again while it is in the log goes to its place once for all.
    """
    blocks = 1 + 1 / 16
    result = run(
        tmp_path,
        *SLOW,
        "filesystem.size=15 GiB",
        "workload.initial_files=3800000",
        "measure.warmup=5 s",
        "measure.duration=4 s",
    )
    twice = 20e6 / (2 * blocks * BLOCK)
    assert twice < per_second(result) < 1.5 * twice


@pytest.mark.slow
def test_only_the_log_is_slow(tmp_path: Path) -> None:
    slow = (
        *SLOW,
        "kernel=linux-6.10",
    )  # a transaction of a third of the log makes waits longer than the window
    assert per_second(run(tmp_path, *slow, "filesystem.journal=false")) > 4 * per_second(run(tmp_path, *slow))


@pytest.mark.slow
def test_a_log_that_has_room_is_not_checkpointed(tmp_path: Path) -> None:
    """The log of 512 MiB has 4096 blocks, that of 64 GiB 131,072 (mke2fs)."""
    checkpoints = [
        lock(run(tmp_path, f"filesystem.size={size}"), "ext4.j_checkpoint_mutex")["acquired"]
        for size in ("512 MiB", "64 GiB")
    ]
    assert checkpoints[0] > 0 == checkpoints[1]


@pytest.mark.slow
def test_who_waits_for_room_holds_his_directory(tmp_path: Path) -> None:
    """Tasks of one directory wait for its lock while its holder waits for room: longer than any of them is at work."""
    result = run(tmp_path, *SLOW, "workload.directories=shared", "measure.duration=600 ms")
    assert lock(result, "vfs.i_rwsem (directory)")["wait_max_ns"] > 20e6
    roomy = run(tmp_path, *SLOW, "workload.directories=shared", "filesystem.size=64 GiB")
    assert lock(roomy, "vfs.i_rwsem (directory)")["wait_max_ns"] < 1e6


@pytest.mark.slow
@pytest.mark.parametrize(("journal", "waits"), [(True, True), (False, False)])
def test_a_block_that_is_being_written_to_the_log_cannot_be_changed(
    tmp_path: Path, journal: bool, waits: bool
) -> None:
    """Who creates waits for the commit of who syncs, since both change the descriptors of the groups."""
    mix = "{kind: mix, tasks: 2, directories: per-task, files: 4, operations: [{op: create, weight: 50}, {op: fsync}]}"
    slow = ("device.write.time=5 ms", "device.write.cv=0", "filesystem.size=64 GiB")
    result = run(tmp_path, f"workload={mix}", *slow, f"filesystem.journal={str(journal).lower()}")
    assert (result["latency"]["create"]["max_ns"] > 3e6) == waits


LOADS = st.sampled_from(
    [
        {"kind": "create", "initial_files": 20_000},
        {"kind": "create_unlink"},
        {"kind": "tmpfile", "fsync": True},
        {"kind": "fs_mark", "files": 20, "size": "8 KiB", "sync": 1},
    ]
)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    load_=LOADS,
    tasks=st.integers(1, 5),
    directories=st.sampled_from(["shared", "per-task"]),
    size=st.sampled_from(["16 MiB", "100 MiB", "8 GiB"]),
    device=st.sampled_from(["nvme", "ramdisk", "loop-tmpfs", "sata-ssd"]),
)
def test_both_machines_commit_and_checkpoint_alike(
    tmp_path: Path, load_: dict[str, Any], tasks: int, directories: str, size: str, device: str
) -> None:
    asked = spec(
        tmp_path,
        f"workload={json.dumps(load_ | {'tasks': tasks, 'directories': directories})}",
        f"filesystem.size={size}",
        f"device={device}",
    )
    assert assert_same(asked | window(2e6)) > 20


def test_a_commit_has_the_inodes_of_directories_that_were_made_side_by_side_in_one_block(
    tmp_path: Path,
) -> None:
    """Sixteen tasks sync a new file each: a leaf for each directory, and not a block for the inode of each besides."""
    path = tmp_path / "synced.yaml"
    path.write_text("""
simfs: 1
name: synced
title: tasks sync files in directories of their own
machine: {profile: emulated, costs: {step_cv: 0.075}}  # tasks come apart
kernel: linux-6.12
device: {profile: nvme, write: {time: 10 us, cv: 0, per_kib: 10 us}}
filesystem: {kind: ext4, below: work}
workload: {kind: fs_mark, tasks: 16, directories: per-task, size: null, sync: 1}
measure: {warmup: 0 ms, duration: 10 ms, replications: 1, confidence: 95 %, seed: 1}
""")
    (point,) = expand(load(path))
    since: dict[int | None, int] = {}
    blocks = []
    for time, cpu, _, what, _ in _engine.trace(json.dumps(to_run_spec(point, 0)))[1]:
        if what == "submit":
            since[cpu] = time
        elif what == "device done" and cpu in since:
            blocks.append((time - since.pop(cpu)) / 10**6 / 40)
    first, *commits = [written for written in blocks if written > 1]  # one block ends each commit
    assert first > 2 * 16  # it has the new directories' blocks, too
    assert commits
    assert all(16 < written < 1.5 * 16 for written in commits)


def test_a_commit_that_goes_through_all_of_the_oldest_list_has_its_lock_for_longer(tmp_path: Path) -> None:
    """The directories' blocks are on it, and stay: 100 of them, with what they are in."""

    def held(scan: str) -> tuple[float, float]:
        result = run(
            tmp_path,
            "workload={kind: fs_mark, tasks: 1, subdirectories: 100, files: 1000, size: 1 KiB, write: 1 KiB, sync: 1}",
            f"kernel={{profile: linux-6.5, rules: {{ext4.checkpoint_scan: {scan}}}}}",
            "filesystem={kind: ext4, size: 8 GiB}",
            "measure.warmup=5 ms",
            "measure.duration=20 ms",
        )
        return lock(result, "ext4.j_list_lock")["hold_max_ns"], result["operations"]

    (stops, some), (every, fewer) = held("stops"), held("all")
    assert every > stops + 100 * 12
    assert fewer < some
