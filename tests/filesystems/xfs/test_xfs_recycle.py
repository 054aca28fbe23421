"""A new file on XFS takes the inode of one just removed at once, or, as posted once, after a grace period of RCU."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from machines import assert_same

from engine import Spec, rate, simulate, window
from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

GRACE_PERIOD = 4e6  # ns


def spec(
    tmp_path: Path,
    waits: bool,
    tasks: int = 4,
    machine: str = "server-24",
    operation: str = "create_unlink",
) -> Spec:
    path = tmp_path / "recycle.yaml"
    path.write_text(
        f"simfs: 1\nname: recycle\ntitle: recycle\nmachine: {machine}\n"
        f"kernel: {{profile: linux-5.14, rules: {{xfs.recycle_waits: {str(waits).lower()}}}}}\n"
        "filesystem: {kind: xfs, size: 8 GiB}\n"
        f"workload: {{kind: {operation}, tasks: {tasks}, directories: per-task}}\n"
    )
    return to_run_spec(expand(load(str(path)))[0], 0) | window(4e7)


def test_who_takes_an_inode_that_was_just_removed_waits_for_a_grace_period(tmp_path: Path) -> None:
    """Before 5.15 the inode is free when `unlink` returns, so that each task takes its own again."""
    at_once, waited = (rate(simulate(spec(tmp_path, waits, tasks=1))) for waits in (False, True))
    assert at_once > 80 / GRACE_PERIOD
    assert 0.4 / GRACE_PERIOD < waited < 1 / GRACE_PERIOD


def test_a_number_is_chosen_before_its_inode_is_looked_for(tmp_path: Path) -> None:
    """`xfs_dialloc` goes over both trees with the AGI locked; `xfs_iget` looks 3,370 instructions later."""
    spec_ = spec(tmp_path, waits=False, tasks=1, machine="emulated", operation="create") | {
        "duration_ns": 1e6
    }
    _, _, events, _ = _engine.watch(json.dumps(spec_))
    taken = [
        (at, str(about))
        for at, _, _, what, about in events
        if what == "acquire" and str(about).startswith(("xfs.AGI#", "xfs.ILOCK "))
    ]
    ahead = [found - locked for (locked, agi), (found, _) in pairwise(taken) if "AGI" in agi]
    assert len(ahead) > 10
    assert min(ahead) > 2_500e3  # ps; times of steps vary


@pytest.mark.slow
def test_both_machines_agree_on_the_wait(tmp_path: Path) -> None:
    assert assert_same(spec(tmp_path, waits=True)) > 10
