"""Locks of ranges: one list a file under `flc_lock`, before 3.11 one lock for all files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, acquired_each, rate, simulate
from simfs.scenario import expand, load, to_run_spec

BOTH = [{"op": "lock"}, {"op": "unlock"}]


def spec(path: Path, tasks: int, kernel: str = "linux-6.12", **workload: Any) -> Spec:  # noqa: ANN401
    given = {"kind": "mix", "tasks": tasks, "files": 1, "operations": BOTH, "order": "in-turn"} | workload
    scenario = path / "locks.yaml"
    scenario.write_text(
        f"simfs: 1\nname: m\ntitle: m\nmachine: server-24\nkernel: {kernel}\nfilesystem: {{kind: tmpfs}}\n"
        f"workload: {json.dumps(given | {'binding': 'compact'})}\n"
    )
    (point,) = expand(load(scenario))
    return to_run_spec(point, 0) | {"warmup_ns": 1e6, "duration_ns": 2e6}


def test_each_call_takes_the_lock_once_and_as_long_as_before(tmp_path: Path) -> None:
    """559 and 619 ns, and the loop of the load."""
    result = simulate(spec(tmp_path, 1))
    assert acquired_each(result, "vfs.flc_lock") == pytest.approx(2, abs=0.01)
    assert sum(of.mean_ns for of in result.latency.values()) == pytest.approx(559 + 619, rel=0.05)


def test_files_of_ones_own_do_not_meet_since_3_11(tmp_path: Path) -> None:
    one = rate(simulate(spec(tmp_path, 1)))
    assert rate(simulate(spec(tmp_path, 16))) == pytest.approx(16 * one, rel=0.02)


@pytest.mark.parametrize(("kernel", "apart"), [("linux-3.10", False), ("linux-3.11", True)])
def test_before_3_11_one_lock_guards_all_files(tmp_path: Path, kernel: str, apart: bool) -> None:
    """`lock_flocks`."""
    one, many = (rate(simulate(spec(tmp_path, tasks, kernel))) for tasks in (1, 16))
    assert many / one == pytest.approx(16, rel=0.02) if apart else many < 3 * one


def test_who_locks_ranges_of_one_file_waits_and_looks_at_all_of_them(tmp_path: Path) -> None:
    one, shared = (rate(simulate(spec(tmp_path, tasks, file_set="shared"))) for tasks in (1, 16))
    assert shared < 3 * one


def test_both_machines_do_the_same(tmp_path: Path) -> None:
    for kernel in ("linux-3.10", "linux-6.12"):
        made = spec(tmp_path, 4, kernel, file_set="shared")
        assert assert_same(made | {"warmup_ns": 0.0, "duration_ns": 2e5}) > 100
