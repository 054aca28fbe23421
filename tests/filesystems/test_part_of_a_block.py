"""Direct requests of part of a block, and direct writes of blocks that were allocated and not written."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, acquired_each, audited, simulate, window, written_spec
from simfs.results.run_result import RunResult
from simfs.scenario import ScenarioError, expand, load

JOBS = """\
simfs: 1
name: jobs
title: Requests of 512 bytes
machine: {profile: server-24, cpus: 8}
kernel: linux-6.12
filesystem: {kind: ext4}
device: {profile: nvme, read: {time: 50 us, cv: 0}, write: {time: 50 us, cv: 0}}
workload: {kind: fio, tasks: 4, direct: true, rw: randwrite, size: 64 MiB, block_size: 512 B}
measure: {warmup: 5 ms, duration: 40 ms, replications: 1}
"""


def jobs(folder: Path, *options: str) -> Spec:
    return written_spec(folder / "jobs.yaml", JOBS, *options)


def run(folder: Path, *options: str) -> RunResult:
    return audited(jobs(folder, *options))


def shares(folder: Path, *options: str) -> bool:
    """Whether four tasks write nearly four times as much as one, or no more."""
    one, four = (run(folder, *options, f"workload.tasks={tasks}").throughput_per_s for tasks in (1, 4))
    assert four == pytest.approx(4 * one, rel=0.15) or four == pytest.approx(one, rel=0.15)
    return four > 2 * one


@pytest.mark.parametrize(
    ("kernel", "shared"),
    [("linux-5.5", False), ("linux-5.6", False), ("linux-6.4", False), ("linux-6.5", True)],
)
def test_parts_of_written_blocks_share_a_file_of_ext4_since_6_5(
    tmp_path: Path, kernel: str, shared: bool
) -> None:
    assert shares(tmp_path, f"kernel={kernel}") == shared
    assert shares(tmp_path, f"kernel={kernel}", "workload.block_size=4 KiB") == (kernel != "linux-5.5")


@pytest.mark.parametrize(
    ("kernel", "waits"), [("linux-5.4", False), ("linux-5.5", True), ("linux-6.4", True)]
)
def test_an_asynchronous_part_of_a_block_is_waited_for_from_5_5_to_6_4(
    tmp_path: Path, kernel: str, waits: bool
) -> None:
    one, deep = (
        run(tmp_path, f"kernel={kernel}", "workload.tasks=1", f"workload.iodepth={depth}").throughput_per_s
        for depth in (1, 8)
    )
    assert (deep < 1.2 * one) == waits


@pytest.mark.parametrize(
    ("rw", "tasks", "runs"), [("randwrite", 2, True), ("randrw", 1, True), ("randrw", 2, False)]
)
def test_asynchronous_parts_of_blocks_by_several_tasks_are_refused_beside_other_requests(
    tmp_path: Path, rw: str, tasks: int, runs: bool
) -> None:
    """Each waits until no other request is under way (`inode_dio_wait`): of reads by others that is not known here."""
    options = ("kernel=linux-6.2", f"workload.rw={rw}", f"workload.tasks={tasks}", "workload.iodepth=4")
    ended = simulate(jobs(tmp_path, *options, "workload.files=shared")).stall
    assert (ended is None) == runs
    assert runs or (ended and "need Linux 6.5 here" in ended.cycle[0])


@pytest.mark.parametrize(("kernel", "size", "shared"), [
    ("linux-6.2", 4096, False), ("linux-6.3", 4096, True), ("linux-6.12", 4096, True), ("linux-6.12", 512, False),
])  # fmt: skip
def test_unwritten_blocks_are_written_with_the_file_shared_since_6_3_if_whole(
    tmp_path: Path, kernel: str, size: int, shared: bool
) -> None:
    options = (
        f"kernel={kernel}",
        "workload.unwritten=true",
        f"workload.block_size={size} B",
        "workload.size=1 GiB",
    )
    assert shares(tmp_path, *options) == shared


def test_an_unwritten_block_is_split_before_its_write_and_converted_after_it_each_in_a_handle(
    tmp_path: Path,
) -> None:
    options = ("workload.block_size=4 KiB", "workload.tasks=1", "workload.size=4 GiB")
    written = run(tmp_path, *options)
    unwritten = run(tmp_path, *options, "workload.unwritten=true")
    assert acquired_each(written, "ext4.i_data_sem") == 0
    assert acquired_each(unwritten, "ext4.i_data_sem") == pytest.approx(2, abs=0.02)
    assert acquired_each(unwritten, "ext4.j_state_lock") == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(("split", "changes", "handles"), [
    ("before", 2, 2), ("after", 1, 2), ("after-only", 1, 1),
])  # fmt: skip
def test_an_extent_that_is_split_after_the_write_needs_one_handle(
    tmp_path: Path, split: str, changes: int, handles: int
) -> None:
    options = (
        "workload.block_size=4 KiB",
        "workload.tasks=1",
        "workload.size=4 GiB",
        "workload.unwritten=true",
    )
    result = run(tmp_path, *options, f"kernel={{profile: linux-6.18, rules: {{ext4.dio_split: {split}}}}}")
    assert acquired_each(result, "ext4.i_data_sem") == pytest.approx(changes, abs=0.02)
    assert acquired_each(result, "ext4.j_state_lock") == pytest.approx(handles, abs=0.05)


def test_a_block_is_unwritten_once(tmp_path: Path) -> None:
    """64 KiB of one block after the other: all are written in the warm-up."""
    options = ("workload.rw=write", "workload.block_size=4 KiB", "workload.tasks=1", "workload.size=64 KiB")
    result = run(tmp_path, *options, "workload.unwritten=true")
    assert acquired_each(result, "ext4.i_data_sem") == 0


@pytest.mark.parametrize("kernel", ["linux-5.4", "linux-6.12"])
def test_conversions_of_asynchronous_writes_are_a_workers(tmp_path: Path, kernel: str) -> None:
    options = (
        "workload.block_size=4 KiB",
        "workload.tasks=1",
        "workload.size=4 GiB",
        "workload.unwritten=true",
    )
    result = run(tmp_path, *options, "workload.iodepth=8", f"kernel={kernel}")
    (lock,) = [lock for lock in result.locks if lock.name == "ext4.i_data_sem"]
    worker = "ext4 conversion" if kernel == "linux-5.4" else "dio worker"
    assert {site.site for site in lock.sites if site.acquired > 10} == {"write", worker}


def test_parts_of_blocks_go_through_the_page_cache_on_btrfs(tmp_path: Path) -> None:
    """A write reads its block, unless that was read before, and writes all of it with the file for itself."""
    btrfs = ("filesystem={kind: btrfs}", "workload.tasks=1")
    part = run(tmp_path, *btrfs).latency["write"].mean_ns
    whole = run(tmp_path, *btrfs, "workload.block_size=4 KiB").latency["write"].mean_ns
    assert part > whole + 50e3  # the device reads for 50 us
    mixed = run(tmp_path, *btrfs, "workload.rw=randrw", "workload.size=16 KiB", "workload.rwmixread=90 %")
    assert mixed.latency["read"].p50_ns < 20e3


@pytest.mark.parametrize("kernel", ["linux-5.10", "linux-6.12"])
def test_parts_of_blocks_take_turns_on_btrfs(tmp_path: Path, kernel: str) -> None:
    btrfs = ("filesystem={kind: btrfs}", f"kernel={kernel}")
    result = run(tmp_path, *btrfs)
    (lock,) = [lock for lock in result.locks if lock.name == "vfs.i_rwsem (file)"]
    assert lock.contended > 0.3 * result.operations


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linux-3.8", "linux-5.5", "linux-6.4", "linux-6.12"])
@pytest.mark.parametrize(
    "options", [(), ("workload.unwritten=true",), ("workload.iodepth=4", "workload.tasks=1")]
)
def test_both_machines_do_the_same_on_ext4(tmp_path: Path, kernel: str, options: tuple[str, ...]) -> None:
    made = jobs(tmp_path, f"kernel={kernel}", "workload.size=64 KiB", "workload.fsync=7", *options)
    assert assert_same(made | window(2e6)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linux-3.10", "linux-6.12"])
def test_both_machines_do_the_same_on_btrfs(tmp_path: Path, kernel: str) -> None:
    made = jobs(
        tmp_path, "filesystem={kind: btrfs}", f"kernel={kernel}", "workload.rw=randrw", "workload.iodepth=3"
    )
    assert assert_same(made | window(2e6)) > 50


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("workload.rw=randrw",), "unwritten is for writes"),
        (("filesystem={kind: btrfs}",), "through the page cache on btrfs"),
    ],
)
def test_what_cannot_be_unwritten_is_refused(tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(JOBS)
    with pytest.raises(ScenarioError, match=why):
        expand(load(path, ["workload.unwritten=true", *options]))
