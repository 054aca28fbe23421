"""Before Linux 5.9, reclaim of a page that begins an extent makes the next fsync of the file log all of it (btrfs)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import acquired_each, held_each, run_scenario
from simfs.results.run_result import RunResult
from simfs.scenario import ScenarioError, expand, load


def run(
    tmp_path: Path,
    rule: str,
    memory: str,
    size: str = "128 MiB",
    block: str = "64 KiB",
    rules: str = "",
    tasks: int = 4,
) -> RunResult:
    """Four tasks append to files of which half is there: four times 64 MiB at first."""
    text = (
        "simfs: 1\nname: full\ntitle: full\n"
        f"machine: {{profile: dual-socket-48, cpus: 8, memory: {memory}}}\n"
        f"kernel: {{profile: linux-5.8, rules: {{btrfs.extent_map_release: {rule}{rules}}}}}\ndevice: nvme\n"
        f"filesystem: {{kind: btrfs}}\nworkload: {{kind: fio, rw: write, block_size: {block}, fsync: 1, tasks: {tasks},"
        f" files: per-task, size: {size}, written: 50 %}}\n"
    )
    result = run_scenario(tmp_path / "full.yaml", text, warmup_ns=5e6, duration_ns=60e6)
    assert result.operations > 50
    return result


def test_fsyncs_log_whole_files_when_memory_is_full(tmp_path: Path) -> None:
    full, fast = (run(tmp_path, rule, "128 MiB") for rule in ("full-sync", "old-maps"))
    assert full.throughput_per_s < 0.8 * fast.throughput_per_s
    assert acquired_each(full, "btrfs.log tree L0") > 2 * acquired_each(fast, "btrfs.log tree L0")
    assert acquired_each(full, "btrfs.csum tree L0") > 2 * acquired_each(fast, "btrfs.csum tree L0"), (
        "checksums are looked up again"
    )


def test_extents_of_earlier_transactions_are_copied_with_the_others_of_their_leaves(tmp_path: Path) -> None:
    """Before 5.18: those in the leaf of the inode, and in the one in which the new ones begin."""
    rules = (f", btrfs.copies_old_extents: {copies}" for copies in ("true", "false"))
    old, new = (run(tmp_path, "full-sync", "128 MiB", rules=rule) for rule in rules)
    held = [held_each(result, "btrfs.log tree L0") for result in (old, new)]
    assert held[0] > 1.1 * held[1]


def test_leaves_of_the_log_are_emptied_into_their_neighbours_otherwise_since_5_18(tmp_path: Path) -> None:
    rules = (f", btrfs.pushes_some_items: {pushes}" for pushes in ("true", "false"))
    old, new = (run(tmp_path, "full-sync", "128 MiB", rules=rule) for rule in rules)
    assert old != new


def test_a_file_that_was_written_alone_has_one_map(tmp_path: Path) -> None:
    """Its extents are neighbours on disk, and no page that is reclaimed begins another map."""
    full, fast = (run(tmp_path, rule, "64 MiB", tasks=1) for rule in ("full-sync", "old-maps"))
    assert acquired_each(full, "btrfs.log tree L0") < 1.5 * acquired_each(fast, "btrfs.log tree L0")


@pytest.mark.parametrize(("memory", "size"), [("16 GiB", "128 MiB"), ("32 MiB", "16 MiB")])
def test_they_do_not_where_there_is_room_or_files_are_small(tmp_path: Path, memory: str, size: str) -> None:
    """Files of less than 16 MiB keep their maps (`SZ_16M`)."""
    full, fast = (run(tmp_path, rule, memory, size) for rule in ("full-sync", "old-maps"))
    assert full == fast


@pytest.mark.parametrize("block", ["512 B", "5000 B", "12 KiB"])
def test_blocks_need_not_be_whole_pages(tmp_path: Path, block: str) -> None:
    assert run(tmp_path, "full-sync", "128 MiB", block=block).stall is None


def test_only_btrfs_has_files_that_were_written_before(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "simfs: 1\nname: bad\ntitle: bad\nmachine: server-24\nkernel: linux-6.12\ndevice: nvme\n"
        "filesystem: {kind: xfs}\nworkload: {kind: fio, rw: write, files: per-task, written: 50 %}\n"
    )
    with pytest.raises(ScenarioError, match=r"8:.*only btrfs gives each write a new place"):
        list(expand(load(file)))
