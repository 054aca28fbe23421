"""Threads that take one lock for reading or writing as fast as they can, as folly's `SharedMutexTest.cpp` lets them.

What is protected is a number in the line of the lock, so a hold costs nothing more. Below 1,000 attempts a thread that
waits for folly's `RWSpinLock` tries again at once, and does not pause.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from simfs._engine import Lock, Machine, Step, Task, Word

WRITER, READER = 1, 4
"""The bits of `RWSpinLock`: a writer, and what each reader adds."""


class Shared(NamedTuple):
    """What all threads share; they find it as `task.shared`."""

    word: Word
    futex: Lock
    slots: list[Word]
    """A slot for each thread, in a line of its own: the deferred readers of `SharedMutex`."""


def setup(machine: Machine) -> Shared:
    """Make one lock of each design."""
    return Shared(
        machine.new_word(), machine.new_lock("futex"), [machine.new_word() for _ in range(machine.tasks)]
    )


def rwspin(task: Task) -> Generator[Step, int, None]:
    """Take a `RWSpinLock`: a reader adds itself, and takes itself away again if a writer is there."""
    word, writes = task.shared.word, task.stream(f"writes of {task.number}")
    begin, end = task.steps(task.begin(), task.run(task.params["loop"])), task.end("hold")
    come, leave = task.fetch_add(word, READER), task.fetch_add(word, -READER)
    take, give = task.compare_exchange(word, 0, WRITER), task.fetch_add(word, -WRITER)
    try_again = task.run(task.params["again"])
    while True:
        yield begin
        if writes.chance(task.params["writes"]):
            while (yield take):
                yield try_again
            yield give
        else:
            while (yield come) & WRITER:
                yield leave
                yield try_again
            yield leave
        yield end


def deferred(task: Task) -> Generator[Step, int, None]:
    """Read under a `SharedMutex`: its word says that readers may use their slots, and nobody writes."""
    word, slot = task.shared.word, task.shared.slots[task.number]
    hold = task.steps(
        task.begin(),
        task.run(task.params["loop"]),
        task.load(word),
        task.compare_exchange(slot, 0, 1),
        task.load(word),
        task.compare_exchange(slot, 1, 0),
        task.end("hold"),
    )
    while True:
        yield hold


def mutex(task: Task) -> Generator[Step, int, None]:
    """Take a mutex of glibc."""
    futex, loop = task.shared.futex, task.run(task.params["loop"])
    hold = task.steps(task.begin(), loop, task.lock(futex), task.unlock(futex), task.end("hold"))
    while True:
        yield hold


def rwlock(task: Task) -> Generator[Step, int, None]:
    """Read under an rwlock of glibc before 2.25: its count of readers is under a lock, at either end."""
    futex, loop = task.shared.futex, task.run(task.params["loop"])
    change = (task.lock(futex), task.unlock(futex))
    hold = task.steps(task.begin(), loop, *change, *change, task.end("hold"))
    while True:
        yield hold
