"""`on: next` takes a task's files one directory after the other, in the order in which they were made, as `rm -r`."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, simulate_whole, window, written_spec
from simfs.results.run_result import RunResult

FILES = 256


def unlinking(folder: Path, on: str, directories: int) -> Spec:
    return written_spec(
        folder / "u.yaml",
        "simfs: 1\nname: u\ntitle: u\nmachine: {profile: server-24, cpus: 2}\nkernel: linux-5.10\n"
        "filesystem: {kind: xfs, size: 8 GiB}\ndevice: nvme\n"
        f"workload: {{kind: mix, tasks: 1, operations: [{{op: unlink, on: {on}}}], files: {FILES},"
        f" file_size: null, subdirectories: {directories}}}\n",
    ) | window(2e6)


def unlinked(folder: Path, on: str, directories: int = 1) -> RunResult:
    result = simulate_whole(unlinking(folder, on, directories))
    assert 100 < result.operations < FILES
    return result


def chunks_freed(result: RunResult) -> int:
    """`xfs_difree_inode_chunk`: the blocks of 64 inodes go back under the AGF when the last of them is freed."""
    return sum(lock.acquired for lock in result.locks if lock.name == "xfs.AGF")


@pytest.mark.parametrize("directories", [1, 2])
def test_inodes_of_a_chunk_are_freed_one_after_the_other(tmp_path: Path, directories: int) -> None:
    in_turn, any_of_them = (unlinked(tmp_path, on, directories) for on in ("next", "any"))
    assert chunks_freed(in_turn) > chunks_freed(any_of_them)


def test_both_machines_take_the_same_files(tmp_path: Path) -> None:
    assert_same(unlinking(tmp_path, "next", 2) | {"duration_ns": 3e5})
