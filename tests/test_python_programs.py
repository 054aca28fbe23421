"""Programs written in Python: generators that yield steps, on the native machine and on one written in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest
from tiny_machine import TinyMachine

from engine import Spec, lock_cycle, the_lock
from simfs import _engine
from simfs import machine as reference
from simfs._engine import Lock, Machine, ProgramError, Step, Task
from simfs.results.run_result import RunResult

Program = Generator[Step, Any, None]

DRAWN: Any = {
    "think_ns": 1000, "think_distribution": "exponential", "hold_ns": 50, "hold_distribution": "exponential",
}  # fmt: skip

COSTS = {"line_hit": 2, "line_llc": 23, "line_socket": 49, "context_switch": 1500, "wakeup": 1000}


def spec(lock: str = "semaphore", tasks: int = 1, **changes: Any) -> Spec:  # noqa: ANN401
    made = lock_cycle(lock, tasks, costs=COSTS) | changes
    return made | {"workload": {"kind": "python", "tasks": tasks, "params": {"hold": 50}}}


def simulate(
    worker: Callable[..., Program],
    setup: Callable[[Machine], object] | None = None,
    given: Spec | None = None,
) -> RunResult:
    result = RunResult.model_validate_json(_engine.run(json.dumps(given or spec()), worker, setup))
    assert [law for law in result.laws if not law.ok] == []
    return result


def one_lock(machine: Machine) -> Lock:
    return machine.new_lock("lock")


def cycle(task: Task) -> Program:
    lock = task.shared
    think = task.run(task.exponential(1000))
    begin, take = task.begin(), task.lock(lock)
    hold = task.run(task.exponential(50), "system")
    give, end = task.unlock(lock), task.end("cycle")
    while True:
        yield think
        yield begin
        yield take
        yield hold
        yield give
        yield end


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
    assert together.latency["touch"].mean_ns > 2 * alone.latency["touch"].mean_ns


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
    yield task.touch(task.shared)


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
