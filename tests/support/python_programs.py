"""Programs written in Python, for tests: the lock cycle, and how to run one."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

from engine import Spec, lock_cycle
from simfs import _engine
from simfs._engine import Machine, Step, Task
from simfs.results.run_result import RunResult

Program = Generator[Step, Any, None]

DRAWN: Any = {
    "think_ns": 1000, "think_distribution": "exponential", "hold_ns": 50, "hold_distribution": "exponential",
}  # fmt: skip

COSTS = {"line_hit": 2, "line_llc": 23, "line_socket": 49, "context_switch": 1500, "wakeup": 1000}


def spec(lock: str = "semaphore", tasks: int = 1, **changes: Any) -> Spec:  # noqa: ANN401
    made = lock_cycle(lock, tasks, costs=COSTS) | changes
    return made | {"workload": {"kind": "python", "tasks": tasks, "params": {"hold": 50}}}


def simulate(
    worker: Callable[..., Program],
    setup: Callable[[Machine], object] | None = None,
    given: Spec | None = None,
) -> RunResult:
    result = RunResult.model_validate_json(_engine.run(json.dumps(given or spec()), worker, setup))
    assert [law for law in result.laws if not law.ok] == []
    return result


def cycle(task: Task) -> Program:
    lock = task.shared
    think = task.run(task.exponential(1000))
    begin, take = task.begin(), task.lock(lock)
    hold = task.run(task.exponential(50), "system")
    give, end = task.unlock(lock), task.end("cycle")
    while True:
        yield think
        yield begin
        yield take
        yield hold
        yield give
        yield end
