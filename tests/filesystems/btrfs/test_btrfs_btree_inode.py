"""Dirty tree blocks of btrfs before a commit: the flusher writes them, who has dirtied too many pauses, and what was written is copied again."""

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
    """`for_kupdate`. They are copied before they change again: each copy tells the extent tree of its place and of the one before."""
    many, some = (
        run(tmp_path, milliseconds=20, writepages=rule, old_ns=1e6) for rule in ("many", "any")
    )
    assert writes(many) == 0 < writes(some)
    told = [acquired(result, "btrfs.delayed_refs") / result.operations for result in (many, some)]
    assert told[1] > 1.05 * told[0]


@pytest.mark.slow
def test_32_mib_are_written_while_too_much_is_dirty(tmp_path: Path) -> None:
    """A tenth of nine tenths of 128 MiB is too much: 12 MiB."""
    little = {rule: run(tmp_path, milliseconds=150, memory="128 MiB", writepages=rule) for rule in ("many", "any")}
    assert writes(little["many"]) == 0 < writes(little["any"])
    assert writes(run(tmp_path, milliseconds=900, memory="128 MiB")) > 0


@pytest.mark.slow
def test_who_has_dirtied_more_tree_blocks_than_there_may_be_pauses(tmp_path: Path) -> None:
    """Half way between 10 and 20 % of 256 MiB is above 32 MiB."""
    longest = [
        run(tmp_path, milliseconds=900, memory=memory, bandwidth="10 MB").latency["create"].max_ns
        for memory in ("256 MiB", "64 GiB")
    ]
    assert longest[0] > 5e6 > longest[1]


def test_a_commit_writes_what_nobody_has_written(tmp_path: Path) -> None:
    """Commits and the flusher at once; the structures are compared at the end."""
    both = run(tmp_path, milliseconds=60, writepages="any", old_ns=1e6, commit="7 ms")
    assert acquired(both, "btrfs.tree_log_mutex") > 4
    assert writes(both) > 20


def test_kernels_before_7_0_write_32_mib_at_least_and_before_5_9_writes_wait_for_trees(tmp_path: Path) -> None:
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
