"""What a task owes for earlier line misses is no part of the locks that it takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest

from engine import Spec, lock_cycle, the_lock
from simfs import _engine, machine
from simfs._engine import Line, Lock, Machine, Step, Task
from simfs.results.run_result import LockStats, RunResult

MISS, HOLD, THINK = 1000.0, 100.0, 5000.0
"""One transfer of a line, the time under the lock, the time elsewhere (ns)."""
BUSY_LINES = 4
"""Lines that all tasks write just before they ask for the lock."""

MACHINES = pytest.mark.parametrize("run", [_engine.run, machine.run], ids=["native", "reference"])
KINDS = ["tas", "ticket", "mcs", "qspinlock", "rwlock-2.6", "qrwlock", "mutex", "rwsem", "semaphore"]
Run = Callable[..., str]


def spec(kind: str, tasks: int) -> Spec:
    made = lock_cycle(kind, tasks, costs={"line_hit": 1, "line_llc": MISS}, duration_ns=6e5)
    return made | {"workload": {"kind": "python", "tasks": tasks, "params": {}}}


def busy(machine: Machine) -> tuple[Line, list[Lock]]:
    """Lines for all, and locks of which each task may have one of its own."""
    return machine.new_line(BUSY_LINES), [machine.new_lock("lock") for _ in range(8)]


def misses_then_lock(task: Task, *, own: bool) -> Generator[Step, Any, None]:
    lines, locks = task.shared
    lock = locks[task.number] if own else locks[0]
    while True:
        yield task.begin()
        yield task.run(task.exponential(THINK))
        yield task.touch(lines, "write")
        yield task.lock(lock)
        yield task.run(HOLD, "system")
        yield task.unlock(lock)
        yield task.end("cycle")


def one_lock(task: Task) -> Generator[Step, Any, None]:
    return misses_then_lock(task, own=False)


def a_lock_each(task: Task) -> Generator[Step, Any, None]:
    return misses_then_lock(task, own=True)


def result(run: Run, kind: str, tasks: int, worker: Callable[[Task], Any]) -> RunResult:
    answer = RunResult.model_validate_json(run(json.dumps(spec(kind, tasks)), worker, busy))
    assert [law for law in answer.laws if not law.ok] == []
    return answer


def hold(lock: LockStats) -> float:
    return lock.hold_total_ns / lock.acquired


@MACHINES
@pytest.mark.parametrize("kind", KINDS)
def test_the_hold_of_a_lock_for_all_begins_when_earlier_misses_are_paid(kind: str, run: Run) -> None:
    lock = the_lock(result(run, kind, 4, one_lock))
    assert lock.acquired > 50
    assert HOLD < hold(lock) < HOLD + 2 * MISS  # the word's own way to this CPU, and back


@MACHINES
@pytest.mark.parametrize("kind", KINDS)
def test_the_hold_of_a_lock_of_ones_own_does_not_count_what_was_owed_before(kind: str, run: Run) -> None:
    lock = the_lock(result(run, kind, 4, a_lock_each))
    assert lock.acquired > 50
    assert hold(lock) == pytest.approx(HOLD, abs=5)


@MACHINES
def test_a_lock_that_one_cpu_uses_costs_no_event(run: Run) -> None:
    """A task has the end of its thinking and of its hold, whatever it owes."""
    answer = result(run, "qspinlock", 4, a_lock_each)
    assert answer.events <= 2 * (answer.operations + 4) + 12


@MACHINES
@pytest.mark.parametrize("kind", ["qspinlock", "mutex"])
def test_a_hold_in_debt_when_the_window_begins_counts_from_when_it_is_paid(run: Run, kind: str) -> None:
    for warmup in range(1000, 40_000, 900):
        given = spec(kind, 2) | {"warmup_ns": float(warmup), "duration_ns": 2e4}
        answer = RunResult.model_validate_json(run(json.dumps(given), a_lock_each, busy))
        for lock in answer.locks:
            assert lock.hold_max_ns <= HOLD + 10
            assert lock.hold_total_ns <= (lock.acquired + 2) * (HOLD + 10)  # each task may be in one
