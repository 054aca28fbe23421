"""Before Linux 5.9, reclaim of a page that begins an extent makes the next fsync of the file log all of it (btrfs)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import acquired_each, run_scenario
from simfs.results.run_result import RunResult
from simfs.scenario import ScenarioError, expand, load


def run(tmp_path: Path, rule: str, memory: str, size: str = "128 MiB", block: str = "64 KiB") -> RunResult:
    """Four tasks append to files of which half is there: four times 64 MiB at first."""
    text = (
        "simfs: 1\nname: full\ntitle: full\n"
        f"machine: {{profile: dual-socket-48, cpus: 8, memory: {memory}}}\n"
        f"kernel: {{profile: linux-5.8, rules: {{btrfs.extent_map_release: {rule}}}}}\ndevice: nvme\n"
        f"filesystem: {{kind: btrfs}}\nworkload: {{kind: fio, rw: write, block_size: {block}, fsync: 1, tasks: 4,"
        f" files: per-task, size: {size}, written: 50 %}}\n"
    )
    result = run_scenario(tmp_path / "full.yaml", text, warmup_ns=5e6, duration_ns=60e6)
    assert result.operations > 100
    return result


def test_fsyncs_log_whole_files_when_memory_is_full(tmp_path: Path) -> None:
    full, fast = (run(tmp_path, rule, "128 MiB") for rule in ("full-sync", "old-maps"))
    assert full.throughput_per_s < 0.8 * fast.throughput_per_s
    assert acquired_each(full, "btrfs.log tree L0") > 2 * acquired_each(fast, "btrfs.log tree L0")
    assert acquired_each(full, "btrfs.csum tree L0") > 2 * acquired_each(fast, "btrfs.csum tree L0"), (
        "checksums are looked up again"
    )


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
