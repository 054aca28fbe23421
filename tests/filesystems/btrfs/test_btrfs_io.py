"""btrfs's data on their way to the device: ordered extents and their workers, direct I/O, what an fsync waits for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine import run_scenario
from simfs.cli import app
from simfs.results.run_result import RunResult

DIRECT = "kind: fio, direct: true, block_size: 4 KiB, size: 64 MiB, files: per-task"


def run(
    tmp_path: Path,
    job: str,
    rules: str = "",
    device: str = "nvme",
    filesystem: str = "btrfs",
    machine: str = "guest-2cpu",
) -> RunResult:
    text = (
        f"simfs: 1\nname: io\ntitle: io\nmachine: {machine}\n"
        f"kernel: {{profile: linux-6.18, rules: {{{rules}}}}}\ndevice: {device}\n"
        f"filesystem: {{kind: {filesystem}}}\nworkload: {{{job}}}\n"
    )
    result = run_scenario(tmp_path / "io.yaml", text, warmup_ns=5e6, duration_ns=40e6)
    assert result.operations > 0
    return result


def taken(result: RunResult, lock: str) -> tuple[float, float]:
    """How often an operation takes a lock for itself, and shared."""
    of = [one for one in result.locks if one.name == lock]
    shared = sum(one.acquired_shared for one in of) / result.operations
    return sum(one.acquired for one in of) / result.operations - shared, shared


def test_of_idle_workers_the_last_one_works_again(tmp_path: Path) -> None:
    """One thread's writes are all ended by one worker, whose CPU so never idles for long (`worker_enter_idle`)."""
    scenario = tmp_path / "one.yaml"
    scenario.write_text(
        "simfs: 1\nname: one\ntitle: one\nmachine: server-24\nkernel: linux-6.18\ndevice: ramdisk\n"
        "filesystem: {kind: btrfs}\nworkload: {kind: fs_mark, tasks: 1, size: 4 KiB, sync: 1}\n"
    )
    answer = CliRunner().invoke(app, ["trace", str(scenario), "--length", "3 ms", "--format", "json"])
    woken = Counter(event["task"] for event in json.loads(answer.stdout) if event["what"] == "wake")
    assert len(woken) == 2  # the load, and one of 24 workers
    assert min(woken.values()) > 10


def test_a_direct_read_is_ended_by_a_worker_that_verifies_it(tmp_path: Path) -> None:
    """On a RAM disk XFS reads without a switch; the worker is one to it and one back, on either CPU."""
    switches = {}
    for filesystem in ("xfs", "btrfs"):
        result = run(tmp_path, f"{DIRECT}, rw: randread", device="ramdisk", filesystem=filesystem)
        switches[filesystem] = result.context_switches / result.operations
    assert switches["xfs"] < 0.1
    assert switches["btrfs"] > 1.9


def test_direct_writes_of_data_with_checksums_go_through_the_page_cache_since_6_15(tmp_path: Path) -> None:
    """So they have the file for themselves while they copy; those before share it until they are written."""
    held = {
        how: taken(
            run(tmp_path, f"{DIRECT}, rw: randwrite", f"btrfs.direct_write: {how}, btrfs.dio_writes: shared"),
            "vfs.i_rwsem (file)",
        )
        for how in ("direct", "buffered")
    }
    assert held["direct"] == pytest.approx((0, 1), abs=0.02)
    assert held["buffered"] == pytest.approx((1, 0), abs=0.02)


@pytest.mark.parametrize(
    ("how", "write", "read"),
    [
        ("exclusive", (1, 0), (0, 0)),
        ("relocked", (2, 0), (0, 0)),
        ("shared", (0, 1), (0, 1)),
        ("reads-shared", (1, 0), (0, 1)),
    ],
)
def test_what_direct_io_held_changed_in_3_9_5_11_and_6_8(
    tmp_path: Path, how: str, write: tuple[float, float], read: tuple[float, float]
) -> None:
    for rw, held in (("randwrite", write), ("randread", read)):
        result = run(tmp_path, f"{DIRECT}, rw: {rw}", f"btrfs.direct_write: direct, btrfs.dio_writes: {how}")
        assert taken(result, "vfs.i_rwsem (file)") == pytest.approx(held, abs=0.02)


def test_direct_writes_take_turns_only_where_they_hold_the_lock_alone(tmp_path: Path) -> None:
    """`btrfs_direct_IO`."""
    rates = {
        how: run(
            tmp_path,
            f"{DIRECT.replace('per-task', 'shared')}, rw: randwrite, tasks: 4",
            f"btrfs.direct_write: direct, btrfs.dio_writes: {how}",
        ).operations
        for how in ("exclusive", "relocked", "shared")
    }
    assert rates["relocked"] > 1.5 * rates["exclusive"]
    assert rates["shared"] > 1.5 * rates["exclusive"]


def test_each_write_takes_a_new_place_and_a_worker_tells_the_trees(tmp_path: Path) -> None:
    """One extent item, sometimes also the end of the one that it lies in; one checksum; at least one head."""
    result = run(tmp_path, f"{DIRECT}, rw: randwrite")
    sites = {site.site for lock in result.locks if "fs tree" in lock.name for site in lock.sites}
    assert sites <= {"endio-write", "commit", "reclaim", "delayed items"}, (
        "no writer goes to the trees himself"
    )
    assert 1 <= taken(result, "btrfs.csum tree L0")[0] < 1.5
    assert 1 <= taken(result, "btrfs.fs tree L0")[0] < 3


def test_what_is_written_in_place_leaves_the_trees_alone(tmp_path: Path) -> None:
    result = run(tmp_path, f"{DIRECT}, rw: randwrite", filesystem="btrfs, nodatacow: true")
    assert taken(result, "btrfs.csum tree L0")[0] == 0
    assert taken(result, "btrfs.fs tree L0")[0] == 0
    assert taken(result, "btrfs.fs tree L0")[1] >= 0.9, "the file's extent is looked up"


def test_an_fsync_of_what_was_overwritten_waits_for_the_trees_until_5_9(tmp_path: Path) -> None:
    """With CPUs for both: a worker on the CPU of who waits goes first, and then nothing is left to wait for."""
    job = "kind: fio, rw: randwrite, block_size: 4 KiB, size: 64 MiB, files: per-task, cached: true, fsync: 1"
    times = {
        what: run(tmp_path, job, f"btrfs.fsync_wait: {what}", machine="server-24").latency["fsync"].p50_ns
        for what in ("ordered", "writeback")
    }
    assert times["ordered"] > times["writeback"] + 5_000, times
