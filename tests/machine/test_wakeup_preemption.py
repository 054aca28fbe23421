"""Who is woken on a CPU that another task has is looked at once: at the wake-up, or when the CPU is done switching."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from engine import Spec, lock_cycle
from simfs import _engine
from simfs import machine as reference
from simfs._engine import Completion, Machine, Step, Task

SWITCH = 1000.0
"""Nanoseconds of a context switch."""

CFS: dict[str, Any] = {
    "rules": {"sched.class": "cfs"},
    "cfs": {"latency_ns": 24e6, "wakeup_granularity_ns": 0.0},
    "tick_ns": 4e6,
    "preemption": "full",
}
"""A sleeper of some time preempts whoever runs."""


def spec() -> Spec:
    made = lock_cycle("semaphore", 1, 2, duration_ns=3e6, costs={"context_switch": SWITCH}, kernel=CFS)
    return made | {"workload": {"kind": "python", "tasks": 1, "params": {}}}


def door(machine: Machine) -> Completion:
    return machine.new_completion()


def hog(task: Task) -> Generator[Step, Any, None]:
    yield task.run(5e6)


def visitor(task: Task) -> Generator[Step, Any, None]:
    """Runs for 10 us from 1 ms on; then its CPU switches back to the hog until 1.014 ms."""
    yield task.sleep(1e6)
    yield task.run(1e4)


def sleeper(task: Task) -> Generator[Step, Any, None]:
    yield task.wait_for(task.shared)
    yield task.run(1e4)


def waker(task: Task) -> Generator[Step, Any, None]:
    """Wakes the sleeper while CPU 0 switches from the visitor to the hog."""
    yield task.sleep(1.0105e6)
    yield task.complete(task.shared)


SLEEPER, VISITOR, WAKER, HOG = range(-1, -5, -1)
"""What the threads are called, in the order in which they are spawned."""


def everybody(task: Task) -> Generator[Step, Any, None]:
    yield task.spawn(sleeper, pinned=0, background=True)
    yield task.spawn(visitor, pinned=0, background=True)
    yield task.spawn(waker, pinned=1, background=True)
    yield task.sleep(2e5)
    yield task.spawn(hog, pinned=0, background=True)


@pytest.mark.parametrize("machine", [_engine, reference])
def test_who_is_woken_while_its_cpu_switches_is_looked_at_when_that_is_done(machine: Any) -> None:  # noqa: ANN401
    """The hog has CPU 0 at 1.014 ms and gives it up at once."""
    _, events = machine.trace(json.dumps(spec()), everybody, door)
    on_cpu_0 = [
        (time, what, task) for time, task, cpu, what, _ in events if cpu == 0 and time > 1_012_000_000
    ]
    assert on_cpu_0[:6] == [
        (1_013_000_000, "segment end", VISITOR),
        (1_013_000_000, "exit", VISITOR),
        (1_013_500_000, "wake", SLEEPER),
        (1_014_000_000, "run", HOG),
        (1_014_000_000, "preempt", HOG),
        (1_015_000_000, "run", SLEEPER),
    ]


def syscalls(task: Task) -> Generator[Step, Any, None]:
    """A system call and user code, each of 100 us."""
    while True:
        yield task.begin()
        yield task.run(1e5, "system")
        yield task.run(1e5)
        yield task.end("turn")


def beside_a_sleeper(task: Task) -> Generator[Step, Any, None]:
    yield task.spawn(syscalls, pinned=0, background=True)
    while True:
        yield task.sleep(1.7e5)
        yield task.run(1e4, "system")


@pytest.mark.parametrize("machine", [_engine, reference])
def test_user_code_that_loses_its_cpu_before_it_begins_is_run_later(machine: Any) -> None:  # noqa: ANN401
    """Who is woken during a system call has the CPU when that returns to user mode."""
    given = spec() | {"duration_ns": 5e7}
    given["kernel"]["preemption"] = "voluntary"
    given["machine"]["cpus"] = 1
    result = json.loads(machine.run(json.dumps(given), beside_a_sleeper, door))
    assert result["involuntary_switches"] > 50
    assert result["cpu_ns"]["user"] == pytest.approx(1e5 * result["operations"], abs=1e5)
