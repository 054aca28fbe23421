"""Hard links: which locks another name takes, and that a file goes with its last name only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired_each, audited, simulate, window
from simfs.scenario import expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")
FILE = {"xfs": "xfs.IOLOCK"}
"""What a file's `i_rwsem` is called, where it has a name of its own."""
LINK = {"op": "link", "on": "first"}
UNLINK = {"op": "unlink", "on": "first"}


def spec(
    folder: Path, filesystem: str, *operations: dict[str, Any],
    kernel: str = "linux-6.12", **keys: Any,  # noqa: ANN401
) -> Spec:  # fmt: skip
    workload = {"kind": "mix", "operations": list(operations), "order": "in-turn", "files": 2} | keys
    place = "" if filesystem == "tmpfs" else "device: nvme\n"
    path = folder / "links.yaml"
    path.write_text(
        f"simfs: 1\nname: links\ntitle: a\nmachine: {{profile: server-24, cpus: 4}}\nkernel: {kernel}\n"
        f"{place}filesystem: {{kind: {filesystem}}}\nworkload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 5e5, "duration_ns": 4e6}


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_link_locks_the_directory_and_the_file(tmp_path: Path, filesystem: str) -> None:
    """`filename_create`, `vfs_link`."""
    result = audited(spec(tmp_path, filesystem, LINK))
    assert acquired_each(result, "vfs.i_rwsem (directory)") == pytest.approx(1, abs=0.02)
    assert acquired_each(result, FILE.get(filesystem, "vfs.i_rwsem (file)")) == pytest.approx(1, abs=0.02)
    assert acquired_each(result, "vfs.s_vfs_rename_mutex") == 0
    assert acquired_each(result, "xfs.AGI") == 0  # nothing is allocated
    assert acquired_each(result, "ext4.orphan lock") == 0


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_a_file_that_keeps_a_name_stays(tmp_path: Path, filesystem: str) -> None:
    """The unlink of one of two names frees no inode, makes no orphan, and takes half of an unlink's time at most."""
    one = audited(spec(tmp_path, filesystem, LINK, UNLINK))
    last = audited(spec(tmp_path, filesystem, {"op": "create"}, {"op": "unlink"}, files=0))
    for lock in ("xfs.AGI", "ext4.orphan lock", "ext4.group lock", "vfs.s_inode_list_lock"):
        assert acquired_each(one, lock) == 0
    assert acquired_each(last, "vfs.s_inode_list_lock") > 1
    share = one.latency["unlink"].mean_ns / last.latency["unlink"].mean_ns
    assert share < {"xfs": 0.75, "btrfs": 0.7, "ext4": 0.6, "tmpfs": 0.85}[filesystem]


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_files_with_several_names_are_sound_at_the_end(tmp_path: Path, filesystem: str) -> None:
    """Names, links and inodes are compared (`i_nlink`, references of btrfs), also after renames of one of several."""
    drawn = ("create", "link", "link", "unlink", "append", "fsync", "rename", "move", "overwrite", "truncate")
    operations = [{"op": op} for op in drawn]
    made = spec(
        tmp_path, filesystem, *operations, order="drawn", tasks=8, files=3, subdirectories=2
    )  # fmt: skip
    result = audited(made | {"duration_ns": 2e7})
    assert result.latency["link"].count > 50
    assert result.stall is None


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_both_machines_do_the_same(tmp_path: Path, filesystem: str) -> None:
    operations = [{"op": op} for op in ("create", "link", "unlink", "append", "fsync", "link", "fsync")]
    made = spec(tmp_path, filesystem, *operations, tasks=3)
    assert assert_same(made | window(2e5)) > 100


@pytest.mark.parametrize("logs", [True, False])
def test_an_fsync_after_a_link_logs_the_directory(tmp_path: Path, *, logs: bool) -> None:
    """`btrfs_log_all_parents`, since 4.3; who changed his file's times only has no directory to log."""
    kernel = f"{{profile: linux-6.12, rules: {{btrfs.logs_parents: {str(logs).lower()}}}}}"
    fsync = {"op": "fsync", "on": "first"}
    linked, changed = (
        audited(spec(tmp_path, "btrfs", *operations, kernel=kernel, files=1))
        for operations in ([LINK, fsync, UNLINK], [{"op": "utimes", "on": "first"}, fsync])
    )
    assert acquired_each(changed, "btrfs.directory log_mutex") == 0
    assert (acquired_each(linked, "btrfs.directory log_mutex") > 0) == logs


def test_an_fsync_after_a_rename_into_another_directory_logs_the_directories(tmp_path: Path) -> None:
    """`last_unlink_trans`, set by `btrfs_record_unlink_dir`; the log has the file, so that nothing is committed."""
    fsync = {"op": "fsync", "on": "first"}
    keys: dict[str, Any] = {"files": 1, "subdirectories": 2}
    moved, renamed = (
        audited(
            spec(
                tmp_path,
                "btrfs",
                {"op": "utimes", "on": "first"},
                fsync,
                {"op": how, "on": "first"},
                fsync,
                **keys,
            )
            | window(4e7)
        )
        for how in ("move", "rename")
    )
    assert (
        acquired_each(moved, "btrfs.directory log_mutex")
        > acquired_each(renamed, "btrfs.directory log_mutex") + 0.2
    )


def test_more_names_of_a_file_than_a_leaf_of_btrfs_holds_are_refused(tmp_path: Path) -> None:
    """The kernel gives further ones items of their own."""
    ended = simulate(spec(tmp_path, "btrfs", LINK) | {"duration_ns": 4e7}).stall
    assert ended is not None
    assert "need INODE_EXTREF items" in ended.cycle[0]
