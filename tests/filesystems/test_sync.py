"""`syncfs`: the locks of those who sync, what each filesystem waits for, and where it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired, acquired_each, audited, read_whole_answer, window
from simfs.scenario import ScenarioError, expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")
DISKS = ("xfs", "btrfs", "ext4")
ROUND = ("append", "sync")


def spec(
    folder: Path, filesystem: str, *operations: str,
    kernel: str = "linux-6.12", mount: dict[str, Any] | None = None, **keys: Any,  # noqa: ANN401
) -> Spec:  # fmt: skip
    listed = [{"op": op, "on": "any" if op == "append" else "written"} for op in operations]
    workload = {"kind": "mix", "operations": listed, "order": "in-turn", "files": 1}
    path = folder / "s.yaml"
    path.write_text(
        f"simfs: 1\nname: s\ntitle: s\nmachine: {{profile: server-24, cpus: 4}}\nkernel: {kernel}\n"
        f"{'' if filesystem == 'tmpfs' else 'device: nvme'}\n"
        f"filesystem: {json.dumps({'kind': filesystem} | (mount or {}))}\nworkload: {json.dumps(workload | keys)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 5e5, "duration_ns": 8e6}


def long(made: Spec) -> Spec:
    return made | {"duration_ns": 2e7}


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_who_syncs_locks_the_superblock_and_waits_under_its_own_lock(tmp_path: Path, filesystem: str) -> None:
    """`syncfs`, `sync_inodes_sb`, `wait_sb_inodes`. tmpfs has no device (`noop_backing_dev_info`)."""
    result = audited(long(spec(tmp_path, filesystem, *ROUND)))
    writes = 0 if filesystem == "tmpfs" else 1
    assert acquired_each(result, "vfs.s_umount") == pytest.approx(1, abs=0.05)
    for lock in ("vfs.wb_switch_rwsem", "vfs.s_sync_lock"):
        assert acquired_each(result, lock) == pytest.approx(writes, abs=0.05)
    waits = result.latency["sync"].mean_ns
    assert waits < 2000 if filesystem == "tmpfs" else waits > 20_000


@pytest.mark.parametrize("filesystem", DISKS)
def test_pages_of_all_files_are_written(tmp_path: Path, filesystem: str) -> None:
    """A write each, whoever made it dirty; so an fsync afterwards finds none."""
    three = spec(tmp_path, filesystem, "append", "append", "append", "sync", "fsync", files=3)
    result = audited(long(three))
    alone = audited(long(spec(tmp_path, filesystem, "append", "fsync", files=1)))
    assert result.latency["fsync"].mean_ns < 0.6 * alone.latency["fsync"].mean_ns


def test_xfs_forces_the_log_and_ext4_commits_what_has_changed(tmp_path: Path) -> None:
    """`xfs_fs_sync_fs`; `ext4_sync_fs`, then the journal's blocks in their places (`sync_blockdev`)."""
    forced = audited(long(spec(tmp_path, "xfs", "create", "sync")))
    assert acquired_each(forced, "xfs.cil_wq") > 1
    written = audited(long(spec(tmp_path, "ext4", "create", "sync")))
    only = audited(long(spec(tmp_path, "ext4", "create", "fsync_dir")))
    writes = [result.requests["write"].count / result.operations for result in (written, only)]
    assert writes[0] > writes[1] + 3


def test_btrfs_commits_the_transaction_if_there_is_one(tmp_path: Path) -> None:
    """`btrfs_attach_transaction_barrier`."""
    changed = audited(long(spec(tmp_path, "btrfs", "create", "sync")))
    assert acquired_each(changed, "btrfs.extent tree L0") > 0
    nothing = audited(long(spec(tmp_path, "btrfs", "stat", "sync")))
    assert acquired_each(nothing, "btrfs.extent tree L0") == pytest.approx(0, abs=0.01)
    assert nothing.latency["sync"].p50_ns < 5000


@pytest.mark.parametrize("filesystem", DISKS)
def test_those_who_sync_write_one_after_the_other(tmp_path: Path, filesystem: str) -> None:
    result = audited(long(spec(tmp_path, filesystem, *ROUND, tasks=4, directories="per-task")))
    switch = next(lock for lock in result.locks if lock.name == "vfs.wb_switch_rwsem")
    assert switch.contended > 0
    assert switch.acquired_shared == 0


def test_who_never_syncs_makes_no_such_lock(tmp_path: Path) -> None:
    result = read_whole_answer(spec(tmp_path, "xfs", "append", "fsync"))
    assert acquired(result, "vfs.s_umount") == 0


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_both_machines_do_the_same(tmp_path: Path, filesystem: str) -> None:
    made = spec(tmp_path, filesystem, "create", "append", "sync", tasks=3)
    assert assert_same(made | window(5e5)) > 100


@pytest.mark.parametrize("kernel", ["linux-4.7", "linux-3.10"])
def test_before_4_8_it_is_refused(tmp_path: Path, kernel: str) -> None:
    with pytest.raises(ScenarioError, match=r"before 4\.8 a sync looks at all inodes in memory"):
        spec(tmp_path, "xfs", "sync", kernel=kernel)


def test_ext4_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match="without a journal ext4 has its metadata in the device's page cache"
    ):
        spec(tmp_path, "ext4", "sync", mount={"journal": False})


@pytest.mark.parametrize("filesystem", DISKS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_file_that_is_unlinked_meanwhile_is_not_written(tmp_path: Path, filesystem: str, seed: int) -> None:
    """Who evicts an inode waits for who syncs it, and who syncs passes those by (`I_SYNC`, `I_FREEING`)."""
    drawn = [{"op": op} for op in ("append", "unlink", "sync")]
    made = spec(tmp_path, filesystem, operations=drawn, order="drawn", tasks=16, files=3, subdirectories=2)
    audited(made | {"seed": seed})
