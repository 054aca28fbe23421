"""Threads of one process fault pages in under `mmap_lock`, which each takes by `down_read_trylock`."""

from __future__ import annotations

from collections.abc import Generator

from simfs._engine import Machine, Step, Task, Word

READER = 256  # RWSEM_READER_BIAS


def setup(machine: Machine) -> Word:
    """Make the lock's count."""
    return machine.new_word(0)


def assumes_unlocked(task: Task) -> Generator[Step, int, None]:
    """Exchange zero first, and then what was found (5.2 to 5.16)."""
    entry, fault, count = task.run(task.params["entry"]), task.run(task.params["fault"]), task.shared
    begin = task.steps(task.begin(), entry)
    end = task.steps(fault, task.fetch_add(count, -READER), task.end("fault"))
    while True:
        yield begin
        old = 0
        while (found := (yield task.compare_exchange(count, old, old + READER))) != old:
            old = found
        yield end


def loads_first(task: Task) -> Generator[Step, int, None]:
    """Load the count, and exchange what was found (before 5.2 and since 5.17)."""
    entry, fault, count = task.run(task.params["entry"]), task.run(task.params["fault"]), task.shared
    begin = task.steps(task.begin(), entry, task.load(count))
    end = task.steps(fault, task.fetch_add(count, -READER), task.end("fault"))
    while True:
        old = yield begin
        while (found := (yield task.compare_exchange(count, old, old + READER))) != old:
            old = found
        yield end
