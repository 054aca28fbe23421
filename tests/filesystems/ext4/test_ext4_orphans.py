"""Who leaves the middle of ext4's list of orphans writes the inode before, which another CPU has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, rate, simulate, simulate_whole, the_lock, window
from simfs.scenario import expand, load, to_run_spec


def spec(path: Path, tasks: int, kernel: str = "linux-5.14", **filesystem: Any) -> Spec:  # noqa: ANN401
    """Tasks on CPUs of their own that truncate their files byte by byte."""
    given = {"kind": "ext4", "size": "8 GiB"} | filesystem
    workload = {
        "kind": "mix",
        "tasks": tasks,
        "binding": "compact",
        "operations": [{"op": "shorten", "size": "1 B"}],
    }
    scenario = path / "orphans.yaml"
    scenario.write_text(
        f"simfs: 1\nname: m\ntitle: m\nmachine: server-24\nkernel: {json.dumps(kernel)}\ndevice: nvme\n"
        f"filesystem: {json.dumps(given)}\nworkload: {json.dumps(workload | {'files': 1, 'file_size': '100 kB'})}\n"
    )
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {"warmup_ns": 1e6, "duration_ns": 3e6}


def turns(path: Path, *operations: dict[str, str]) -> dict[str, float]:
    """How often a task takes each lock in a round of these operations."""
    scenario = path / "turns.yaml"
    workload = {"kind": "mix", "tasks": 1, "order": "in-turn", "files": 1, "operations": list(operations)}
    scenario.write_text(
        "simfs: 1\nname: t\ntitle: t\nmachine: server-24\nkernel: linux-6.12\ndevice: nvme\n"
        f"filesystem: {{kind: ext4, size: 8 GiB}}\nworkload: {json.dumps(workload)}\n"
    )
    (point,) = expand(load(scenario))
    result = simulate_whole(to_run_spec(point, 0) | {"warmup_ns": 1e6, "duration_ns": 3e6})
    return {lock.name: lock.acquired / result.operations for lock in result.locks}


def speed(path: Path, tasks: int, lines: int, **filesystem: Any) -> float:  # noqa: ANN401
    """Truncations a second where an inode has so many lines, in memory and on disk."""
    run = spec(path, tasks, **filesystem)
    run["filesystem"]["costs"] |= dict.fromkeys(("ext4_orphan.inode", "ext4_orphan.on_disk"), lines)
    return rate(simulate(run))


@pytest.mark.parametrize(("orphan_file", "slower"), [(False, True), (True, False)])
def test_many_on_the_list_fetch_each_others_inodes(tmp_path: Path, orphan_file: bool, slower: bool) -> None:
    kernel = {"kernel": "linux-5.15", "orphan_file": True} if orphan_file else {}
    short, long = (speed(tmp_path, 12, lines, **kernel) for lines in (1, 100))
    assert (long < 0.9 * short) == slower


def test_who_truncates_an_unlinked_file_leaves_the_list_alone(tmp_path: Path) -> None:
    """It is there since the `unlink` (`i_orphan`, `i_nlink`)."""
    run = spec(tmp_path, 4)
    named, unlinked = (
        simulate_whole(
            run | {"workload": run["workload"] | {"params": {**run["workload"]["params"], "unlinked": n}}}
        )
        for n in (0.0, 1.0)
    )
    assert the_lock(named, "ext4.orphan lock").acquired > 0
    assert all(lock.acquired == 0 for lock in unlinked.locks if lock.name == "ext4.orphan lock")


def test_who_is_alone_on_the_list_has_all_lines(tmp_path: Path) -> None:
    assert speed(tmp_path, 1, 100) == speed(tmp_path, 1, 1)


def test_the_superblocks_buffer_is_locked_within_the_list_since_5_11(tmp_path: Path) -> None:
    """The checksum and two atomics more under `s_orphan_lock`."""
    holds = []
    for value in (False, True):
        run = spec(tmp_path, 2)
        run["kernel"]["rules"]["ext4.locked_superblock"] = value
        (lock,) = (lock for lock in simulate(run).locks if lock.name == "ext4.orphan lock")
        holds.append(lock.hold_total_ns / lock.acquired)
    assert holds[0] < holds[1]


def test_both_machines_agree_on_the_list(tmp_path: Path) -> None:
    assert assert_same(spec(tmp_path, 5) | window(1e5)) > 100


def test_a_truncation_that_leaves_the_size_has_no_handle_for_it(tmp_path: Path) -> None:
    """`ext4_setattr` starts its own where the size changes; a block takes one, `ext4_truncate` and the times two."""
    cut, block = {"op": "truncate", "on": "first"}, {"op": "fallocate", "size": "4 KiB", "on": "first"}
    once, twice = turns(tmp_path, block, cut), turns(tmp_path, block, cut, cut)
    assert once["ext4.j_state_lock"] == pytest.approx(1 + 3, abs=0.05)
    assert twice["ext4.j_state_lock"] == pytest.approx(1 + 3 + 2, abs=0.05)
    assert twice["ext4.orphan lock"] == pytest.approx(2 * once["ext4.orphan lock"], rel=0.05)
