"""Nobody is left behind: who spins is told what concerns it, and waits that the window cuts are counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest

from engine import CONSTANTS, Spec, lock_cycle, one_lock, simulate, the_lock
from simfs import _engine, machine
from simfs._engine import Step, Task
from simfs.results.run_result import RunResult

COSTS = {"line_hit": 2, "line_llc": 50, "context_switch": 1500, "wakeup": 1000, "ipi_deliver": 500}
MACHINES = pytest.mark.parametrize("run", [_engine.run, machine.run], ids=["native", "reference"])


def reads_or_writes(task: Task) -> Generator[Step, Any, None]:
    """Every other task only reads, the others only write."""
    lock, side = task.shared, "read" if task.number % 2 else "write"
    while True:
        yield task.run(task.exponential(2000))
        yield task.begin()
        yield task.lock(lock, side)
        yield task.run(task.exponential(1000), "system")
        yield task.unlock(lock, side)
        yield task.end(side)


def half_readers(kind: str, tasks: int, seed: int) -> Spec:
    spec = lock_cycle(kind, tasks, costs=COSTS, duration_ns=2e7) | {"seed": seed}
    return spec | {"workload": {"kind": "python", "tasks": tasks, "params": {}}}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["rwsem-3.16", "rwsem-4.8", "rwsem-5.3", "rwsem-5.4", "rwsem-5.11"])
def test_a_writer_that_spins_sees_that_readers_have_taken_the_rwsem(kind: str, seed: int) -> None:
    """It used to spin on while ever more readers came: with most seeds no writer but the first had the rwsem of 4.8."""
    text = _engine.run(json.dumps(half_readers(kind, 80, seed)), reads_or_writes, one_lock)
    result = RunResult.model_validate_json(text)
    assert [law.detail for law in result.laws if not law.ok] == []
    assert result.latency["write"].count > 100
    assert result.latency["read"].count > 10


@MACHINES
def test_waits_that_the_window_cuts_are_counted(run: Callable[[str], str]) -> None:
    """One of four has the lock for longer than the window; three wait for it from 1 us on, at their ends or not."""
    spec = lock_cycle("semaphore", 4, duration_ns=1e5, think_ns=1e3, hold_ns=1e6)
    lock = the_lock(RunResult.model_validate_json(run(json.dumps(spec))))
    assert (lock.contended, lock.still_waiting, lock.still_waiting_max_ns) == (0, 3, 99e3)


def test_a_wait_is_cut_at_the_beginning_of_the_window_too() -> None:
    spec = lock_cycle("qspinlock", 4, warmup_ns=5e4, duration_ns=1e5, think_ns=1e3, hold_ns=1e6)
    lock = the_lock(simulate(spec))
    assert (lock.still_waiting, lock.still_waiting_max_ns) == (3, 1e5)


@MACHINES
def test_who_is_to_give_way_when_the_tick_ends_is_not_left_behind(run: Callable[[str], str]) -> None:
    """The run ends in the interrupt that has seen who else waits for the spinner's CPU: it looks after that."""
    random: dict[str, Any] = {"think_distribution": "exponential", "hold_distribution": "exponential"}
    constants = {**CONSTANTS, "code_tick_timers": 2500}
    kernel = {"tick_ns": 1e6, "base_slice_ns": 1e3, "constants": constants}
    spec = lock_cycle("mutex", 24, 12, duration_ns=6.24e6, think_ns=2e5, hold_ns=2e4, kernel=kernel, **random)
    spec["machine"]["costs"]["instruction"] = 100
    result = RunResult.model_validate_json(run(json.dumps(spec | {"seed": 100})))
    assert [law.detail for law in result.laws if not law.ok] == []
