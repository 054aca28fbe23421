"""Subvolumes of btrfs: a tree, a log and numbers of inodes for each, and one tree of log roots for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, audited, the_lock, window, written_spec
from simfs.results.run_result import RunResult
from simfs.scenario import ScenarioError

CHURN = (
    "kind: mix, files: 4, file_size: 4 KiB, operations: [{op: create, size: 4 KiB, weight: 5}, {op: unlink, weight: 4},"
    " {op: rename}, {op: link}, {op: mkdir}, {op: rmdir}, {op: overwrite}, {op: readdir}, {op: fsync}]"
)
SYNCED = "kind: mix, files: 1, file_size: 4 KiB, order: in-turn, operations: [{op: append}, {op: fsync, on: written}]"


def spec(folder: Path, workload: str, subvolumes: bool, **keys: Any) -> Spec:  # noqa: ANN401
    text = (
        "simfs: 1\nname: s\ntitle: s\nmachine: {profile: server-24, cpus: 8}\nkernel: linux-6.12\ndevice: nvme\n"
        f"filesystem: {{kind: btrfs, subvolumes: {str(subvolumes).lower()}}}\n"
        f"workload: {{{workload}, directories: per-task}}\n"
    )
    return written_spec(folder / "s.yaml", text) | window(1e7) | keys


def waits(result: RunResult, *locks: str) -> int:
    return sum(lock.contended for lock in result.locks if lock.name.startswith(locks))


def test_who_creates_in_a_subvolume_of_his_own_waits_for_its_tree_only_if_a_worker_is_there(
    tmp_path: Path,
) -> None:
    """That commits delayed items, now and then; what two tasks do in one subvolume they do behind each other."""
    create = "kind: create, tasks: 2"
    one, each = (audited(spec(tmp_path, create, of, duration_ns=1e6)) for of in (False, True))
    locks = ("btrfs.fs tree", "btrfs.inode_lock", "btrfs.objectid_mutex")
    assert waits(one, *locks) > 10 * waits(each, *locks)


def test_all_operations_leave_each_subvolume_as_its_names_need(tmp_path: Path) -> None:
    """What `btrfs check` looks at, after hundreds of operations of three tasks on old and new files."""
    result = audited(spec(tmp_path, f"{CHURN}, tasks: 3, initial_files: 1000", True))
    assert result.operations > 500


def test_syncs_of_several_subvolumes_are_entered_into_one_tree_and_written_together(tmp_path: Path) -> None:
    """One superblock serves all who have entered their logs: 8 tasks are not slower by themselves than together."""
    one, each = (audited(spec(tmp_path, f"{SYNCED}, tasks: 8", of)) for of in (False, True))
    entered = the_lock(each, "btrfs.log_root_tree").acquired / each.operations
    assert entered > 1 > the_lock(one, "btrfs.log_root_tree").acquired / one.operations
    assert each.throughput_per_s > 0.8 * one.throughput_per_s


def test_both_machines_agree_on_subvolumes(tmp_path: Path) -> None:
    assert_same(spec(tmp_path, f"{CHURN}, tasks: 3", True) | {"duration_ns": 1e6})


def test_no_file_moves_into_another_subvolume(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="EXDEV"):
        spec(tmp_path, "kind: mix, files: 1, operations: [{op: move}]", True)
