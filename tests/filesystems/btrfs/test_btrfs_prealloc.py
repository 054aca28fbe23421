"""Files of btrfs that `fallocate` has made: what is written through the page cache stays where it was allocated."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import run_scenario, window, written_spec
from simfs.results.run_result import RunResult


def text(job: str, size: str = "16 MiB") -> str:
    return (
        "simfs: 1\nname: prealloc\ntitle: prealloc\nmachine: {profile: server-24, cpus: 4}\n"
        f"kernel: linux-5.10\ndevice: nvme\nfilesystem: {{kind: btrfs, size: 8 GiB}}\n"
        f"workload: {{kind: fio, tasks: 2, block_size: 4 KiB, size: {size}, files: per-task, {job}}}\n"
    )


def run(tmp_path: Path, job: str, size: str = "16 MiB") -> RunResult:
    return run_scenario(tmp_path / "prealloc.yaml", text(job, size), warmup_ns=5e6, duration_ns=20e6)


def taken(result: RunResult, lock: str, site: str) -> float:
    """How often an operation takes a lock at a site."""
    sites = [one for lock_ in result.locks if lock_.name == lock for one in lock_.sites if one.site == site]
    return sum(one.acquired for one in sites) / result.operations


@pytest.mark.parametrize("rw", ["randwrite", "write"])
def test_who_writes_back_looks_the_extent_up_and_whether_somebody_shares_it(tmp_path: Path, rw: str) -> None:
    """`run_delalloc_nocow`; the trees are checked at the end, so items are split and joined as they should be."""
    allocated = run(tmp_path, f"rw: {rw}, fsync: 1, unwritten: true")
    for tree in ("fs", "extent", "csum"):
        assert taken(allocated, f"btrfs.{tree} tree L0", "fsync") > 0.7, tree
    written = run(tmp_path, f"rw: {rw}, fsync: 1")
    assert taken(written, "btrfs.extent tree L0", "fsync") == 0


def test_what_was_written_there_before_takes_a_new_place(tmp_path: Path) -> None:
    """Only the file's extent is looked up then: of 16 blocks all are soon written."""
    again = run(tmp_path, "rw: randwrite, fsync: 1, unwritten: true", size="64 KiB")
    assert taken(again, "btrfs.fs tree L0", "fsync") > 0.7
    assert taken(again, "btrfs.extent tree L0", "fsync") < 0.1


@pytest.mark.slow
def test_both_machines_do_the_same(tmp_path: Path) -> None:
    made = written_spec(tmp_path / "prealloc.yaml", text("rw: randwrite, fsync: 2, unwritten: true"))
    assert assert_same(made | window(1e6)) > 50
