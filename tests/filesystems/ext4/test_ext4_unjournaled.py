"""ext4 without a journal: an fsync writes blocks of metadata, and inodes freed seconds ago are passed by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine import per_second, read_whole_answer, written_spec

SCENARIO = """\
simfs: 1
name: unjournaled
title: Syncing and creating files without a journal
machine: {profile: server-24, cpus: 8}
kernel: linux-6.12
filesystem: {kind: ext4, size: 8 GiB, journal: false}
device: {profile: nvme, write: {time: 1 ms, cv: 0}, flush: {time: 0 ns, cv: 0}}
workload: {kind: tmpfile, tasks: 1, fsync: true, directories: per-task}
measure: {warmup: 20 ms, duration: 200 ms, replications: 1}
"""
APPEND = "workload={kind: mix, tasks: 1, files: 1, operations: [{op: append, size: 4 KiB, sync: true}]}"
TURNS = ", ".join(["{op: create}"] * 210 + ["{op: unlink, on: first}"] * 210)
TURNOVER = f"workload={{kind: mix, tasks: 1, files: 0, order: in-turn, operations: [{TURNS}]}}"


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    return read_whole_answer(written_spec(tmp_path / "unjournaled.yaml", SCENARIO, *options))


@pytest.mark.parametrize(("options", "writes"), [((), 3), ((APPEND,), 2)])
def test_an_fsync_writes_data_inode_and_the_directory_of_a_new_name(
    tmp_path: Path, options: tuple[str, ...], writes: int
) -> None:
    """One after the other, a ms each; all else takes less than that."""
    assert writes < 1000 / per_second(run(tmp_path, *options)) < writes + 1


def test_inodes_of_one_block_are_written_one_after_the_other(tmp_path: Path) -> None:
    """Two tasks whose inodes lie in one block of the table wait for each other's writes of it."""
    alone, both = (per_second(run(tmp_path, APPEND, f"workload.tasks={n}")) for n in (1, 4))
    assert both < 3 * alone


@pytest.mark.parametrize(("kernel", "held"), [("linux-5.4", True), ("linux-5.5", False)])
def test_the_inode_is_locked_meanwhile_until_5_4(tmp_path: Path, kernel: str, held: bool) -> None:
    result = run(tmp_path, f"kernel={kernel}")
    longest = max(lock["hold_max_ns"] for lock in result["locks"] if "i_rwsem" in lock["name"])
    assert (longest > 0.9e6) == held


@pytest.mark.parametrize(("journal", "slower"), [("true", False), ("false", True)])
def test_who_creates_passes_by_what_was_freed_before_this_second(
    tmp_path: Path, journal: str, slower: bool
) -> None:
    """A create takes 2 to 100 % longer, as 210 files were freed last early or late in the second before."""
    options = (TURNOVER, f"filesystem.journal={journal}", "measure.warmup=1100 ms", "measure.duration=100 ms")

    def create(avoids: str) -> float:
        kernel = f"kernel={{profile: linux-6.12, rules: {{ext4.avoids_freed: {avoids}}}}}"
        return float(run(tmp_path, *options, kernel)["latency"]["create"]["mean_ns"])

    assert (create("true") > 1.05 * create("false")) == slower


@pytest.mark.parametrize("operation", ["{op: chmod}", "{op: rename}"])
def test_a_call_does_not_take_what_the_journal_takes_of_it(tmp_path: Path, operation: str) -> None:
    """On Linux 6.18 a chmod takes 16 % less, a rename 4 to 6."""
    load = f"workload={{kind: mix, tasks: 1, files: 10, operations: [{operation}]}}"

    def rate(journal: str) -> float:
        return per_second(run(tmp_path, load, f"filesystem.journal={journal}"))

    assert rate("false") > 1.02 * rate("true")
