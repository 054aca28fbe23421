"""What closing a file and syncing it lock on XFS, by version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import Spec, acquired_each, simulate
from simfs.results.run_result import LockStats, RunResult
from simfs.scenario import expand, load, to_run_spec


def spec(path: Path, kernel: str, workload: dict[str, Any], **keys: str) -> Spec:
    text = f"kernel: {kernel}\nfilesystem: {{kind: xfs}}\nworkload: {json.dumps(workload)}\n"
    text += "".join(f"{key}: {value}\n" for key, value in keys.items())
    scenario = path / "release.yaml"
    scenario.write_text(f"simfs: 1\nname: m\ntitle: m\nmachine: server-24\n{text}")
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {"warmup_ns": 2e6, "duration_ns": 5e6}


def turns(path: Path, kernel: str, *operations: str, **keys: Any) -> RunResult:  # noqa: ANN401
    """One task that does these operations in turn."""
    listed = [{"op": op} for op in operations]
    workload = {"kind": "mix", "operations": listed, "order": "in-turn", "files": 1, **keys}
    result = simulate(spec(path, kernel, workload))
    assert result.stall is None
    return result


def lock(result: RunResult, name: str) -> LockStats:
    (found,) = (lock for lock in result.locks if lock.name == name)
    return found


@pytest.mark.parametrize(
    ("kernel", "size", "flags", "iolock"),
    [
        ("linux-5.9", None, 1, 0),  # an empty file has no blocks behind its end
        ("linux-5.9", "64 KiB", 2, 0),  # XFS_IDIRTY_RELEASE is set: blocks are delayed
        ("linux-6.1", None, 1, 1),  # every close
        ("linux-6.1", "64 KiB", 2, 1),
        ("linux-6.12", "64 KiB", 1, 0),  # of those that may write
    ],
)
def test_closing_a_file_that_was_read_takes_what_its_version_takes(
    tmp_path: Path, kernel: str, size: str | None, flags: int, iolock: int
) -> None:
    """`xfs_release`, `xfs_file_release`: `i_flags_lock` for XFS_ITRUNCATED, then perhaps the IOLOCK by trylock.

    The file was written to once, before; blocks behind its end are given back by the first close.
    """
    result = turns(tmp_path, kernel, "open", file_size=size)
    assert acquired_each(result, "xfs.i_flags_lock") == pytest.approx(flags, rel=0.02, abs=0.01)
    assert acquired_each(result, "xfs.IOLOCK") == pytest.approx(iolock, rel=0.02, abs=0.01)


def test_closing_a_new_file_tries_the_iolock_since_5_13(tmp_path: Path) -> None:
    for kernel, tried in (("linux-5.9", 0), ("linux-6.1", 1), ("linux-6.18", 1)):
        result = turns(tmp_path, kernel, "create", "unlink", files=0)
        assert acquired_each(result, "xfs.IOLOCK") == pytest.approx(1 + tried, rel=0.02)  # and the victim's


@pytest.mark.parametrize(("kernel", "looks"), [("linux-5.9", 0), ("linux-6.1", 1), ("linux-6.18", 0)])
def test_blocks_behind_the_end_are_given_back_once(tmp_path: Path, kernel: str, looks: int) -> None:
    """XFS_IDIRTY_RELEASE, XFS_EOFBLOCKS_RELEASED: who writes to a file and closes it again and again keeps them.

    A write takes the ILOCK twice. From 5.13 to 6.11 each close looks for such blocks under it.
    """
    result = turns(tmp_path, kernel, "append", "open")
    assert acquired_each(result, "xfs.ILOCK (file)") == pytest.approx(2 + looks, abs=0.1)


def test_before_5_13_closing_a_file_without_delayed_blocks_tries_the_iolock(tmp_path: Path) -> None:
    result = turns(tmp_path, "linux-5.9", "append", "fsync", "open")
    assert acquired_each(result, "xfs.IOLOCK") == pytest.approx(
        2, rel=0.02
    )  # the write's, and that of the close
    assert acquired_each(result, "xfs.i_flags_lock") == pytest.approx(2, rel=0.02)


def synced(path: Path, kernel: str) -> RunResult:
    """Two tasks overwrite one file, and sync it after each write; the device's flush takes 1 ms."""
    workload = {"kind": "fio", "tasks": 2, "rw": "randwrite", "fsync": 1, "size": "1 MiB"}
    device = "{profile: nvme, flush: {time: 1 ms, cv: 0}, write: {time: 20 us, cv: 0}}"
    run = spec(path, kernel, workload, device=device)
    result = simulate(run | {"warmup_ns": 1e7, "duration_ns": 1e8})
    assert result.stall is None
    return result


@pytest.mark.parametrize(
    ("kernel", "held"),
    [("linux-4.3", False), ("linux-4.4", True), ("linux-6.17", True), ("linux-6.18", False)],
)
def test_fsync_holds_the_ilock_shared_while_the_log_is_forced(
    tmp_path: Path, kernel: str, held: bool
) -> None:
    """`xfs_file_fsync`, `xfs_fsync_flush_log`: from 4.4 (fc0561cefc04) until 6.18 (c91d38b57f2c)."""
    result = synced(tmp_path, kernel)
    ilock = lock(result, "xfs.ILOCK (file)")
    fsyncs = result.latency["fsync"].count
    assert fsyncs > 10
    assert (ilock.hold_shared_total_ns / fsyncs > 2e5) is held


def test_a_write_waits_for_a_log_that_is_forced_under_the_ilock(tmp_path: Path) -> None:
    before, after = (
        lock(synced(tmp_path, kernel), "xfs.ILOCK (file)").wait_max_ns
        for kernel in ("linux-6.17", "linux-6.18")
    )
    assert before > 5e5
    assert after < 1e5
