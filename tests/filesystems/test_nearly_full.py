"""Filesystems of which a scenario says how much is free, and what they do where room is short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import AUDIT, assert_same

from engine import Spec
from simfs import _engine
from simfs.scenario import ScenarioError, expand, load, to_run_spec

SCENARIO = (
    "simfs: 1\nname: a\ntitle: a\nmachine: {{profile: server-24, cpus: 4}}\nkernel: linux-6.12\n"
    "filesystem: {{kind: {filesystem}, size: 1 GiB, free: {free}}}\ndevice: nvme\n"
    "workload: {{kind: mix, tasks: 4, files: 50, directories: per-task, synced: true, operations: [{operations}]}}\n"
    "measure: {{warmup: 0 s, duration: {duration}, replications: 1}}\n"
)
CHURN = "{op: create}, {op: append}, {op: unlink, weight: 2}"
FILL = "{op: create, size: 16 KiB}, {op: fsync, on: made}"
FILESYSTEMS = ("xfs", "btrfs", "ext4")


def spec(
    tmp_path: Path,
    filesystem: str,
    free: str,
    operations: str = CHURN,
    duration: str = "4 ms",
    *settings: str,
) -> Spec:
    path = tmp_path / "a.yaml"
    path.write_text(
        SCENARIO.format(filesystem=filesystem, free=free, operations=operations, duration=duration)
    )
    (point,) = expand(load(path, settings))
    return to_run_spec(point, 0)


def run(spec: Spec) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(_engine.run(json.dumps(spec), check=True))
    return result


def audit(result: dict[str, Any]) -> str:
    detail: str = next(law["detail"] for law in result["laws"] if law["law"] == AUDIT)
    return detail


@pytest.mark.parametrize("free", ["40 MiB", "8 MiB"])
@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_structures_are_right_where_others_have_the_rest(tmp_path: Path, filesystem: str, free: str) -> None:
    result = run(spec(tmp_path, filesystem, free))
    assert result["stall"] is None
    assert audit(result) == ""
    assert result["operations"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_who_finds_no_room_ends_the_run_with_that_name(tmp_path: Path, filesystem: str) -> None:
    result = run(spec(tmp_path, filesystem, "4 MiB", FILL, "2 s"))
    assert result["stall"]["kind"] == "no space left"


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_both_machines_do_the_same_where_room_is_short(tmp_path: Path, filesystem: str) -> None:
    assert assert_same(spec(tmp_path, filesystem, "3 MiB", CHURN, "1 ms"), most=3_000) > 100


def test_unlinks_of_a_full_btrfs_wait_for_commits(tmp_path: Path) -> None:
    """Each reserves more than there is, so that the transaction of those before is committed."""
    unlinks = "{op: unlink, on: next}"
    wide, full = (
        run(spec(tmp_path, "btrfs", free, unlinks, "10 ms", "workload.files=300"))
        for free in ("100 MiB", "0")
    )
    assert wide["operations"] > 5 * full["operations"] > 0


def test_room_for_delayed_references_is_wanted_at_each_start_since_6_7(tmp_path: Path) -> None:
    """`btrfs_start_transaction` then wants more for an unlink, so that more of them wait for a commit."""
    unlinks = "{op: unlink, on: next}"
    before, since = (
        run(
            spec(
                tmp_path,
                "btrfs",
                "8 MiB",
                unlinks,
                "40 ms",
                "workload.files=1500",
                f"kernel.rules.btrfs.reserves_refs={of}",
            )
        )
        for of in ("false", "true")
    )
    assert before["operations"] > 5 * since["operations"] > 0


def test_more_than_the_device_has_is_refused_where_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"a\.yaml:6:\d+: filesystem\.free: 2048 MiB: less than the filesystem has"
    ):
        spec(tmp_path, "xfs", "2 GiB")
    with pytest.raises(ScenarioError, match=r"a\.yaml:6:\d+: filesystem\.free: unknown unit '%'"):
        spec(tmp_path, "ext4", "98 %")


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_as_much_as_the_device_has_is_not_free_beside_what_mkfs_makes(
    tmp_path: Path, filesystem: str
) -> None:
    result = run(spec(tmp_path, filesystem, "1023 MiB"))
    assert result["stall"]["kind"] == "no space left"
    assert "filesystem.free" in result["stall"]["cycle"][0]


def test_a_create_on_a_full_xfs_waits_for_inodes_that_are_being_freed(tmp_path: Path) -> None:
    """Only then are their chunks free for others; below 5 % nobody leaves an inode for later."""
    churn = "{op: create, repeat: 40}, {op: unlink, repeat: 40}"
    result = run(
        spec(tmp_path, "xfs", "600 KiB", churn, "20 ms", "workload.order=in-turn", "workload.files=0")
    )
    assert (result["stall"], audit(result)) == (None, "")
    assert result["operations"] > 30


def test_ext4_allocates_at_once_where_little_is_free(tmp_path: Path) -> None:
    """`ext4_nonda_switch`: each new page in a handle of its own, from the bitmap."""
    appends = "{op: append}"
    little, much = (run(spec(tmp_path, "ext4", free, appends)) for free in ("4 MiB", "400 MiB"))
    taken = [
        sum(lock["acquired"] for lock in result["locks"] if lock["name"].startswith("ext4.group"))
        for result in (little, much)
    ]
    assert taken[0] > 100 + taken[1]
