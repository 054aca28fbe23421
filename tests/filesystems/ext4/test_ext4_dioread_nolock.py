"""What ext4 writes back goes to unwritten blocks since 5.6, which a worker converts."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import acquired_each, audited, written_spec
from simfs.results.run_result import RunResult

WRITER = """\
simfs: 1
name: writer
title: Blocks of 4 KiB that are written to a file and synced
machine: {profile: server-24, cpus: 8}
kernel: linux-5.5
filesystem: {kind: ext4}
device: {profile: nvme, read: {time: 50 us, cv: 0}, write: {time: 50 us, cv: 0}}
workload: {kind: fio, tasks: 1, rw: randwrite, size: 1 GiB, block_size: 4 KiB, fsync: 1, unwritten: true}
measure: {warmup: 5 ms, duration: 40 ms, replications: 1}
"""


def run(folder: Path, *options: str) -> RunResult:
    return audited(written_spec(folder / "writer.yaml", WRITER, *options))


@pytest.mark.parametrize(("kernel", "changes"), [("linux-5.5", 1), ("linux-5.6", 2)])
def test_blocks_that_were_allocated_are_converted_when_they_are_submitted_or_at_the_end(
    tmp_path: Path, kernel: str, changes: int
) -> None:
    """Until 5.5 in the handle that there is anyway (`ext4_ext_convert_to_initialized`), since then in a worker's."""
    unwritten, written = (
        run(tmp_path, f"kernel={kernel}", f"workload.unwritten={how}") for how in ("true", "false")
    )
    assert acquired_each(written, "ext4.i_data_sem") == 0
    assert acquired_each(unwritten, "ext4.i_data_sem") == pytest.approx(changes, abs=0.05)


APPENDS = ("workload={kind: mix, operations: [{op: append, size: 4 KiB}, {op: fsync}], order: in-turn}",)


def test_new_blocks_are_written_ones_without_dioread_nolock(tmp_path: Path) -> None:
    """The worker's handle goes, and with it one change of the extents and two passes of the journal's lock."""
    before, after = (run(tmp_path, *APPENDS, f"kernel={kernel}") for kernel in ("linux-5.5", "linux-5.6"))
    assert acquired_each(after, "ext4.i_data_sem") - acquired_each(
        before, "ext4.i_data_sem"
    ) == pytest.approx(1, abs=0.05)
    assert before.throughput_per_s > after.throughput_per_s
