"""Looking for a CPU for a new task takes time: two that look at once may find the same idle one."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from engine import lock_cycle
from simfs import _engine
from simfs import machine as reference
from simfs._engine import Completion, Machine, Step, Task

SEARCH_NS = (3 * 255 // 2 + 323) * 10
"""Of three CPUs, at 10 ns an instruction: on average so long before it is queued, a new task's CPU is looked at."""


def door(machine: Machine) -> Completion:
    return machine.new_completion()


def child(task: Task) -> Generator[Step, Any, None]:
    yield task.run(1e6)


def parent(after: float) -> Any:  # noqa: ANN401
    def program(task: Task) -> Generator[Step, Any, None]:
        yield task.run(1e5 + after)
        yield task.spawn(child, background=True)
        yield task.run(1e6)

    return program


def cpus_of_children(machine: Any, apart: float, instruction: float) -> list[int]:  # noqa: ANN401
    """Where two tasks of CPUs 0 and 1 start their children, the second so many ns after the first. CPU 2 idles."""

    def everybody(task: Task) -> Generator[Step, Any, None]:
        yield task.spawn(parent(0), pinned=0, background=True)
        yield task.spawn(parent(apart), pinned=1, background=True)
        yield task.sleep(5e6)

    made = lock_cycle("semaphore", 1, 3, duration_ns=3e6, costs={"instruction": instruction})
    made |= {"workload": {"kind": "python", "tasks": 1, "params": {}}}
    _, events = machine.trace(json.dumps(made), everybody, door)
    return [cpu for time, _, cpu, what, _ in events if what == "start" and time > 1e7]


@pytest.mark.parametrize("machine", [_engine, reference])
@pytest.mark.parametrize(
    ("apart", "instruction", "second"),
    [(SEARCH_NS - 100, 10.0, 2), (SEARCH_NS + 100, 10.0, 1), (1000, 0.0, 1)],
)
def test_who_looks_before_another_has_come_goes_to_the_same_cpu(
    machine: Any,  # noqa: ANN401
    apart: float,
    instruction: float,
    second: int,
) -> None:
    assert cpus_of_children(machine, apart, instruction) == [2, second]
