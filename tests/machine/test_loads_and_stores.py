"""What is loaded and then stored to, and when others see a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, lock_cycle
from simfs import _engine, machine
from simfs._engine import Line, Machine, Step, Task
from simfs.results.run_result import RunResult

TRANSFER = 100.0
FAR = {f"line_{near}": TRANSFER for near in ("smt", "llc", "socket", "remote")}
MACHINES = pytest.mark.parametrize("run", [_engine.run, machine.run], ids=["native", "reference"])
Run = Callable[..., str]
Worker = Callable[[Task], Generator[Step, Any, None]]


def spec(tasks: int, **costs: float) -> Spec:
    made = lock_cycle("mutex", tasks, costs={"line_hit": 1, **FAR, **costs}, duration_ns=2e5)
    made["kernel"]["locks"] = {"futex.bucket": "qspinlock"}
    return made | {"workload": {"kind": "python", "tasks": tasks, "params": {}, "program": "a.py:worker"}}


def answers(run: Run, given: Spec, worker: Worker, setup: Any) -> RunResult:  # noqa: ANN401
    return RunResult.model_validate_json(run(json.dumps(given), worker, setup))


def a_line(made: Machine) -> Line:
    return made.new_line(1)


def changes(task: Task) -> Generator[Step, Any, None]:
    """Change what lies in the line, and wait until that is done, as the next lock would."""
    own = task.stream("begins")  # not in step
    yield task.run(1 + own.next_u64() % 50)
    while True:
        yield task.touch(task.shared, "write")
        yield task.run(3 * TRANSFER)
        yield task.end("change")


@MACHINES
def test_a_load_and_a_store_of_what_another_has_changed_are_two_transfers(run: Run) -> None:
    """The load brings a copy, and the store takes the other's away, while the task goes on."""
    given = spec(2)
    result = answers(run, given, changes, a_line)
    loaded = result.cpu_ns.system / result.operations
    assert loaded == pytest.approx(TRANSFER, rel=0.1)  # the task waits for the load only
    assert_same(given, changes, a_line)


def crowd(task: Task) -> Generator[Step, Any, None]:
    while True:
        yield task.touch(task.shared, "write")
        yield task.run(1)
        yield task.end("change")


@MACHINES
@pytest.mark.parametrize(("migrates", "transfers"), [(0, 2), (1, 1)])
def test_a_crowd_pays_both_unless_the_load_takes_the_line(run: Run, migrates: int, transfers: int) -> None:
    result = answers(run, spec(8, line_migrates=migrates), crowd, a_line)
    assert result.operations == pytest.approx(2e5 / (transfers * TRANSFER), rel=0.15)


LOOKERS = 6


def flags(made: Machine) -> Any:  # noqa: ANN401
    return made.new_word()


@pytest.mark.parametrize("migrates", [0, 1])
def test_a_store_is_seen_when_all_who_asked_before_are_served(migrates: int) -> None:
    """The lookers have asked for the line before it is stored to: none of them finds what is stored."""
    seen: list[tuple[int, int]] = []

    def worker(task: Task) -> Generator[Step, int, None]:
        word = task.shared
        if task.number == 0:
            yield task.exchange(word, 1)
            yield task.run(1000)
            yield task.fetch_add(word, 0)  # has the line, until the lookers come
            yield task.run(60)
            yield task.store(word, 2)
            seen.append((0, (yield task.load(word))))  # its own store is there for itself
        else:
            yield task.run(1000 + 2 * task.number)
            seen.append((task.number, (yield task.fetch_add(word, 0))))
        yield task.sleep(1e9)

    given = spec(LOOKERS + 1, line_migrates=migrates)
    answers(_engine.run, given, worker, flags)
    assert sorted(seen) == [(0, 2), *((looker, 1) for looker in range(1, LOOKERS + 1))]


def test_a_spinlock_is_given_back_behind_all_who_look_for_it() -> None:
    """A release waits for all looks before it: with more who spin, a turn takes longer."""

    def worker(task: Task) -> Generator[Step, int, None]:
        word = task.shared
        while True:
            while (yield task.exchange(word, 1)):
                taken = 1
                while taken:
                    yield task.run(40)
                    taken = yield task.load(word)
            yield task.run(10)
            yield task.store(word, 0)
            yield task.end("turn")

    few, many = (answers(_engine.run, spec(tasks), worker, flags).operations for tasks in (4, 16))
    assert few > 2.5 * many
