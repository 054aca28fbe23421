"""Mistakes in programs written in Python are told where they were made."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from python_programs import Program, cycle, simulate, spec
from tiny_machine import TinyMachine

from engine import lock_cycle, one_lock
from simfs import _engine
from simfs._engine import Machine, ProgramError, Step, Task


def raising(task: Task) -> Program:
    yield task.run(1000)
    yield deeper(task)


def deeper(task: Task) -> Step:
    return task.run(1 / (task.number * 0))


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def test_an_error_in_a_program_is_told_with_its_last_line() -> None:
    with pytest.raises(ProgramError) as caught:
        simulate(raising)
    place = f"{__file__}:{line_of('1 / (task.number')}: in deeper"
    assert str(caught.value) == f"{place}: ZeroDivisionError: division by zero"
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_error_in_a_program_comes_out_of_a_machine_written_in_python_too() -> None:
    machine = TinyMachine(spec(), raising)
    with pytest.raises(ProgramError, match="in deeper: ZeroDivisionError"):
        machine.run(10**9)


def wrong_side(task: Task) -> Program:
    yield task.lock(task.shared, "both")


def wrong_time(task: Task) -> Program:
    yield task.run(-5)


def wrong_cpu(task: Task) -> Program:
    yield task.spawn(cycle, pinned=17)


def wrong_role(task: Task) -> Program:
    task.new_lock("door")
    yield task.park()


def wrong_yield(task: Task) -> Program:
    yield 5  # type: ignore[misc]


def wrong_object(task: Task) -> Program:
    yield task.touch(task)  # type: ignore[arg-type]


def wrong_then(task: Task) -> Program:
    yield task.submit(task.new_device(), 5)


def wrong_task(task: Task) -> Program:
    yield task.wake(99)


def wrong_release(task: Task) -> Program:
    mutex = task.new_lock("mutex", role="lock")
    yield task.submit(task.new_device(), 5, release=mutex)


MISTAKES: list[tuple[Callable[[Task], Program], str]] = [
    (wrong_side, "side: must be 'read' or 'write', not 'both'"),
    (wrong_time, "time: must be between 0 and 1e15, not -5"),
    (wrong_cpu, "there is no CPU 17; the machine has 1"),
    (wrong_role, "no lock kind is given for the role 'door'; roles are lock"),
    (wrong_yield, "yields 5, which is not a step"),
    (wrong_object, "TypeError"),
    (wrong_task, "there is no task 99"),
    (wrong_release, "only a semaphore can be released by a device"),
    (wrong_then, "give either complete= or release="),
]


@pytest.mark.parametrize(("program", "message"), MISTAKES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_mistake_is_told_where_it_was_made(program: Callable[[Task], Program], message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        simulate(program, one_lock, spec("mutex"))
    assert f"{__file__}:" in str(caught.value)
    assert f"in {program.__name__}: " in str(caught.value)
    assert message in str(caught.value)


def test_a_function_that_yields_nothing_is_not_a_program() -> None:
    with pytest.raises(ProgramError, match="is not a generator function"):
        simulate(deeper_than_allowed)


def deeper_than_allowed(task: Task) -> Program:
    return None  # type: ignore[return-value]


def test_an_error_in_setup_is_told_with_its_line() -> None:
    with pytest.raises(ProgramError, match="in broken: KeyError"):
        simulate(cycle, broken)


def broken(machine: Machine) -> object:
    return machine.params["no such parameter"]


def test_an_interrupt_stays_an_interrupt() -> None:
    def worker(task: Task) -> Program:
        yield task.run(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(worker)


def test_a_python_workload_without_its_program_is_refused() -> None:
    with pytest.raises(ValueError, match="runs only with its program"):
        _engine.run(json.dumps(spec()))


def test_a_program_for_another_workload_is_refused() -> None:
    with pytest.raises(ValueError, match="only a python workload"):
        _engine.run(json.dumps(lock_cycle("mutex")), cycle, one_lock)


def test_a_task_kept_beyond_its_run_does_no_harm() -> None:
    kept: list[Task] = []

    def worker(task: Task) -> Program:
        kept.append(task)
        yield task.run(1)

    simulate(worker)
    assert kept[0].number == 0
    assert kept[0].now > 0
