"""Lines that all tasks of a filesystem meet in, whatever directories they work in."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same
from tiny_machine import TinyMachine

from engine import Spec, rate, simulate, window
from simfs.scenario import expand, load, to_run_spec

CREATE = [{"op": "create"}, {"op": "unlink", "on": "made"}]
SHORTEN = [{"op": "shorten", "size": "1 B"}]
NOTHING: dict[str, Any] = {}
NONE = {
    "vfs.remove_count": "none",
    "vfs.creat_counts_root": False,
    "ext4.shutdown_checks": False,
    "ext4.device_checks": False,
}


def spec(
    path: Path,
    operations: list[dict[str, str]],
    tasks: int,
    filesystem: str = "tmpfs",
    **rules: Any,  # noqa: ANN401
) -> Spec:
    """Tasks in directories of their own; rules of the lines that are not given are off."""
    workload = {
        "kind": "mix",
        "tasks": tasks,
        "binding": "compact",
        "directories": "per-task",
        "operations": operations,
        "order": "in-turn",
    }
    workload |= (
        {"files": 1, "file_size": "100 kB"} if operations == SHORTEN else {"files": 0, "file_size": None}
    )
    kernel = {
        "profile": "linux-6.12",
        "rules": NONE | {name.replace("__", "."): v for name, v in rules.items()},
    }
    scenario = path / "lines.yaml"
    scenario.write_text(
        "simfs: 1\nname: m\ntitle: m\nmachine: server-24\ndevice: nvme\n"
        f"kernel: {json.dumps(kernel)}\nfilesystem: {{kind: {filesystem}}}\n"
        f"workload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {"warmup_ns": 2e5, "duration_ns": 1e6}


@pytest.mark.parametrize(
    ("rule", "value"), [("vfs__remove_count", "beside-permission"), ("vfs__creat_counts_root", True)]
)
def test_who_creates_and_unlinks_anywhere_meets_the_others(
    tmp_path: Path, rule: str, value: str | bool
) -> None:
    alone, many = (
        [rate(simulate(spec(tmp_path, CREATE, n, **r))) for r in (NOTHING, {rule: value})] for n in (1, 12)
    )
    assert alone[1] == pytest.approx(alone[0], rel=0.05)
    assert many[1] < 0.99 * many[0]


def test_each_new_reader_of_the_counts_line_costs(tmp_path: Path) -> None:
    """The second costs 0.3 %, which a millisecond does not tell."""
    words = ("none", "counted", "beside-permission")
    specs = [spec(tmp_path, CREATE, 12, vfs__remove_count=word) | {"duration_ns": 1e7} for word in words]
    rates = [rate(simulate(each)) for each in specs]
    assert rates == sorted(rates, reverse=True)


def test_who_marks_an_inode_dirty_fetches_the_line_of_the_orphans_lock(tmp_path: Path) -> None:
    off, on = (
        rate(simulate(spec(tmp_path, SHORTEN, 12, "ext4", ext4__shutdown_checks=v))) for v in (False, True)
    )
    assert on < 0.995 * off


class Counting(TinyMachine):
    """Counts accesses to each line."""

    def __init__(self, made: Spec) -> None:
        self.accesses: defaultdict[int, Counter[str]] = defaultdict(Counter)
        super().__init__(made)

    def touch(self, task: int, line: int, access: str) -> None:
        super().touch(task, line, access)
        self.accesses[line][access] += 1


def reads(path: Path, filesystem: str, **rules: str | bool) -> float:
    """Reads of all lines in a create and an unlink."""
    machine = Counting(spec(path, CREATE, 1, filesystem, **rules))
    machine.run(6 * 10**9)
    return sum(line["read"] for line in machine.accesses.values()) / sum(machine.operations.values())


@pytest.mark.parametrize(
    ("filesystem", "owners"),
    [("tmpfs", 1), ("xfs", 1), ("btrfs", 4)],  # a new inode's; three that btrfs writes
)
def test_owners_and_new_dentries_are_looked_up_in_the_counts_line(
    tmp_path: Path, filesystem: str, owners: int
) -> None:
    words = ("counted", "beside-owner", "beside-permission", "beside-operations")
    counts = [
        reads(tmp_path, filesystem, vfs__remove_count=word, xfs__translates_owner=False) for word in words
    ]
    steps = [after - before for before, after in itertools.pairwise(counts)]
    assert steps == pytest.approx([owners, 4, 1], abs=0.1)


def test_who_logs_an_inode_of_xfs_looks_for_its_owner(tmp_path: Path) -> None:
    """A create logs the new inode and the directory, an unlink both, the worker the inode once or twice."""
    counts = [
        reads(tmp_path, "xfs", vfs__remove_count="beside-owner", xfs__translates_owner=rule)
        for rule in (False, True)
    ]
    assert 5 < counts[1] - counts[0] < 6


def test_the_descriptor_is_read_each_time_that_an_inode_is_marked_dirty(tmp_path: Path) -> None:
    """A create and an unlink write the bitmap and the descriptor once each, and inodes ten times.

    Two checksums are made of the bitmap.
    """
    machine = Counting(spec(tmp_path, CREATE, 1, "ext4"))
    machine.run(2 * 10**9)
    cycles = sum(machine.operations.values())
    written = [line for line in machine.accesses.values() if round(line["write"] / cycles) == 2]
    assert sorted(round(line["read"] / cycles) for line in written if line["read"]) == [2, 10]


def test_who_gets_a_block_to_write_fetches_the_line_of_the_journals_lists(tmp_path: Path) -> None:
    off, on = (
        rate(simulate(spec(tmp_path, SHORTEN, 12, "ext4", ext4__device_checks=v))) for v in (False, True)
    )
    assert on < 0.985 * off


def test_without_a_journal_nobody_looks_there(tmp_path: Path) -> None:
    filesystem = "ext4, journal: false"
    off, on = (
        rate(simulate(spec(tmp_path, CREATE, 12, filesystem, ext4__device_checks=v))) for v in (False, True)
    )
    assert on == off


@pytest.mark.parametrize("rule", [False, True])
def test_both_machines_agree_on_ext4(tmp_path: Path, rule: bool) -> None:
    made = spec(tmp_path, CREATE, 4, "ext4", ext4__device_checks=rule)
    assert assert_same(made | window(5e4)) > 100


def test_both_machines_agree(tmp_path: Path) -> None:
    made = spec(tmp_path, CREATE, 4, vfs__remove_count="beside-permission", vfs__creat_counts_root=True)
    assert assert_same(made | window(5e4)) > 100
