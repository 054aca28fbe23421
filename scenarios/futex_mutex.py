"""A mutex of user space on a futex, written with shared words. `futex-mutex.yaml` runs it beside the kernel's locks.

The mutex is that of U. Drepper, Futexes Are Tricky (2011), section 6: 0 is free, 1 held, 2 held with waiters, perhaps.
"""

from collections.abc import Generator
from typing import NamedTuple

from simfs._engine import Machine, Step, Task, Word


class Shared(NamedTuple):
    """What all tasks share; they find it as `task.shared`."""

    state: Word
    inside: Word
    """How many are inside: never two."""


def setup(machine: Machine) -> Shared:
    """Make the mutex."""
    return Shared(machine.new_word(), machine.new_word())


def acquire(task: Task, state: Word) -> Generator[Step, int, None]:
    """One exchange where it is free, else mark that somebody waits, and sleep until it looks free."""
    found = yield task.compare_exchange(state, 0, 1)
    while found:
        if found == 2 or (yield task.compare_exchange(state, 1, 2)):
            yield task.futex_wait(state, 2)
        found = yield task.compare_exchange(state, 0, 2)


def release(task: Task, state: Word) -> Generator[Step, int, None]:
    """One atomic subtraction; a system call where somebody may wait."""
    if (yield task.fetch_add(state, -1)) != 1:
        yield task.store(state, 0)
        yield task.futex_wake(state, 1)


def worker(task: Task) -> Generator[Step, int, None]:
    """Think, take the mutex, hold it, release it."""
    shared, params = task.shared, task.params
    think = task.run(task.exponential(params["think"]))
    hold = task.run(task.exponential(params["hold"]))
    while True:
        yield think
        yield task.begin()
        yield from acquire(task, shared.state)
        if (yield task.fetch_add(shared.inside, 1)):
            yield task.give_up("two are inside")
        yield hold
        yield task.fetch_add(shared.inside, -1)
        yield from release(task, shared.state)
        yield task.end("cycle")
