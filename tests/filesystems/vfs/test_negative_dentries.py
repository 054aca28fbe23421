"""The dentry of a removed name stays and says so, or goes; what who makes the name again finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import assert_same

from engine import run_scenario, window, written_spec
from simfs.results.run_result import RunResult

DISKS = ("xfs", "ext4", "btrfs")


def text(filesystem: str, *, names: int | None, keeps: bool = True, tasks: int = 1, more: str = "") -> str:
    again = "" if names is None else f", names: {names}"
    return (
        "simfs: 1\nname: n\ntitle: n\nmachine: {profile: server-24, cpus: 4}\n"
        f"kernel: {{profile: linux-6.12, rules: {{vfs.unlink_keeps_dentry: {str(keeps).lower()}}}}}\n"
        f"filesystem: {{kind: {filesystem}, size: 8 GiB}}\n"
        f"workload: {{kind: mix, tasks: {tasks}, order: in-turn, directories: per-task{again},"
        f" operations: [{{op: create}}, {{op: unlink, on: made}}]{more}}}\n"
    )


def run(tmp_path: Path, filesystem: str, names: int | None, *, keeps: bool = True) -> RunResult:
    made = text(filesystem, names=names, keeps=keeps)
    return run_scenario(tmp_path / "n.yaml", made, warmup_ns=2e6, duration_ns=10e6)


def listed(result: RunResult) -> float:
    """How often the list of unused dentries is changed for each file."""
    changes = sum(lock.acquired for lock in result.locks if lock.name == "vfs.dentry_lru_lock")
    return changes / result.operations


@pytest.mark.parametrize("filesystem", DISKS)
def test_who_makes_a_name_again_finds_its_dentry_and_asks_nobody(tmp_path: Path, filesystem: str) -> None:
    again, new = run(tmp_path, filesystem, 1), run(tmp_path, filesystem, None)
    assert again.operations > 1.02 * new.operations
    assert listed(again) == pytest.approx(0, abs=0.01)  # it is on the list already
    assert listed(new) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("filesystem", DISKS)
def test_a_dentry_that_goes_with_its_name_leaves_the_list(tmp_path: Path, filesystem: str) -> None:
    goes, stays = (run(tmp_path, filesystem, 1, keeps=keeps) for keeps in (False, True))
    assert listed(goes) == pytest.approx(2, abs=0.04)
    assert goes.operations < stays.operations


def test_tmpfs_keeps_no_dentry_in_either_case(tmp_path: Path) -> None:
    kept, gone = (run(tmp_path, "tmpfs", 1, keeps=keeps) for keeps in (True, False))
    assert kept.operations == gone.operations


@pytest.mark.parametrize("keeps", [True, False])
def test_both_machines_agree(tmp_path: Path, *, keeps: bool) -> None:
    made = written_spec(tmp_path / "n.yaml", text("ext4", names=2, keeps=keeps, tasks=2))
    assert assert_same(made | window(1e5)) > 100


def test_who_chooses_files_as_filebench_does_takes_a_mutex_before_and_after(tmp_path: Path) -> None:
    made = text("ext4", names=1, more=", params: {pick_ns: 300 ns, give_back_ns: 20 ns}")
    result = run_scenario(tmp_path / "n.yaml", made, warmup_ns=2e6, duration_ns=10e6)
    (lock,) = (lock for lock in result.locks if lock.name == "fs_pick_lock")
    assert lock.acquired / result.operations == pytest.approx(
        5, rel=0.02
    )  # three of a create, two of an unlink
