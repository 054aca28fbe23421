"""Files whose inodes are not in memory: what the first call on each does besides, on each filesystem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired_each, audited, simulate_whole, window
from simfs.results.run_result import RunResult
from simfs.scenario import ScenarioError, expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4")
DIRECTORY = "vfs.i_rwsem (directory)"
LIST = "vfs.s_inode_list_lock"


def spec(
    folder: Path, filesystem: str, *operations: str,
    cached: bool = False, kernel: str = "linux-6.12", on: str = "next", **keys: Any,  # noqa: ANN401
) -> Spec:  # fmt: skip
    listed = [{"op": op, "on": on if place == 0 else "last"} for place, op in enumerate(operations)]
    workload = {"kind": "mix", "operations": listed, "order": "in-turn", "files": 3000, "cached": cached}
    path = folder / "c.yaml"
    path.write_text(
        f"simfs: 1\nname: c\ntitle: c\nmachine: {{profile: server-24, cpus: 4}}\nkernel: {kernel}\n"
        f"{'' if filesystem == 'tmpfs' else 'device: nvme'}\nfilesystem: {{kind: {filesystem}}}\n"
        f"workload: {json.dumps(workload | keys)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | window(6e6)


def run(folder: Path, filesystem: str, *operations: str, **keys: Any) -> RunResult:  # noqa: ANN401
    result = audited(spec(folder, filesystem, *operations, **keys))
    assert result.operations < 3000, "all are still cold"
    return result


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize(("operation", "exclusive"), [
    ("stat", 0), ("open", 0), ("chmod", 0), ("chown", 0), ("utimes", 0),
    ("open_creat", 1), ("unlink", 1), ("rename", 1),
])  # fmt: skip
def test_the_name_is_looked_up_with_the_directory_locked_and_the_inode_enters_the_list(
    tmp_path: Path, filesystem: str, operation: str, exclusive: int
) -> None:
    """`lookup_slow` takes the lock shared; who may create, removes or renames has it exclusively already."""
    cold = run(tmp_path, filesystem, operation)
    directory = [lock for lock in cold.locks if lock.name == DIRECTORY]
    shared = sum(lock.acquired_shared for lock in directory) / cold.operations
    assert shared == pytest.approx(1 - exclusive, abs=0.05)
    assert acquired_each(cold, DIRECTORY) == pytest.approx(1, abs=0.05)
    leaves = int(operation == "unlink")
    assert acquired_each(cold, LIST) == pytest.approx(1 + leaves, abs=0.1)
    hashed = "vfs.inode_hash_lock"
    by_hash = 0 if filesystem == "xfs" else 1 + leaves
    assert acquired_each(cold, hashed) == pytest.approx(by_hash, abs=0.1)


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_a_recursion_looks_names_up_from_the_directory(tmp_path: Path, filesystem: str) -> None:
    """Nobody takes a reference of `/`, so walks from there may.

    They change the set-up: on btrfs much, else by an operation at the end.
    """
    rates = {
        run(
            tmp_path, filesystem, "chmod", tasks=4, directories="per-task",
            kernel=f"{{profile: linux-6.12, rules: {{vfs.creat_counts_root: {counts}}}}}",
        ).operations
        for counts in ("true", "false")
    }  # fmt: skip
    assert max(rates) - min(rates) <= 1


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize("operation", ["stat", "chmod", "unlink"])
def test_what_is_in_memory_enters_no_list(tmp_path: Path, filesystem: str, operation: str) -> None:
    warm = audited(spec(tmp_path, filesystem, operation, cached=True))
    assert acquired_each(warm, LIST) == pytest.approx(int(operation == "unlink"), abs=0.1)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_the_second_call_finds_the_inode_in_memory(tmp_path: Path, filesystem: str) -> None:
    both = run(tmp_path, filesystem, "stat", "chmod")
    assert acquired_each(both, LIST) == pytest.approx(1, abs=0.05)
    warm = audited(spec(tmp_path, filesystem, "stat", "chmod", cached=True))
    # on XFS the inode is attached to its cluster's buffer
    assert both.latency["chmod"].p50_ns < 1.5 * warm.latency["chmod"].p50_ns
    assert both.latency["stat"].p50_ns > 3 * warm.latency["stat"].p50_ns


@pytest.mark.parametrize(("filesystem", "files_of_a_read"), [("xfs", 32), ("ext4", 512), ("btrfs", 20)])
def test_the_first_who_needs_a_block_of_inodes_reads_it(
    tmp_path: Path, filesystem: str, files_of_a_read: int
) -> None:
    """XFS a cluster of 32 inodes, ext4 32 blocks of 16; names of btrfs come by hash."""
    result = run(tmp_path, filesystem, "stat")
    reads = result.requests["read"].count
    assert result.operations / reads == pytest.approx(files_of_a_read, rel=0.6)


def test_a_cluster_of_xfs_is_locked_once_for_the_inode_that_is_read(tmp_path: Path) -> None:
    """A `chmod` locks it once more: the inode has left the AIL and is attached (`xfs_inode_item_precommit`)."""
    stat, chmod = run(tmp_path, "xfs", "stat"), run(tmp_path, "xfs", "chmod")
    assert acquired_each(stat, "xfs.inode cluster") == pytest.approx(1, abs=0.05)
    assert acquired_each(chmod, "xfs.inode cluster") == pytest.approx(2, abs=0.1)
    assert acquired_each(stat, "xfs.ILOCK (directory)") == pytest.approx(1, abs=0.05)


def test_tasks_take_files_of_their_own_in_turn_directory_by_directory(tmp_path: Path) -> None:
    """Each file once in a round: after it, all are in memory."""
    result = simulate_whole(spec(tmp_path, "ext4", "stat", files=40, subdirectories=4, tasks=2))
    assert result.operations > 200
    assert acquired_each(result, LIST) * result.operations == pytest.approx(80, abs=1)


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_both_machines_do_the_same(tmp_path: Path, filesystem: str) -> None:
    made = spec(
        tmp_path, filesystem, "chmod", "unlink", files=60, subdirectories=2, tasks=3, file_size="4 KiB"
    )
    assert assert_same(made | {"duration_ns": 3e5}) > 100


@pytest.mark.parametrize(("keys", "why"), [
    ({"files": 0}, "cached: false is about the files of the set"),
    ({"shared_open": True}, "files that nobody has open"),
    ({"unlinked": True}, "files that nobody has open"),
])  # fmt: skip
def test_files_that_cannot_be_out_of_memory_are_refused(
    tmp_path: Path, keys: dict[str, Any], why: str
) -> None:
    with pytest.raises(ScenarioError, match=why):
        spec(tmp_path, "xfs", "stat", **keys)


def test_all_inodes_of_tmpfs_are_in_memory(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="all inodes of tmpfs are in memory"):
        spec(tmp_path, "tmpfs", "stat")


@pytest.mark.parametrize("operation", ["read", "append", "overwrite", "truncate", "shorten", "reflink"])
def test_pages_of_a_mixs_files_are_in_memory(tmp_path: Path, operation: str) -> None:
    with pytest.raises(ScenarioError, match=f"{operation} needs files in memory"):
        spec(tmp_path, "btrfs", operation)
