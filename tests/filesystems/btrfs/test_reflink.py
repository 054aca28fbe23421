"""Reflinks on btrfs: files that share extents until one of them writes or goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired_each, audited, window
from simfs.scenario import ScenarioError, expand, load, to_run_spec

REFLINK = {"op": "reflink", "on": "first"}


def spec(folder: Path, *operations: dict[str, Any], filesystem: str = "{kind: btrfs}", **keys: Any) -> Spec:  # noqa: ANN401
    workload = {
        "kind": "mix",
        "operations": list(operations),
        "order": "in-turn",
        "files": 2,
        "file_size": "16 KiB",
    } | keys
    path = folder / "reflink.yaml"
    path.write_text(
        "simfs: 1\nname: reflink\ntitle: a\nmachine: {profile: server-24, cpus: 8}\nkernel: linux-6.12\n"
        f"device: nvme\nfilesystem: {filesystem}\nworkload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | {"warmup_ns": 5e5, "duration_ns": 4e6}


def test_a_reflink_locks_both_files_and_no_directory_but_that_of_the_new_name(tmp_path: Path) -> None:
    result = audited(spec(tmp_path, REFLINK))
    assert acquired_each(result, "vfs.i_rwsem (file)") == pytest.approx(2, abs=0.02)
    assert acquired_each(result, "vfs.i_rwsem (directory)") == pytest.approx(1, abs=0.02)


def test_only_the_first_clone_of_dirty_data_waits_for_the_device(tmp_path: Path) -> None:
    """`btrfs_wait_ordered_range`: an ordered extent is finished by then, and later clones find nothing dirty."""
    clean = audited(spec(tmp_path, REFLINK)).latency["reflink"]
    dirty = audited(spec(tmp_path, {"op": "append", "on": "first", "size": "4 KiB"}, REFLINK)).latency[
        "reflink"
    ]
    assert dirty.p50_ns > clean.p50_ns + 10e3


def test_shared_data_stay_until_their_last_file_goes(tmp_path: Path) -> None:
    """Extents, their users, checksums and free space are compared at the end."""
    drawn = (
        "create",
        "reflink",
        "reflink",
        "unlink",
        "unlink",
        "append",
        "overwrite",
        "fsync",
        "truncate",
        "rename",
        "link",
    )
    operations = [{"op": op} | ({"size": "8 KiB"} if op in ("create", "append") else {}) for op in drawn]
    made = spec(tmp_path, *operations, order="drawn", tasks=8, files=4, subdirectories=2)
    result = audited(made | {"duration_ns": 3e7})
    assert result.latency["reflink"].count > 100
    assert result.stall is None


def test_the_extent_tree_hears_of_a_count_and_the_free_space_tree_does_not(tmp_path: Path) -> None:
    """A clone is a delayed ref whose item is changed in place (`lookup_inline_extent_backref`); a commit every 2 ms."""
    made = spec(tmp_path, REFLINK)
    made["filesystem"]["costs"]["commit_interval"] = 2e6
    result = audited(made | {"duration_ns": 2e7})
    assert acquired_each(result, "btrfs.delayed_ref_head") > 0
    assert result.stall is None


def test_both_machines_do_the_same(tmp_path: Path) -> None:
    operations = [{"op": op} for op in ("create", "append", "reflink", "fsync", "overwrite", "unlink")]
    made = spec(tmp_path, *operations, tasks=3)
    assert assert_same(made | window(3e5)) > 100


@pytest.mark.parametrize(
    ("filesystem", "why"),
    [
        ("{kind: ext4}", "ext4 has no reflinks"),
        ("{kind: xfs}", "where written data lie on XFS is not known here"),
        (
            "{kind: btrfs, nodatacow: true}",
            "with nodatacow, writes to what is shared would have to take a new place",
        ),
    ],
)
def test_elsewhere_it_is_refused_with_its_reason(tmp_path: Path, filesystem: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        spec(tmp_path, REFLINK, filesystem=filesystem)
