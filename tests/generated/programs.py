"""Programs in Python, as nested tuples that say what each task does."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from engine import Spec, lock_cycle
from generated.kernels import ALONE, MODAL, SPINNING, kernel_spec, kernels
from generated.machines import machines, times
from simfs._engine import Completion, Device, Line, Lock, Machine, Step, Task

Script = tuple[Any, ...]
"""What a task does, as nested tuples: an action's name and what it needs."""


@dataclass
class Shared:
    """What the tasks of a generated program share."""

    locks: list[Lock]
    lines: list[Line]
    disk: Device
    door: Completion


@dataclass(frozen=True)
class GeneratedProgram:
    """A python workload in which task i goes round script i modulo their number for ever."""

    spec: Spec
    kinds: tuple[str, ...]
    scripts: tuple[Script, ...]

    def setup(self, machine: Machine) -> Shared:
        return Shared(
            locks=[machine.new_lock(f"lock {number}") for number in range(len(self.kinds))],
            lines=[machine.new_line(span) for span in (1, 3)],
            disk=machine.new_device(2),
            door=machine.new_completion(),
        )

    def worker(self, task: Task) -> Generator[Step, Any, None]:
        while True:
            yield task.run(50)  # so that time goes on
            yield from perform(task, self.scripts[task.number % len(self.scripts)])


def perform(task: Task, script: Script) -> Generator[Step, Any, None]:
    """Do what a script says."""
    shared: Shared = task.shared
    for what, *given in script:
        match what:
            case "run":
                yield task.run(*given)
            case "draw":
                yield task.run(task.exponential(*given), "system")
            case "sleep":
                yield task.sleep(*given)
            case "at":
                yield task.at(*given)
            case "use":
                yield task.use_memory(*given)
            case "code":
                yield task.use_code(*given)
            case "touch":
                number, access = given
                yield task.touch(shared.lines[number], access)
            case "operation":
                yield task.begin()
                yield from perform(task, *given)
                yield task.end("operation")
            case "hold":
                number, side, blocking, body = given
                yield task.lock(shared.locks[number], side)
                yield from hold(task, shared.locks[number], side, blocking, body)
            case "try":
                number, side, blocking, body = given
                attempt = task.try_lock if len(body) % 2 else task.try_lock_spinning
                if (yield attempt(shared.locks[number], side)):
                    yield from hold(task, shared.locks[number], side, blocking, body)
            case _:
                yield from meet(task, what, given)


def meet(task: Task, what: str, given: Sequence[Any]) -> Generator[Step, Any, None]:
    """Do what a script says about the disk and other tasks."""
    shared: Shared = task.shared
    match what:
        case "write":
            number, body, service = given
            yield task.lock(shared.locks[number])
            yield from perform(task, body)
            yield task.submit(shared.disk, service, release=shared.locks[number])
        case "read":
            done = task.new_completion()
            yield task.submit(shared.disk, *given, complete=done)
            yield task.wait_for(done)
            task.drop_completion(done)
        case "open":
            yield task.complete(shared.door)
        case "pass":
            yield task.wait_for(shared.door)
        case "child":
            yield task.spawn(child, task.id, *given, background=True)
            yield task.park()
        case "tick":
            yield task.wake_at_tick(task.id, *given)
            yield task.park()


def hold(task: Task, lock: Lock, side: str, blocking: bool, body: Script) -> Generator[Step, Any, None]:
    """Do something under a lock, in a mode in which that may be done, and release it in any mode."""
    if blocking:
        yield task.convert(lock, "blocking", side)
    yield from perform(task, body)
    if blocking and len(body) % 2:
        yield task.convert(lock, "spinning", side)
    yield task.unlock(lock, side)


def child(task: Task, parent: int, script: Script) -> Generator[Step, Any, None]:
    """A task that does something and wakes the one that waits for it."""
    yield from perform(task, script)
    yield task.wake(parent)


def scripts(
    kinds: tuple[str, ...], free: tuple[int, ...], *, may_sleep: bool, depth: int
) -> st.SearchStrategy[Script]:
    """Scripts that use the `free` locks, in their order or (seldom) in any, which may deadlock."""
    simple: list[st.SearchStrategy[Script]] = [
        st.tuples(st.just("run"), times, st.sampled_from(["user", "system"])),
        st.tuples(st.just("draw"), times),
        st.tuples(st.just("at"), st.sampled_from(["here", "there"])),
        st.tuples(st.just("use"), st.integers(0, 1 << 23)),
        st.tuples(st.just("code"), st.integers(0, 1 << 20)),
        st.tuples(st.just("touch"), st.integers(0, 1), st.sampled_from(["read", "write"])),
    ]
    if may_sleep:
        simple += [
            st.tuples(st.just("sleep"), times),
            st.tuples(st.just("read"), times),
            st.tuples(st.just("tick"), st.integers(0, 2)),
            st.sampled_from([("open",), ("open",), ("pass",)]),
        ]
    usable = [lock for lock in free if may_sleep or kinds[lock] in SPINNING + MODAL]
    nested = [_under(kinds, free, lock, may_sleep=may_sleep, depth=depth) for lock in usable if depth]
    if depth and may_sleep:
        body = scripts(kinds, free, may_sleep=True, depth=depth - 1)
        nested += [st.tuples(st.just("operation"), body)]
        nested += [st.tuples(st.just("child"), scripts(kinds, (), may_sleep=True, depth=0))]
        nested += [
            st.tuples(st.just("write"), st.just(lock), scripts(kinds, (), may_sleep=True, depth=0), times)
            for lock in usable
            if kinds[lock] == "semaphore"
        ]
    return st.lists(st.one_of(*simple, *nested, *nested), min_size=1, max_size=4).map(tuple)


def _under(
    kinds: tuple[str, ...], free: tuple[int, ...], lock: int, *, may_sleep: bool, depth: int
) -> st.SearchStrategy[Script]:
    """Taking a lock and doing something under it."""
    later = tuple(other for other in free if other > lock)
    others = tuple(other for other in free if other != lock)
    what, side = st.sampled_from(["hold", "hold", "try"]), st.sampled_from(["read", "write"])

    def holding(free: tuple[int, ...], *, blocking: bool) -> st.SearchStrategy[Script]:
        sleeps = may_sleep and kinds[lock] not in SPINNING and (blocking or kinds[lock] not in MODAL)
        body = scripts(kinds, free, may_sleep=sleeps, depth=depth - 1)
        return st.tuples(what, st.just(lock), side, st.just(blocking), body)

    return st.one_of(
        holding(later, blocking=False), holding(later, blocking=True), holding(others, blocking=True)
    )


@st.composite
def programs(draw: st.DrawFn) -> GeneratedProgram:
    kinds = tuple(draw(st.lists(st.sampled_from(ALONE), min_size=1, max_size=3)))
    each = scripts(kinds, tuple(range(len(kinds))), may_sleep=True, depth=2)
    locks = {f"lock {number}": kind for number, kind in enumerate(kinds)}
    machine = draw(machines())
    spec = lock_cycle(tasks=1) | {
        "seed": draw(st.integers(0, 2**32)),
        "warmup_ns": draw(times),
        "duration_ns": 1e5,
        "machine": machine,
        "kernel": kernel_spec(draw(kernels()), machine["cpus"]) | {"locks": locks},
        "workload": {"kind": "python", "tasks": draw(st.integers(1, 8)), "params": {}}
        | {"nice": draw(st.integers(-20, 19))},
    }
    return GeneratedProgram(spec, kinds, tuple(draw(st.lists(each, min_size=1, max_size=3))))
