"""Who preempts by a wake-up has the CPU from then on, by the scheduler's clock (`rq_clock_skip_update`)."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from engine import lock_cycle
from simfs import _engine
from simfs import machine as reference
from simfs._engine import Completion, Machine, Step, Task

US = 1_000_000
SLEEPER, WAKER, HOG = range(-1, -4, -1)
"""What the threads are called, in the order in which they are spawned."""
COSTS = {"context_switch": 1000.0, "wakeup": 500.0, "resched_deliver": 500.0}
KERNEL = {"rules": {"sched.run_to_parity": False, "sched.delay_dequeue": False}}

Doors = tuple[Completion, Completion]


def doors(machine: Machine) -> Doors:
    return machine.new_completion(), machine.new_completion()


def hog(task: Task) -> Generator[Step, Any, None]:
    """Weighs 15 of 1024: a microsecond of it is 68 of its own time."""
    yield task.set_nice(19)
    yield task.run(2e6)


def sleeper(task: Task) -> Generator[Step, Any, None]:
    for door in task.shared:
        yield task.wait_for(door)
        yield task.run(1e4)


def waker(task: Task) -> Generator[Step, Any, None]:
    for door in task.shared:
        yield task.sleep(5e5)
        yield task.complete(door)


def everybody(task: Task) -> Generator[Step, Any, None]:
    yield task.spawn(sleeper, pinned=0, background=True)
    yield task.spawn(waker, pinned=1, background=True)
    yield task.sleep(2e5)
    yield task.spawn(hog, pinned=0, background=True)


@pytest.mark.parametrize("machine", [_engine, reference])
def test_the_time_from_a_wake_up_to_the_switch_is_of_the_woken_task(machine: Any) -> None:  # noqa: ANN401
    """The hog goes on for a microsecond after the first wake-up.

    If that was the hog's time, the sleeper would be owed 68 us, of which it takes 11. By the kernel's clock it has run
    for 12 us and owes them: it comes back ahead of the average, and waits until the hog ends.
    """
    spec = lock_cycle("semaphore", 1, 2, duration_ns=3e6, costs=COSTS, kernel=KERNEL)
    spec["workload"] = {"kind": "python", "tasks": 1, "params": {}}
    _, events = machine.trace(json.dumps(spec), everybody, doors)
    wakes, runs = (
        [time for time, task, _, did, _ in events if task == SLEEPER and did == what and time > 400 * US]
        for what in ("wake", "run")
    )
    ends = next(time for time, task, _, did, _ in events if task == HOG and did == "exit")
    assert runs[0] - wakes[0] == 2 * US
    assert runs[1] - ends == US
