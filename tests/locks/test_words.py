"""Words that programs in Python share: atomic, on cache lines, and slept on."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from machines import assert_same

from engine import Spec, lock_cycle, window
from simfs import _engine
from simfs._engine import Machine, Step, Task, Word
from simfs.results.run_result import RunResult
from simfs.scenario import expand, load, paths, to_run_spec
from simfs.scenario.program import Program, load_program

FAR = {f"line_{near}": 100.0 for near in ("smt", "llc", "socket", "remote")}


def python(tasks: int, cpus: int | None = None, **kernel: Any) -> Spec:  # noqa: ANN401
    costs = {**FAR, "context_switch": 1000.0, "wakeup": 500.0}
    spec = lock_cycle("mutex", tasks, cpus, duration_ns=2e5, costs=costs, kernel=kernel)
    spec["kernel"]["locks"] = {"futex.bucket": "qspinlock"}
    spec["workload"] = {"kind": "python", "tasks": tasks, "params": {}, "program": "a.py:worker"}
    return spec


def one(machine: Machine) -> Word:
    return machine.new_word()


def answers(spec: Spec, worker: Any, setup: Any = one) -> RunResult:  # noqa: ANN401
    return RunResult.model_validate_json(_engine.run(json.dumps(spec), worker, setup))


def test_each_operation_gives_what_the_word_was() -> None:
    seen: list[int] = []

    def worker(task: Task) -> Generator[Step, int, None]:
        word: Word = task.shared
        for step in (
            task.load(word), task.store(word, 5), task.exchange(word, 7), task.compare_exchange(word, 6, 9),
            task.compare_exchange(word, 7, -2), task.fetch_add(word, 12), task.load(word),
        ):  # fmt: skip
            seen.append((yield step))
        yield task.sleep(1e9)

    answers(python(1), worker)
    assert seen == [0, 0, 5, 7, 7, -2, 10]


@pytest.mark.parametrize("tasks", [2, 8])
def test_no_addition_is_lost_and_each_moves_the_line(tasks: int) -> None:
    seen: list[int] = []

    def worker(task: Task) -> Generator[Step, int, None]:
        while True:
            yield task.run(10)
            seen.append((yield task.fetch_add(task.shared, 1)))
            yield task.end("addition")

    result = answers(python(tasks), worker)
    assert sorted(seen) == list(range(len(seen)))
    assert result.operations == pytest.approx(2e5 / 100, rel=0.05)  # the line moves once for each


def test_an_addition_that_is_not_atomic_loses_some() -> None:
    last: list[int] = []

    def worker(task: Task) -> Generator[Step, int, None]:
        while True:
            value = yield task.load(task.shared)
            yield task.run(50)
            yield task.store(task.shared, value + 1)
            yield task.end("addition")
            last.append(value + 1)

    result = answers(python(4), worker)
    assert max(last) < 0.7 * result.operations


def test_a_sleeper_wakes_in_the_order_of_coming_and_not_before() -> None:
    log: list[tuple[str, int]] = []

    def worker(task: Task) -> Generator[Step, int, None]:
        if task.number:
            yield task.run(1000 * task.number)
            log.append(("slept", (yield task.futex_wait(task.shared, 0))))
            log.append(("woke", task.number))
        else:
            yield task.run(10_000)
            yield task.store(task.shared, 1)
            log.append(("not slept", (yield task.futex_wait(task.shared, 0))))
            log.append(("woken", (yield task.futex_wake(task.shared, 1))))
            yield task.run(10_000)
            log.append(("woken", (yield task.futex_wake(task.shared, 5))))
        yield task.sleep(1e9)

    answers(python(4), worker)
    assert log == [
        ("not slept", 0), ("woken", 1), ("slept", 1), ("woke", 1),
        ("woken", 2), ("slept", 1), ("woke", 2), ("slept", 1), ("woke", 3),
    ]  # fmt: skip


def test_words_on_one_line_slow_each_other_down() -> None:
    """False sharing."""

    def rate(beside: bool) -> int:
        def setup(machine: Machine) -> list[Word]:
            first = machine.new_word()
            return [first, machine.new_word(beside=first if beside else None)]

        def worker(task: Task) -> Generator[Step, int, None]:
            while True:
                yield task.run(10)
                yield task.fetch_add(task.shared[task.number], 1)
                yield task.end("addition")

        return answers(python(2), worker, setup).operations

    assert rate(beside=True) < 0.3 * rate(beside=False)


@pytest.mark.parametrize("cpus", [2, 8])
@pytest.mark.parametrize("preemption", ["voluntary", "full", "host"])
def test_the_futex_mutex_does_the_same_on_both_machines(cpus: int, preemption: str) -> None:
    (_, point, *_) = expand(load("futex-mutex"))
    spec = to_run_spec(point, 0)
    spec |= {"machine": spec["machine"] | {"cpus": cpus}, "warmup_ns": 0.0, "duration_ns": 3e5}
    spec["kernel"]["preemption"] = preemption
    program = load_program(str(paths.SCENARIOS / "futex_mutex.py") + ":worker")
    assert program.setup is not None
    assert assert_same(spec, program.worker, program.setup) > 200


def test_the_futex_mutex_lets_one_in_and_everybody_go_on() -> None:
    for point in expand(load("futex-mutex")):
        spec = to_run_spec(point, 0) | window(3e6)
        program = load_program(str(paths.SCENARIOS / "futex_mutex.py") + ":worker")
        result = answers(spec, program.worker, program.setup)
        assert result.stall is None
        assert min(result.per_task_operations) > 0


def combining(at: int, duration: float = 3e5) -> tuple[Spec, Program]:
    program = load_program(str(paths.SCENARIOS / "combining_lock.py") + ":worker")
    spec = to_run_spec(expand(load("combining-lock"))[at], 0)
    return spec | window(duration), program


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2, 6])
def test_the_combining_lock_does_the_same_on_both_machines(at: int) -> None:
    spec, program = combining(at, 5e4)
    assert program.setup is not None
    assert assert_same(spec, program.worker, program.setup) > 200


def test_the_combining_lock_lets_one_in_serves_all_and_spares_the_lines() -> None:
    def done(at: int) -> tuple[int, ...]:
        spec, program = combining(at)
        result = answers(spec, program.worker, program.setup)
        assert result.stall is None
        return result.per_task_operations

    queue, one_for_all = done(3), done(7)
    assert min(min(queue), min(one_for_all)) > 0
    assert sum(one_for_all) > 1.5 * sum(queue)


def adds(task: Task) -> Generator[Step, int, None]:
    while True:
        yield task.fetch_add(task.shared, 1)
        yield task.end("addition")


def exchanges(task: Task) -> Generator[Step, int, None]:
    while True:
        old = yield task.load(task.shared)
        while (found := (yield task.compare_exchange(task.shared, old, old + 1))) != old:
            old = found
        yield task.end("addition")


def test_an_exchange_that_failed_is_tried_again_before_the_line_is_gone() -> None:
    """So the second attempt succeeds: a load and an exchange are two transfers, and not one for each other task."""
    added, exchanged = (answers(python(8), worker).operations for worker in (adds, exchanges))
    assert 0.4 * added < exchanged < added
