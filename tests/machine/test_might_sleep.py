"""Tasks give way with a lock held: at `dput` with voluntary preemption, and where pages are copied."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from machines import assert_same

from engine import Spec, window
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
    return to_run_spec(point, 0) | window(3e7)


def gives_way_locked(spec: Spec, name: str = "i_rwsem") -> int:
    """How often a task loses its CPU that has the lock of this name which is locked most often."""
    _, _, events, _ = _engine.watch(json.dumps(spec))
    locks = Counter(str(about) for *_, what, about in events if what == "acquire" and name in str(about))
    lock = locks.most_common(1)[0][0]
    owner: int | None = None
    count = 0
    for _, who, _, what, about in events:
        if str(about) == lock and what in {"acquire", "release"}:
            owner = who if what == "acquire" else None
        count += owner is not None and who == owner and what == "yield"
    return count


def test_who_removes_a_directory_gives_way_to_inodegc_before_it_unlocks_the_parent() -> None:
    assert gives_way_locked(removing("voluntary")) > 5


def test_without_voluntary_preemption_it_does_not() -> None:
    assert gives_way_locked(removing("none")) == 0


@pytest.mark.slow
def test_both_machines_agree_on_where_tasks_may_sleep() -> None:
    assert_same(removing("voluntary"), most=7_000)  # which has two of those yields


def writing(filesystem: str) -> Spec:
    """Two tasks on a CPU write over what is in memory of one file; the kernel is not preempted."""
    settings = ["variants=[]", "measured=null", "machine.cpus=1", f"filesystem.kind={filesystem}"]
    settings += ["workload.readers=0", "sweep.workload.tasks=[2]", "kernel.preemption=none"]
    (point,) = expand(load("emulated-rwsem", settings))
    return to_run_spec(point, 0) | window(6e7)


@pytest.mark.parametrize(
    ("filesystem", "lock"), [("xfs", "IOLOCK"), ("ext4", "i_rwsem"), ("tmpfs", "i_rwsem")]
)
def test_who_has_copied_a_page_gives_way_before_it_unlocks_the_file(filesystem: str, lock: str) -> None:
    """`cond_resched` in `iomap_write_iter` and `generic_perform_write`."""
    assert gives_way_locked(writing(filesystem), lock) > 0
