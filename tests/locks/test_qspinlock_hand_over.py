"""Who comes to a qspinlock between a release and the pending waiter's turn lets that one take it first."""

from __future__ import annotations

import json
from collections.abc import Generator
from itertools import cycle
from typing import Any

from machines import assert_same

from engine import lock_cycle, one_lock
from simfs import _engine
from simfs._engine import Step, Task

ARRIVES = 0.0, 200.0, 1050.0
"""ns: the holder, the pending waiter, and one who comes when the lock is free and not taken yet."""

HOLD = 1000.0


def test_a_newcomer_looks_again_when_the_pending_waiter_has_taken_the_lock() -> None:
    """A head of the queue would not look before the release (`queued_spin_lock_slowpath`)."""
    arrives = cycle(ARRIVES)

    def worker(task: Task) -> Generator[Step, Any, None]:
        yield task.begin()
        yield task.run(10_000 + next(arrives))
        yield task.lock(task.shared, "write")
        yield task.run(HOLD, "system")
        yield task.unlock(task.shared, "write")
        yield task.end("cycle")

    spec = lock_cycle(
        "qspinlock", 3, duration_ns=20_000, costs={"line_hit": 1, "line_llc": 100, "cpu_relax": 1}
    )
    spec |= {"workload": {"kind": "python", "tasks": 3, "params": {}}}
    _, trace = _engine.trace(json.dumps(spec), worker, one_lock)
    _, pending, newcomer = (who for _, who, _, what, _ in trace if what == "acquire")

    def first(what: str, task: int | None) -> int:
        return next(time for time, who, _, happens, _ in trace if (who, happens) == (task, what))

    assert first("acquire", pending) < first("look", newcomer) < first("release", pending)
    assert first("wait", newcomer) < first("acquire", pending)
    assert_same(spec, worker, one_lock)
