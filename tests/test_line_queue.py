"""Who has queued for a line behind others does one thing with it: those behind it take it away at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest

from engine import Spec, lock_cycle, the_lock
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


def cycles(side: str, hold: float) -> Callable[[Task], Generator[Step, Any, None]]:
    def worker(task: Task) -> Generator[Step, Any, None]:
        while True:
            yield task.begin()
            yield task.run(task.exponential(10.0))
            yield task.lock(task.shared, side)
            if hold:
                yield task.run(hold, "system")
            yield task.unlock(task.shared, side)
            yield task.end("cycle")

    return worker


def result(run: Run, kind: str, tasks: int, side: str = "write", hold: float = 0.0) -> RunResult:
    answer = RunResult.model_validate_json(run(json.dumps(spec(kind, tasks)), cycles(side, hold), one_lock))
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
def test_nobody_else_wants_the_line_of_a_lock_of_ones_own(run: Run) -> None:
    lock = the_lock(result(run, "qspinlock", 1))
    assert (lock.contended, lock.acquired > 1000) == (0, True)


@MACHINES
@pytest.mark.parametrize("kind", ["qrwlock", "rwsem-4.8"])
def test_readers_come_and_go_by_a_transfer_each(kind: str, run: Run) -> None:
    assert ways(result(run, kind, 8, "read")) == pytest.approx(2, rel=0.05)


@MACHINES
def test_readers_of_5_3_fetch_the_count_once_more_for_the_owner_word(run: Run) -> None:
    """`rwsem_set_reader_owned`; to 5.2 a reader writes only what is not there yet."""
    before, since = (ways(result(run, kind, 8, "read", hold=WAY)) for kind in ("rwsem-4.8", "rwsem-5.3"))
    assert before == pytest.approx(2, rel=0.05)
    assert since == pytest.approx(3, rel=0.05)
