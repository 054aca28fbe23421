"""Who has queued for a line behind others does one thing with it: those behind it take it away at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from engine import Spec, lock_cycle, read_answer, the_lock, written_spec
from simfs import _engine, machine
from simfs._engine import Lock, Machine, Step, Task
from simfs.results.run_result import RunResult

WAY = 1000.0
"""One transfer of a line (ns)."""

MACHINES = pytest.mark.parametrize("run", [_engine.run, machine.run], ids=["native", "reference"])
Run = Callable[..., str]


def spec(kind: str, tasks: int) -> Spec:
    made = lock_cycle(kind, tasks, costs={"line_hit": 1, "line_llc": WAY}, duration_ns=1e6)
    return made | {"workload": {"kind": "python", "tasks": tasks, "params": {}}}


def one_lock(machine: Machine) -> Lock:
    return machine.new_lock("lock")


def nothing_under_a_lock(side: str) -> Callable[[Task], Generator[Step, Any, None]]:
    def worker(task: Task) -> Generator[Step, Any, None]:
        while True:
            yield task.begin()
            yield task.run(task.exponential(10.0))
            yield task.lock(task.shared, side)
            yield task.unlock(task.shared, side)
            yield task.end("cycle")

    return worker


def result(run: Run, kind: str, tasks: int, side: str = "write") -> RunResult:
    answer = RunResult.model_validate_json(run(json.dumps(spec(kind, tasks)), nothing_under_a_lock(side), one_lock))
    assert [law for law in answer.laws if not law.ok] == []
    return answer


def ways(answer: RunResult) -> float:
    """Transfers of the lock's line in a cycle, if it does nothing else."""
    return answer.window_ns / answer.operations / WAY


@MACHINES
def test_a_lock_with_nothing_under_it_is_found_held_where_its_line_is_wanted(run: Run) -> None:
    """The release needs the line once more, and those who asked for it meanwhile have it first."""
    assert the_lock(result(run, "qspinlock", 8)).contended > 0


@MACHINES
def test_two_tasks_seldom_ask_for_a_line_at_once(run: Run) -> None:
    lock = the_lock(result(run, "qspinlock", 1))
    assert (lock.contended, lock.acquired > 1000) == (0, True)
