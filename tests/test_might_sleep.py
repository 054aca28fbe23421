"""Tasks give way at `dput` too, before a parent is unlocked, with voluntary preemption."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from machines import assert_same

from engine import Spec
from simfs import _engine
from simfs.scenario import expand, load, to_run_spec


def removing(preemption: str) -> Spec:
    """A task that makes and removes directories on XFS: each 33rd removal wakes inodegc's worker on its CPU."""
    settings = ["variants=[]", "calibrate=[]", "measured=null", "machine.cpus=1", "filesystem.kind=xfs"]
    settings += [
        "workload.operations=[{op: mkdir}, {op: rmdir, on: made}]",
        "workload.files=0",
        "sweep.workload.tasks=[1]",
        f"kernel.preemption={preemption}",
    ]
    (point,) = expand(load("emulated-metadata", settings))
    return to_run_spec(point, 0) | {"warmup_ns": 0, "duration_ns": 3e7}


def gives_way_with_parent_locked(spec: Spec) -> int:
    """How often a task loses its CPU that has the directory locked which is locked most often."""
    _, _, events, _ = _engine.watch(json.dumps(spec))
    locks = Counter(str(about) for *_, what, about in events if what == "acquire" and "i_rwsem" in str(about))
    parent = locks.most_common(1)[0][0]
    owner: int | None = None
    count = 0
    for _, who, _, what, about in events:
        if str(about) == parent and what in {"acquire", "release"}:
            owner = who if what == "acquire" else None
        count += owner is not None and who == owner and what == "yield"
    return count


def test_who_removes_a_directory_gives_way_to_inodegc_before_it_unlocks_the_parent() -> None:
    assert gives_way_with_parent_locked(removing("voluntary")) > 5


def test_without_voluntary_preemption_it_does_not() -> None:
    assert gives_way_with_parent_locked(removing("none")) == 0


@pytest.mark.slow
def test_both_machines_agree_on_where_tasks_may_sleep() -> None:
    assert_same(removing("voluntary"), most=7_000)  # which has two of those yields
