"""XFS's tables of buffers grow: a worker is woken, and the old table waits for a grace period."""

from __future__ import annotations

import json
from typing import Any

import pytest
from machines import ALL, assert_same

from engine import Spec, window
from simfs import _engine
from simfs.scenario import expand, load, to_run_spec

MS = 1e9
GROWTHS = (14.7, 43.4)
"""In the laboratory: ms after a task has begun to create files (`workqueue_queue_work` of `rht_deferred_worker`)."""
PERIOD = 18
"""A grace period begins at the next tick, takes two, and callbacks are invoked in the one after; a tick is 4 ms."""


def creating(tasks: int = 1, **changes: Any) -> Spec:  # noqa: ANN401
    """Creating files in one directory of the laboratory's XFS, for 80 ms."""
    settings = [f"sweep.workload.tasks=[{tasks}]", "variants=[]", "measured=null", "machine.cpus=2"]
    (point,) = expand(load("emulated-create", settings))
    spec: Spec = to_run_spec(point, 0) | window(80e6)
    rules = spec["kernel"]["rules"] | changes.pop("rules", {})
    return spec | {"kernel": spec["kernel"] | {"rules": rules}} | changes


def softirqs(spec: Spec) -> list[float]:
    """When RCU has something to do after a tick, in ms."""
    _, _, events, _ = _engine.watch(json.dumps(spec))
    return [at / MS for at, _, _, what, _ in events if what == "softirq"]


def test_tables_grow_when_those_of_the_laboratory_do() -> None:
    seen = softirqs(creating())
    for growth in GROWTHS:
        late = growth * 1.1
        assert not [
            at for at in seen if late - 8 - PERIOD / 4 < at < growth * 0.9 and at > GROWTHS[0] + PERIOD
        ]
        assert [at for at in seen if growth * 0.9 < at < late + PERIOD], growth
    assert min(seen) > GROWTHS[0] * 0.9


def test_kernels_with_a_tree_of_buffers_have_no_grace_periods() -> None:
    assert not softirqs(creating(rules={"xfs.buffer_hash": False}))


@pytest.mark.slow
def test_both_machines_agree_on_tables_that_grow() -> None:
    """Twice, and until the old tables are gone."""
    assert_same(creating(4, duration_ns=30e6), most=ALL)
