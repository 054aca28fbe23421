"""Programs written in Python: generators that yield steps, on the native machine and on one written in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from python_programs import COSTS, DRAWN, Program, cycle, simulate, spec
from tiny_machine import TinyMachine

from engine import lock_cycle, one_lock, the_lock
from simfs import _engine
from simfs import machine as reference
from simfs._engine import Line, Lock, Machine, Task


def cycle_in_one(task: Task) -> Program:
    lock = task.shared
    hold = task.run(task.exponential(50), "system")
    section = task.steps(task.lock(lock), hold, task.unlock(lock))
    whole = task.steps(task.run(task.exponential(1000)), task.begin(), section, task.end("cycle"))
    while True:
        yield whole


@pytest.mark.parametrize("program", [cycle, cycle_in_one])
@pytest.mark.parametrize("lock", ["semaphore", "mutex", "rwsem", "qspinlock"])
@pytest.mark.parametrize("cpus", [2, 6])
def test_the_lock_cycle_in_python_is_the_built_in_one_event_for_event(
    program: Callable[[Task], Program], lock: str, cpus: int
) -> None:
    built_in = lock_cycle(lock, 6, cpus, costs=COSTS, **DRAWN)
    in_python = built_in | {"workload": {"kind": "python", "tasks": 6}}
    expected = _engine.trace(json.dumps(built_in))
    assert len(expected[1]) > 1000
    assert _engine.trace(json.dumps(in_python), program, one_lock) == expected


def test_a_program_runs_on_a_machine_written_in_python_as_the_built_in_one_does() -> None:
    built_in = TinyMachine(lock_cycle("mutex", 2, **DRAWN))
    in_python = TinyMachine(spec("mutex", 2), cycle, one_lock)
    built_in.run(10**8)
    in_python.run(10**8)
    assert in_python.steps == built_in.steps
    assert in_python.operations == built_in.operations


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["semaphore", "mutex", "rwsem", "qspinlock"])
def test_both_machines_run_a_python_program_alike(lock: str) -> None:
    busy = json.dumps(lock_cycle(lock, 4, 2, costs=COSTS, **DRAWN) | {"workload": spec(tasks=4)["workload"]})
    events = _engine.trace(busy, everything, two_locks)[1]
    assert len(events) > 500
    assert reference.trace(busy, everything, two_locks)[1] == events


def two_locks(machine: Machine) -> tuple[Lock, Lock]:
    return machine.new_lock("lock"), machine.new_lock("lock")


def everything(task: Task) -> Program:
    """Whatever a program can do, on two locks and a line."""
    lock, other = task.shared
    line, disk, done = task.new_line(2), task.new_device(), task.new_completion()
    while True:
        yield task.begin()
        yield task.run(task.lognormal(800, 0.5))
        yield task.touch(line)
        yield task.lock(lock)
        yield task.touch(lock, "read")
        if (yield task.try_lock(other)):
            yield task.run(task.exponential(100), "system")
            yield task.unlock(other)
        yield task.unlock(lock)
        yield task.submit(disk, task.exponential(500), complete=done)
        yield task.wait_for(done)
        yield task.end("round")
        waker = yield task.spawn(wake, task.id, background=True)
        yield task.park()
        yield task.sleep(100 + waker)


def wake(task: Task, other: int) -> Program:
    yield task.run(task.exponential(200))
    yield task.wake(other)


def test_a_task_knows_itself_and_its_run() -> None:
    seen: list[tuple[Any, ...]] = []

    def worker(task: Task) -> Program:
        yield task.run(1000)
        seen.append((task.number, task.tasks, task.cpus, task.now, task.params, task.shared))

    simulate(worker, lambda machine: "what all share", spec(tasks=2))
    assert [entry[:3] for entry in seen] == [(0, 2, 2), (1, 2, 2)]
    assert all(entry[3] >= 1000 for entry in seen)
    assert seen[0][4:] == ({"hold": 50.0}, "what all share")


def test_a_failed_trylock_is_told_as_the_value_of_the_yield() -> None:
    got: list[bool] = []

    def worker(task: Task) -> Program:
        if task.number == 0:
            yield task.lock(task.shared)
            yield task.run(10_000)
            yield task.unlock(task.shared)
            return
        yield task.sleep(8_000)
        got.append((yield task.try_lock(task.shared)))
        yield task.sleep(20_000)
        got.append((yield task.try_lock(task.shared)))
        yield task.unlock(task.shared)

    simulate(worker, one_lock, spec("mutex", 2))
    assert got == [False, True]


def test_readers_hold_together_and_a_writer_alone() -> None:
    def worker(task: Task) -> Program:
        side = "write" if task.number == 2 else "read"
        yield task.lock(task.shared, side)
        yield task.run(100_000)
        yield task.unlock(task.shared, side)
        yield task.end("held")

    result = simulate(worker, one_lock, spec("rwsem", 3))
    lock = the_lock(result)
    assert (result.operations, lock.acquired, lock.contended) == (3, 3, 1)


def test_children_meet_their_parent_at_completions() -> None:
    order: list[str] = []

    def child(task: Task, done: _engine.Completion, what: str) -> Program:
        yield task.run(5_000)
        order.append(f"{what} of task {task.number}")
        yield task.complete(done)

    def worker(task: Task) -> Program:
        done = task.new_completion()
        yield task.spawn(child, done, "child", background=True)
        yield task.wait_for(done)
        task.drop_completion(done)
        order.append("parent")
        yield task.end("family")

    assert simulate(worker).operations == 1
    assert order == ["child of task 0", "parent"]


def test_a_child_draws_from_a_stream_of_its_own() -> None:
    times: list[float] = []

    def child(task: Task) -> Program:
        began = task.now
        yield task.run(task.exponential(1000))
        yield task.run(0)
        times.append(task.now - began)

    def worker(task: Task) -> Program:
        yield task.spawn(child)
        yield task.spawn(child)

    free = lock_cycle("mutex", cpus=3)
    simulate(worker, None, free | {"workload": {"kind": "python", "tasks": 1}})
    drawn = [_engine.Stream(1, 0, f"task 0.{n}").exponential(1_000_000) / 1000 for n in (0, 1)]
    assert sorted(times) == pytest.approx(sorted(drawn))


def test_a_parked_task_sleeps_until_it_is_woken() -> None:
    woken: list[float] = []

    def sleeper(task: Task) -> Program:
        yield task.park()
        woken.append(task.now)

    def worker(task: Task) -> Program:
        other = yield task.spawn(sleeper)
        yield task.run(50_000)
        yield task.wake(other)

    simulate(worker, None, spec() | {"machine": spec(tasks=2)["machine"]})
    assert len(woken) == 1
    assert woken[0] > 50_000


def test_a_timer_wakes_at_the_end_of_a_tick() -> None:
    woken: list[float] = []

    def worker(task: Task) -> Program:
        yield task.wake_at_tick(task.id, 1)
        yield task.park()
        woken.append(task.now)

    simulate(worker, None, spec() | {"duration_ns": 2e7})
    assert len(woken) == 1
    assert woken[0] == pytest.approx(8e6, rel=0.01)


def test_a_device_completes_what_waits_for_it() -> None:
    def worker(task: Task) -> Program:
        done = task.new_completion()
        write = task.submit(task.shared, 10_000, complete=done)
        yield task.begin()
        yield write
        yield task.wait_for(done)
        yield task.end("write")

    result = simulate(worker, lambda machine: machine.new_device())
    assert result.latency["write"].mean_ns >= 10_000


def test_lines_that_others_write_cost_a_transfer() -> None:
    def worker(task: Task) -> Program:
        touch, begin, work, end = task.touch(task.shared), task.begin(), task.run(10), task.end("touch")
        while True:
            yield begin
            yield touch
            yield work
            yield end

    alone = simulate(worker, lambda machine: machine.new_line(), spec(tasks=1))
    together = simulate(worker, lambda machine: machine.new_line(), spec(tasks=2))
    # while a store waits for the line, its task goes on with what it has stored
    assert together.latency["touch"].mean_ns > 1.5 * alone.latency["touch"].mean_ns


def test_all_time_that_is_no_work_is_told_to_be_a_wait_for_the_line() -> None:
    def worker(task: Task) -> Program:
        step = task.steps(task.begin(), task.fetch_add(task.shared, 1), task.run(10), task.end("add"))
        while True:
            yield step

    def waits(tasks: int) -> list[float]:
        given = spec(tasks=tasks)
        given["kernel"]["locks"] |= {"futex.bucket": "qspinlock"}
        result = simulate(worker, lambda machine: machine.new_word(), given)
        assert {line.name for line in result.lines} <= {"data"}
        working = 10 * result.operations / (tasks * result.window_ns)
        return [line.waited_ns / (tasks * result.window_ns) + working for line in result.lines]

    assert waits(1) == []
    assert waits(4) == [pytest.approx(1, abs=0.01)]


def test_what_lies_beside_a_lock_is_in_the_line_of_its_word() -> None:
    def take_ns(*, beside: bool) -> float:
        def worker(task: Task) -> Program:
            lock, line = task.shared
            touch, work = task.touch(lock if beside else line), task.run(10)
            take = task.steps(task.begin(), task.lock(lock), task.unlock(lock), task.end("take"))
            while True:
                yield take if task.number else touch
                yield work

        def setup(machine: Machine) -> tuple[Lock, Line]:
            return machine.new_lock("lock"), machine.new_line()

        return simulate(worker, setup, spec("ticket", 2)).latency["take"].mean_ns

    assert take_ns(beside=True) > 2 * take_ns(beside=False)


def test_waits_are_told_by_site_and_unfinished_runs_by_their_reason() -> None:
    def worker(task: Task) -> Program:
        yield task.at("the door")
        yield task.lock(task.shared)
        yield task.run(5_000)
        yield task.unlock(task.shared)
        yield task.give_up("had enough")

    result = simulate(worker, one_lock, spec("mutex", 2))
    assert result.stall is not None
    assert "had enough" in result.stall.cycle[0]
    assert {site.site for site in the_lock(result).sites} <= {"the door"}


def test_a_program_may_end() -> None:
    def worker(task: Task) -> Program:
        yield task.end("only")

    assert simulate(worker, None, spec(tasks=3)).operations == 3


# ---- in a scenario --------------------------------------------------------------------------------------------------


def test_interrupts_are_served_while_a_task_spins_and_not_when_it_gets_the_lock() -> None:
    """The device is done after 10 us, its interrupt takes 5 us, and the lock is free after 100 us."""

    def setup(machine: Machine) -> tuple[Lock, Any]:
        return machine.new_lock("lock"), machine.new_device(interrupt=5000)

    def worker(task: Task) -> Program:
        lock, device = task.shared
        if task.number == 0:
            yield task.lock(lock)
            yield task.run(100_000, "system")
            yield task.unlock(lock)
            return
        yield task.run(1000)
        yield task.submit(device, 10_000, complete=task.new_completion())
        yield task.begin()
        yield task.lock(lock)
        yield task.end("taken")
        yield task.unlock(lock)

    result = simulate(worker, setup, spec("qspinlock", 2, warmup_ns=0, duration_ns=2e5))
    assert result.latency["taken"].max_ns == pytest.approx(99_000, rel=0.005)
    assert result.cpu_ns.irq == 5000 + COSTS["wakeup"]
