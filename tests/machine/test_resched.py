"""A wake-up that wants a busy CPU elsewhere back interrupts it, which takes time."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from engine import Spec, lock_cycle
from simfs import _engine
from simfs import machine as reference
from simfs._engine import Completion, Machine, Step, Task

PRICES = {
    "context_switch": 1000.0,
    "wakeup": 500.0,
    "resched_send": 40.0,
    "resched_deliver": 300.0,
    "resched_serve": 160.0,
}
MS = 1_000_000_000
SLEEPER, WAKER, HOG = range(-1, -4, -1)
"""What the threads are called, in the order in which they are spawned."""
MACHINES = pytest.mark.parametrize("machine", [_engine, reference])

Event = tuple[int, int | None, int, str, str]


def spec() -> Spec:
    kernel: dict[str, Any] = {
        "rules": {"sched.class": "cfs"},
        "cfs": {"latency_ns": 24e6, "wakeup_granularity_ns": 0.0},
        "tick_ns": 4e6,
        "preemption": "voluntary",
    }
    made = lock_cycle("semaphore", 1, 2, duration_ns=3e6, costs=PRICES, kernel=kernel)
    return made | {"workload": {"kind": "python", "tasks": 1, "params": {}}}


def door(machine: Machine) -> Completion:
    return machine.new_completion()


def hog(task: Task) -> Generator[Step, Any, None]:
    yield task.run(2e6)


def hog_in_the_kernel(task: Task) -> Generator[Step, Any, None]:
    yield task.run(2e6, "system")


def ends_in_between(task: Task) -> Generator[Step, Any, None]:
    """Ends 600 ns after the wake-up."""
    yield task.run(8.006e5)


def sleeper(task: Task) -> Generator[Step, Any, None]:
    yield task.wait_for(task.shared)
    yield task.run(1e4)


def waker(task: Task) -> Generator[Step, Any, None]:
    yield task.sleep(1e6)
    yield task.complete(task.shared)
    yield task.run(1e4)


def events_of(machine: Any, program: Any) -> list[Event]:  # noqa: ANN401
    """What happens where a task on CPU 1 wakes a sleeper of CPU 0, on which `program` runs."""

    def everybody(task: Task) -> Generator[Step, Any, None]:
        yield task.spawn(sleeper, pinned=0, background=True)
        yield task.spawn(waker, pinned=1, background=True)
        yield task.sleep(2e5)
        yield task.spawn(program, pinned=0, background=True)

    _, events = machine.trace(json.dumps(spec()), everybody, door)
    return list(events)


def moment(events: list[Event], task: int, what: str, after: int = MS) -> int:
    return next(time for time, who, _, did, _ in events if who == task and did == what and time >= after)


@MACHINES
def test_who_is_woken_from_another_cpu_waits_for_the_interrupt(machine: Any) -> None:  # noqa: ANN401
    """The waker's 500 ns, and 40, 300 and 160 of the interrupt."""
    events = events_of(machine, hog)
    woken = moment(events, SLEEPER, "wake")
    assert moment(events, HOG, "preempt") - woken == 1_000_000
    assert moment(events, SLEEPER, "run") - woken == 2_000_000
    assert moment(events, WAKER, "exit") - woken == 540_000 + 10_000_000


@MACHINES
def test_kernel_code_is_interrupted_and_goes_on(machine: Any) -> None:  # noqa: ANN401
    """It gives way where it asks; the interrupt takes its time and has only told it to."""
    events = events_of(machine, hog_in_the_kernel)
    ends = moment(events, HOG, "exit")
    assert ends - moment(events, HOG, "run", 0) == 2 * MS + 160_000
    assert moment(events, SLEEPER, "run") == ends + 1_000_000


@MACHINES
def test_an_interrupt_that_comes_after_a_switch_only_takes_its_time(machine: Any) -> None:  # noqa: ANN401
    """The sleeper runs as soon as the other one has ended, and pays for the interrupt."""
    events = events_of(machine, ends_in_between)
    woken, ends = moment(events, SLEEPER, "wake"), moment(events, HOG, "exit")
    runs = moment(events, SLEEPER, "run")
    assert (ends - woken, runs - ends) == (600_000, 1_000_000)
    assert moment(events, SLEEPER, "exit") - runs == 10_000_000 + 160_000
