"""Inodes of ext4: which bitmap tasks meet in, who reads a block of the inode table, and what orphans wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, read_answer, written_spec
from simfs.scenario import ScenarioError

SCENARIO = """\
simfs: 1
name: inodes
title: Files in directories of their own
machine: {profile: server-24, cpus: 8}
kernel: linux-6.12
filesystem: {kind: ext4, size: 8 GiB}
device: nvme
workload: {kind: create, tasks: 8, directories: per-task}
measure: {warmup: 1 ms, duration: 20 ms, replications: 1}
"""


def spec(tmp_path: Path, *options: str) -> Spec:
    return written_spec(tmp_path / "inodes.yaml", SCENARIO, *options)


def run(tmp_path: Path, *options: str) -> dict[str, Any]:
    return read_answer(spec(tmp_path, *options))


def per_operation(result: dict[str, Any], name: str, count: str = "acquired") -> float:
    locks = {lock["name"]: lock for lock in result["locks"]}
    return float(locks[name][count]) / float(result["operations"]) if name in locks else 0.0


def test_a_block_of_the_inode_table_is_brought_in_once_in_16_creates(tmp_path: Path) -> None:
    """One task alone finds all other inodes of the block free, so it reads nothing."""
    alone = run(tmp_path, "workload.tasks=1")
    assert per_operation(alone, "ext4.inode table") == pytest.approx(
        2 / 16, rel=0.05
    )  # and once to change it
    assert alone["context_switches"] <= 1


def test_who_shares_a_flex_group_waits_for_who_reads_the_block(tmp_path: Path) -> None:
    """One in 16 reads; those who got its neighbours sleep for its lock meanwhile: 0.046 to 0.053 by six seeds."""
    together = run(tmp_path)
    assert per_operation(together, "ext4.inode table", "contended") > 0.03
    assert together["context_switches"] > 0.05 * together["operations"]


def test_who_waits_for_a_block_does_not_wait_for_its_first_change(tmp_path: Path) -> None:
    """`jbd2_journal_get_write_access` comes after `unlock_buffer`."""
    given = spec(tmp_path, "workload.tasks=1")
    holds, times = [], []
    for more in (0, 10_000):
        given["filesystem"]["costs"]["inode_table.block"] += more
        result = read_answer(given)
        (lock,) = (lock for lock in result["locks"] if lock["name"] == "ext4.inode table")
        holds.append(lock["hold_total_ns"] / lock["acquired"])
        times.append(given["duration_ns"] / result["operations"])
    assert holds[1] - holds[0] == pytest.approx(0, abs=100)
    assert times[1] - times[0] > 300  # once in 16 creates


def test_the_end_of_a_read_unlocks_the_block(tmp_path: Path) -> None:
    """The device's interrupt does (`end_buffer_read_sync`): the way of the reader to its CPU is no part of a hold."""
    given = spec(tmp_path)
    holds = []
    for more in (0, 200_000):
        given["machine"]["costs"]["context_switch"] += more
        result = read_answer(given)
        (lock,) = (lock for lock in result["locks"] if lock["name"] == "ext4.inode table")
        holds.append(lock["hold_total_ns"] / lock["acquired"])
    assert holds[1] < 2 * holds[0]


def test_inodes_that_are_used_again_are_read_by_nobody(tmp_path: Path) -> None:
    """Who creates and unlinks takes the lowest number, whose block came in long ago."""
    result = run(tmp_path, "workload.kind=create_unlink", "measure.warmup=5 ms")
    assert per_operation(result, "ext4.inode table") < 0.01


@pytest.mark.parametrize(
    ("option", "orphans"),
    [
        ("filesystem.orphan_file=false", 2),
        ("filesystem.orphan_file=true", 0),
        ("filesystem.journal=false", 0),
    ],
)
def test_an_unlink_is_on_the_list_of_orphans_and_off_it(tmp_path: Path, option: str, orphans: int) -> None:
    result = run(tmp_path, "workload.kind=create_unlink", option)
    assert per_operation(result, "ext4.orphan lock") == pytest.approx(orphans, rel=0.02)


def test_marking_inodes_keeps_nobody_from_the_list_of_orphans(tmp_path: Path) -> None:
    """A single task's parts under `s_orphan_lock` are 150 ns each (`orphan.first`)."""
    result = run(tmp_path, "workload.kind=create_unlink", "workload.tasks=1")
    lock = next(lock for lock in result["locks"] if lock["name"] == "ext4.orphan lock")
    assert lock["hold_total_ns"] / lock["acquired"] < 300


def test_a_filesystem_has_an_inode_for_so_many_bytes(tmp_path: Path) -> None:
    """128 MiB with an inode for 64 KiB has 2,048, of which 11 are there and 8 are directories."""
    result = run(tmp_path, "filesystem.size=128 MiB", "filesystem.inode_ratio=64 KiB", "measure.warmup=0 s")
    assert result["stall"]["kind"] == "no space left"
    assert 2048 - 11 - 8 - result["operations"] in range(9)


def test_directories_below_another_share_a_bitmap(tmp_path: Path) -> None:
    """In the root they spread over flex groups (4 of 8 GiB), below another they share one."""
    spread, together = (
        run(tmp_path, "filesystem.size=8 GiB", f"filesystem.below={below}") for below in ("null", "work")
    )
    bits = "ext4.group lock"
    assert per_operation(together, bits, "contended") > 1.5 * per_operation(spread, bits, "contended")


def test_a_seed_is_the_words_of_its_uuid(tmp_path: Path) -> None:
    """`s_hash_seed` has the bytes of the UUID as four little-endian words."""
    made = spec(tmp_path, "filesystem.hash_seed=12345678-9abc-def0-1234-56789abcdef0")
    assert made["filesystem"]["hash_seed"] == [0x78563412, 0xF0DEBC9A, 0x78563412, 0xF0DEBC9A]


@pytest.mark.parametrize(
    "wrong", ["hash_seed=half", "hash_seed=12345678-9ABC-def0-1234-56789abcdef0", "below=a/b", "below="]
)
def test_seeds_are_uuids_and_directories_are_names(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ScenarioError):
        spec(tmp_path, f"filesystem.{wrong}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load_", "device"),
    [
        ("create", "loop-tmpfs"),
        ("create", "nvme"),
        ("create_unlink", "loop-tmpfs"),
        ("tmpfile", "loop-tmpfs"),
    ],
)
def test_both_machines_do_the_same(tmp_path: Path, load_: str, device: str) -> None:
    options = (f"workload.kind={load_}", "workload.tasks=4", "measure.duration=2 ms", f"device={device}")
    assert assert_same(spec(tmp_path, *options)) > 20


ONE_GROUP = ("filesystem.below=work", "device=ramdisk")


def test_who_lost_an_inode_looks_for_the_next_under_the_lock_since_4_15(tmp_path: Path) -> None:
    """A create locks the group twice; before 4.15 once more for each inode that others were faster to take."""
    taken = {}
    for rule in ("false", "true"):
        for tasks in (1, 8):
            options = (f"workload.tasks={tasks}", f"kernel.rules.ext4.locked_inode_search={rule}", *ONE_GROUP)
            taken[rule, tasks] = per_operation(run(tmp_path, *options), "ext4.group lock")
    assert taken["false", 1] == taken["true", 1] == pytest.approx(2, rel=0.02)
    assert taken["true", 8] == pytest.approx(2, rel=0.02)
    assert taken["false", 8] > 2.1


def test_bits_of_a_buffer_were_set_each_time_until_4_14(tmp_path: Path) -> None:
    """Tasks whose inodes lie in one block of the table meet in its buffer."""
    chmod = "workload={kind: mix, tasks: 8, directories: per-task, files: 1, operations: [{op: chmod}]}"
    rates = [
        run(tmp_path, chmod, f"kernel.rules.ext4.sets_buffer_bits={sets}")["operations"]
        for sets in ("false", "true")
    ]
    assert rates[1] < 0.99 * rates[0]


def test_a_handle_reads_the_pointer_to_the_journal_beside_the_lock_of_orphans(tmp_path: Path) -> None:
    """Two tasks that truncate files of their own take the lock twice each; their four handles read its line."""
    both = "[{op: utimes}, {op: shorten, size: 1 B}]"
    load = (
        f"kind: mix, tasks: 2, directories: per-task, file_size: 100 kB, order: in-turn, operations: {both}"
    )
    result = run(tmp_path, f"workload={{{load}}}", "measure.duration=5 ms")
    assert per_operation(result, "ext4.orphan lock") == pytest.approx(2, rel=0.02)
    assert per_operation(result, "ext4.orphan lock", "line_transfers") > 3
