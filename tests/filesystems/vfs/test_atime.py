"""Who reads what was changed since it was last read writes the inode (`touch_atime` with `relatime`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, audited, simulate_whole, window
from simfs.scenario import expand, load, to_run_spec

FILESYSTEMS = ("xfs", "btrfs", "ext4", "tmpfs")


def spec(
    folder: Path,
    filesystem: str,
    *operations: str,
    think: str = "0 us",
    kernel: str = "linux-6.12",
    rules: str = "{}",
) -> Spec:
    listed = [{"op": op, "size": "4 KiB"} for op in operations]
    listed[0]["think"] = think
    workload = {"kind": "mix", "operations": listed, "order": "in-turn", "files": 1}
    path = folder / "a.yaml"
    path.write_text(
        "simfs: 1\nname: a\ntitle: a\nmachine: {profile: guest-2cpu}\n"
        f"kernel: {{profile: {kernel}, rules: {rules}}}\nfilesystem: {{kind: {filesystem}}}\n"
        f"workload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(path))
    return to_run_spec(point, 0) | window(200e6)


def reads_that_write(given: Spec, site: str) -> float:
    """Of `read` or `readdir`, for each that was done."""
    result = simulate_whole(given)
    written = sum(
        at.acquired
        for lock in result.locks
        if lock.name == "vfs.freeze"
        for at in lock.sites
        if at.site == site
    )
    return written / result.latency[site].count


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_the_first_read_after_a_write_writes_the_inode_and_the_next_does_not(
    tmp_path: Path, filesystem: str
) -> None:
    given = spec(tmp_path, filesystem, "overwrite", "read", "read", "read", "read", think="20.3 ms")
    assert reads_that_write(given, "read") == pytest.approx(1 / 4, abs=0.1)
    assert_same(given | {"duration_ns": 50e6})


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_the_first_listing_after_a_new_name_writes_the_directory(tmp_path: Path, filesystem: str) -> None:
    listings = spec(
        tmp_path, filesystem, "create", "readdir", "readdir", "unlink", "readdir", think="20.3 ms"
    )
    assert reads_that_write(listings, "readdir") == pytest.approx(1 / 3, abs=0.15)  # all within a tick
    audited(listings | {"duration_ns": 600e6})


def test_with_noatime_nobody_does(tmp_path: Path) -> None:
    given = spec(tmp_path, "xfs", "overwrite", "read", think="20.3 ms", rules="{vfs.atime: noatime}")
    assert reads_that_write(given, "read") == 0


def test_until_6_12_an_inode_is_read_anew_once_a_tick_and_since_then_whenever_it_was_asked_for_and_changed(
    tmp_path: Path,
) -> None:
    def of(kernel: str, *operations: str) -> float:
        return reads_that_write(spec(tmp_path, "xfs", *operations, kernel=kernel), "read")

    assert of("linux-6.12", "overwrite", "read") < 0.1  # tens of reads a tick
    assert of("linux-6.13", "overwrite", "read") < 0.1  # nobody has asked
    assert of("linux-6.12", "fstat", "overwrite", "read") < 0.1
    assert of("linux-6.13", "fstat", "overwrite", "read") == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("filesystem", "lock"),
    [("xfs", "xfs.ILOCK (file)"), ("ext4", "ext4.j_state_lock"), ("btrfs", "btrfs.root_item_lock")],
)
def test_what_is_written_takes_the_locks_of_new_times(tmp_path: Path, filesystem: str, lock: str) -> None:
    found = {
        rule: simulate_whole(
            spec(
                tmp_path,
                filesystem,
                "fstat",
                "utimes",
                "read",
                kernel="linux-6.13",
                rules=f"{{vfs.atime: {rule}}}",
            )
        )
        for rule in ("relatime", "noatime")
    }

    def by_reads(rule: str) -> float:
        result = found[rule]
        taken = sum(
            at.acquired for one in result.locks if one.name == lock for at in one.sites if at.site == "read"
        )
        return taken / result.latency["read"].count

    assert by_reads("noatime") == 0
    assert by_reads("relatime") >= 0.99
