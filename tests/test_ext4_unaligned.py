"""Direct writes of less than a block to one file of ext4 by tasks with several requests under way, before Linux 6.5."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import simulate, written_spec


@pytest.mark.parametrize(
    ("rw", "tasks", "goes"), [("randwrite", 2, True), ("randrw", 1, True), ("randrw", 2, False)]
)
def test_such_writes_wait_for_requests_of_others_only_if_those_are_such_writes_too(
    tmp_path: Path, rw: str, tasks: int, goes: bool
) -> None:
    """Each has the file for itself until it is done (`inode_dio_wait`); what else is under way is not known here."""
    text = (
        "simfs: 1\nname: half\ntitle: half\nmachine: {profile: server-24, cpus: 4}\nkernel: linux-6.2\n"
        "filesystem: {kind: ext4, size: 8 GiB}\ndevice: nvme\n"
        f"workload: {{kind: fio, tasks: {tasks}, rw: {rw}, size: 1 MiB, block_size: 2 KiB, files: shared,\n"
        "  direct: true, iodepth: 4}\n"
    )
    spec = written_spec(tmp_path / "half.yaml", text) | {"warmup_ns": 0, "duration_ns": 2e6}
    ended = simulate(spec).stall
    assert (ended is None) == goes
    if ended:
        assert "need Linux 6.5 here" in ended.cycle[0]
