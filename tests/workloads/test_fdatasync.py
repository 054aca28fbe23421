"""`fdatasync`: new times of a file are no reason to write the log, its size and its blocks are."""

from __future__ import annotations

from pathlib import Path

import pytest
from fio_jobs import SCENARIO, spec
from machines import assert_same

from engine import Spec, audited, read_whole_answer, window, written_spec

DEVICE = "device={profile: nvme, write_cache: none, write: {time: 5 ms, cv: 0}}"
ONE = ("workload.tasks=1", "workload.direct=false", "workload.rw=randwrite", "workload.cached=true", DEVICE)
"""Each write is in a tick of its own, so that it changes the times of the file."""

MIX = """\
simfs: 1
name: mix
title: A file that is synced
machine: {profile: server-24, cpus: 4}
kernel: linux-6.12
filesystem: {kind: xfs}
device: {profile: nvme, write_cache: none, write: {time: 5 ms, cv: 0}}
workload: {kind: mix, tasks: 1, order: in-turn, files: 1, file_size: 64 KiB, operations: OPS}
measure: {warmup: 50 ms, duration: 400 ms, replications: 1}
"""


def writes_each(tmp_path: Path, call: str, *options: str) -> float:
    """How many times of a write a sync takes."""
    result = read_whole_answer(spec(tmp_path, *ONE, f"workload.{call}=1", *options) | window(4e8))
    return float(result["latency"][call]["mean_ns"]) / 5e6


@pytest.mark.parametrize(("filesystem", "log"), [("xfs", 1), ("ext4", 2)])
def test_a_block_that_is_overwritten_is_on_disk_without_the_log(
    tmp_path: Path, filesystem: str, log: int
) -> None:
    """ext4's commit waits for its blocks, and then for its commit record."""
    kind = f"filesystem.kind={filesystem}"
    assert writes_each(tmp_path, "fdatasync", kind) == pytest.approx(1, abs=0.15)
    assert writes_each(tmp_path, "fsync", kind) == pytest.approx(1 + log, abs=0.2)


def test_without_a_journal_an_inode_of_which_only_the_times_are_dirty_is_not_written(tmp_path: Path) -> None:
    plain = ("filesystem.kind=ext4", "filesystem.journal=false")
    assert writes_each(tmp_path, "fdatasync", *plain) == pytest.approx(1, abs=0.15)
    assert writes_each(tmp_path, "fsync", *plain) == pytest.approx(2, abs=0.2)


def test_btrfs_logs_the_inode_whichever_it_is(tmp_path: Path) -> None:
    each = [writes_each(tmp_path, call, "filesystem.kind=btrfs") for call in ("fdatasync", "fsync")]
    assert each[0] == pytest.approx(each[1], rel=0.02)


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
@pytest.mark.parametrize(
    ("before", "asks"),
    [
        ("{op: append}", True),
        ("{op: truncate}, {op: append}", True),
        ("{op: overwrite}", False),
        ("{op: utimes}", None),
        ("{op: chmod}", None),
    ],
)
def test_what_an_fdatasync_needs_of_a_file(
    tmp_path: Path, filesystem: str, before: str, asks: bool | None
) -> None:
    """Attributes are the core of an inode on XFS, all of which is logged; ext4 asks for sizes and blocks only."""

    def mean(call: str) -> float:
        text = MIX.replace("OPS", f"[{before}, {{op: {call}}}]")
        given = written_spec(tmp_path / "mix.yaml", text, f"filesystem.kind={filesystem}")
        return audited(given).latency[call].mean_ns

    needs_all = asks if asks is not None else filesystem == "xfs"
    fsync, fdatasync = mean("fsync"), mean("fdatasync")
    assert fdatasync == pytest.approx(fsync, rel=0.05) if needs_all else fdatasync < 0.7 * fsync


def test_until_4_4_xfs_forces_the_log_until_the_inode_is_in_its_place(tmp_path: Path) -> None:
    """What of it was logged was forgotten only there: `fsync` did not look at it."""
    old = "kernel.rules.xfs.fsync_ilock=brief"
    text = MIX.replace("OPS", "[{op: append}, {op: fdatasync}, {op: overwrite}, {op: fdatasync}]")

    def mean(*options: str) -> float:
        given = written_spec(tmp_path / "mix.yaml", text, *options) | window(2e9)
        return audited(given).latency["fdatasync"].mean_ns

    assert mean(old) > 1.2 * mean()


@pytest.mark.slow
@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs", "tmpfs"])
def test_both_machines_do_the_same_fdatasyncs(tmp_path: Path, filesystem: str) -> None:
    options = (f"filesystem.kind={filesystem}", "workload.fdatasync=2", "workload.fsync=5")
    given: Spec = spec(tmp_path, "workload.direct=false", "workload.rw=randwrite", *options, text=SCENARIO)
    assert assert_same(given | window(2e6)) > 50
