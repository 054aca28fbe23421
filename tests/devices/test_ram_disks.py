"""A RAM disk gets its pages as they are written first, and as RAID 0 it is sent flushes that workers pass on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from test_block_devices import run, spec

from simfs.scenario import ScenarioError

TEXT = """\
simfs: 1
name: ram
title: Files on RAM disks
machine: {{profile: server-24, cpus: 8}}
kernel: {kernel}
filesystem: {{kind: {filesystem}, size: 1 GiB}}
device: {{profile: ramdisk{array}}}
workload: {{{load}}}
measure: {{warmup: 0 ms, duration: 10 ms, replications: 1}}
"""
KEPT = "kind: fs_mark, tasks: 2, directories: per-task, size: 16 KiB, write: 16 KiB, sync: 1, keep: true"
REWRITTEN = (
    "kind: mix, tasks: 2, directories: per-task, order: in-turn, "
    "operations: [{op: create}, {op: append, size: 16 KiB, on: made}, {op: fsync, on: made}, {op: unlink, on: made}]"
)
SYNCS = "kind: fio, tasks: {tasks}, rw: randwrite, direct: true, size: 1 MiB, fsync: 1"


def given(tmp_path: Path, load: str, **parts: str) -> dict[str, Any]:
    parts = {"kernel": "linux-6.11", "filesystem": "ext4", "array": ""} | parts
    return spec(tmp_path, text=TEXT.format(load=load, **parts))


def lock(result: dict[str, Any], name: str) -> int:
    return sum(each["acquired"] for each in result["locks"] if each["name"] == name)


@pytest.mark.parametrize("filesystem", ["xfs", "ext4", "btrfs"])
def test_each_page_enters_the_tree_of_the_disk_with_its_first_write(tmp_path: Path, filesystem: str) -> None:
    """Four pages a file under the disk's lock; on btrfs those that come last may be on their way."""
    one = given(tmp_path, KEPT, filesystem=filesystem)
    result = run(one)
    assert lock(result, "brd.lock") == pytest.approx(4 * result["operations"], abs=8)
    assert_same(one | {"duration_ns": 1e6})


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_blocks_that_are_used_again_are_there(tmp_path: Path, filesystem: str) -> None:
    """Each round writes four pages. On XFS a file's blocks come back with its inode's worker."""
    result = run(given(tmp_path, REWRITTEN, filesystem=filesystem) | {"duration_ns": 30e6})
    pages = sum(each["count"] for name, each in result["latency"].items() if name == "append") * 4
    assert pages > 400
    assert lock(result, "brd.lock") < 0.3 * pages


@pytest.mark.parametrize(("kernel", "switches", "takes"), [("linux-6.11", 2, 2), ("linux-6.12", 0, 0)])
def test_a_flush_of_an_array_goes_through_a_worker_until_6_11(
    tmp_path: Path, kernel: str, switches: int, takes: int
) -> None:
    """Who syncs sleeps while the worker of its CPU sends the flushes; each takes the array's lock once."""
    one = given(tmp_path, SYNCS.format(tasks=1), kernel=kernel, array=", raid0: 4")
    result = run(one)
    assert result["context_switches"] / result["operations"] == pytest.approx(switches, abs=0.1)
    assert lock(result, "md.lock") / result["operations"] == pytest.approx(takes, abs=0.1)
    assert_same(one | {"duration_ns": 1e6})


def test_a_flush_does_for_all_who_asked_before_it_was_sent(tmp_path: Path) -> None:
    def syncs(rule: str) -> int:
        kernel = f"{{profile: linux-6.11, rules: {{md.flush: {rule}}}}}"
        one = given(tmp_path, SYNCS.format(tasks=8), kernel=kernel, array=", raid0: 4")
        assert_same(one | {"duration_ns": 1e6})
        return int(run(one)["operations"])

    assert syncs("joined") > 1.5 * syncs("alone")


def test_a_ram_disk_alone_is_sent_no_flushes(tmp_path: Path) -> None:
    assert not given(tmp_path, KEPT)["device"]["write_cache"]
    assert "write_cache" not in given(tmp_path, KEPT, array=", raid0: 4")["device"]


def test_arrays_are_of_devices_that_the_submitter_serves(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"nvme.*raid0"):
        spec(tmp_path, "device.raid0=4")


def test_an_array_without_members_is_refused(tmp_path: Path) -> None:
    one = given(tmp_path, KEPT, array=", raid0: 4")
    with pytest.raises(ValueError, match=r"device\.raid0: must be at least 1"):
        run(one | {"device": one["device"] | {"raid0": 0}})
