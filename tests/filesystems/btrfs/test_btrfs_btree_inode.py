"""Dirty tree blocks of btrfs before a commit: who writes them, who pauses for them, and that they are copied again."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from test_btrfs_commit import acquired

from engine import audited, written_spec
from simfs.results.run_result import RunResult
from simfs.scenario import expand, load, to_run_spec

CREATES = "kind: mix, tasks: 4, operations: [{op: create}]"


def text(workload: str, *, memory: str, writepages: str, commit: str, bandwidth: str) -> str:
    return (
        f"simfs: 1\nname: s\ntitle: s\nmachine: {{profile: server-24, cpus: 4, memory: {memory}}}\n"
        f"kernel: {{profile: linux-6.18, tick: 1 ms, rules: {{btrfs.btree_writepages: {writepages}}}}}\n"
        f"device: {{profile: nvme, bandwidth: {{read: 1 GB, write: {bandwidth}}}}}\n"
        f"filesystem: {{kind: btrfs, size: 100 GiB, costs: {{commit_interval: {commit}}}}}\n"
        f"workload: {{{workload}}}\n"
    )


@cache
def run(
    folder: Path, *, milliseconds: float, workload: str = CREATES, memory: str = "64 GiB", writepages: str = "many",
    commit: str = "30 s", bandwidth: str = "1 GB", old_ns: float = 30e9,
) -> RunResult:  # fmt: skip
    """What has been dirty for so long is old, and looked for as often."""
    written = text(workload, memory=memory, writepages=writepages, commit=commit, bandwidth=bandwidth)
    spec = written_spec(folder / "s.yaml", written) | {"warmup_ns": 0, "duration_ns": milliseconds * 1e6}
    spec["vfs"]["costs"] |= {"writeback.interval": old_ns, "writeback.expire": old_ns}
    return audited(spec)


def writes(result: RunResult) -> int:
    return result.requests["write"].count if "write" in result.requests else 0


def test_few_old_blocks_are_written_before_the_commit_since_7_0(tmp_path: Path) -> None:
    """`for_kupdate`. They are copied before they change again, and the extent tree hears of each copy."""
    many, some = (run(tmp_path, milliseconds=20, writepages=rule, old_ns=1e6) for rule in ("many", "any"))
    assert writes(many) == 0 < writes(some)
    told = [acquired(result, "btrfs.delayed_refs") / result.operations for result in (many, some)]
    assert told[1] > 1.05 * told[0]


def test_blocks_of_files_that_are_laid_out_are_not_dirty(tmp_path: Path) -> None:
    reads = "kind: fio, rw: read, tasks: 1, size: 4 MiB, block_size: 4 KiB, files: per-task"
    assert writes(run(tmp_path, milliseconds=20, writepages="any", old_ns=1e6, workload=reads)) == 0


def test_few_blocks_are_not_written_while_too_much_is_dirty_before_7_0(tmp_path: Path) -> None:
    """Data of files keep the flusher at work, and what it writes of trees besides has to be copied again."""
    mixed = (
        "kind: mix, tasks: 4, files: 4, operations: [{op: create}, {op: append, size: 64 KiB, weight: 2.0}]"
    )
    told = []
    for rule in ("many", "any"):
        result = run(tmp_path, milliseconds=100, memory="64 MiB", writepages=rule, workload=mixed)
        told.append(acquired(result, "btrfs.delayed_refs") / result.operations)
    assert told[1] > 1.15 * told[0]


@pytest.mark.slow
def test_more_than_32_mib_are_written_while_too_much_is_dirty_and_who_changes_trees_pauses(
    tmp_path: Path,
) -> None:
    """A tenth of nine tenths of the memory is too much, and pauses begin half way to a fifth: 35 MiB of 256."""
    assert writes(run(tmp_path, milliseconds=500, memory="128 MiB")) == 0
    small, large = (
        run(tmp_path, milliseconds=2000, memory=memory, bandwidth="10 MB") for memory in ("256 MiB", "64 GiB")
    )
    assert writes(small) > 0 == writes(large)
    assert small.latency["create"].max_ns > 3 * large.latency["create"].max_ns


def test_a_commit_writes_what_nobody_has_written(tmp_path: Path) -> None:
    """Commits and the flusher at once; the structures are compared at the end."""
    both = run(tmp_path, milliseconds=60, writepages="any", old_ns=1e6, commit="7 ms")
    assert acquired(both, "btrfs.tree_log_mutex") > 4
    assert writes(both) > 20


def test_kernels_before_7_0_write_32_mib_at_least_and_before_5_9_writes_wait_for_trees(
    tmp_path: Path,
) -> None:
    path = tmp_path / "k.yaml"
    rules = {}
    for kernel in ("linux-5.8", "linux-5.9", "linux-6.18"):
        path.write_text(
            f"simfs: 1\nname: s\ntitle: s\nmachine: server-24\nkernel: {kernel}\ndevice: nvme\n"
            f"filesystem: {{kind: btrfs}}\nworkload: {{{CREATES}}}\n"
        )
        (point,) = expand(load(path))
        known = to_run_spec(point, 0)["kernel"]["rules"]
        rules[kernel] = known["btrfs.btree_writepages"], known["btrfs.writes_balance_trees"]
    assert rules == {
        "linux-5.8": ("many", True),
        "linux-5.9": ("many", False),
        "linux-6.18": ("many", False),
    }
