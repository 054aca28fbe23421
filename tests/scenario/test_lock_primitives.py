"""`locks:` of a scenario: a primitive stands for all roles that are of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from simfs.scenario import ScenarioError, load
from simfs.scenario.run_spec import kernel_spec

FILE = """simfs: 1
name: a
title: a
machine: server-24
kernel: linux-6.12
filesystem: {kind: xfs}
workload: {kind: create_unlink, tasks: 2}
"""


def locks(tmp_path: Path, given: str) -> dict[str, str]:
    path = tmp_path / "a.yaml"
    path.write_text(f"{FILE}locks: {given}\n", "utf-8")
    return dict(kernel_spec(load(path), cpus=2)["locks"])


def test_a_primitive_sets_the_kind_of_all_its_roles_and_of_no_others(tmp_path: Path) -> None:
    before, after = locks(tmp_path, "{}"), locks(tmp_path, "{spinlock: pvqspinlock}")
    spinlocks = {role for role, kind in before.items() if kind == "qspinlock"}
    assert {"vfs.d_lock", "vfs.inode_list", "mm.lru_lock"} < spinlocks
    assert {role for role in before if before[role] != after[role]} == spinlocks - {"futex.bucket"}


def test_a_role_that_is_named_itself_has_its_own_kind(tmp_path: Path) -> None:
    given = locks(tmp_path, "{spinlock: pvqspinlock, vfs.d_lock: ticket}")
    assert (given["vfs.d_lock"], given["vfs.inode_list"]) == ("ticket", "pvqspinlock")


def test_a_primitive_may_become_another_one(tmp_path: Path) -> None:
    assert locks(tmp_path, "{rwsem: mutex}")["vfs.i_rwsem"] == "mutex"


def test_a_workload_with_locks_of_its_own_has_no_primitives() -> None:
    with pytest.raises(ScenarioError, match="unknown lock role 'spinlock'"):
        load("lock-cycle", ["locks.spinlock=cna"])


def test_a_misspelt_primitive_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"'spinlocks'.*spinlock"):
        locks(tmp_path, "{spinlocks: pvqspinlock}")
