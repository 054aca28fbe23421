"""What the code of contended locks takes, beside the lines that it touches.

The fast paths are not in it: the steps of operations were traced with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from simfs.machine.time import Time, from_ns

Part = TypeVar(
    "Part", "SleepingCode", "RwsemCode", "QspinlockCode", "QrwlockCode", "SemaphoreCode", "FutexCode"
)


@dataclass(frozen=True)
class SleepingCode:
    """The code of mutexes, or of rwsems."""

    spin: Time
    """From the failed attempt to the queue of spinners."""
    attempt: Time
    """From a spinner's look at the lock to its attempt."""
    woken: Time
    """From waking up to the next attempt, or to asking for the wait lock."""
    taken: Time
    """From having the lock after a wait to the program."""
    ask: Time
    """From having failed to asking for the wait lock."""
    queue: Time
    """Under the wait lock, to queue oneself."""
    look: Time
    """Under the wait lock, to see whether the lock is free."""
    take: Time
    """Under the wait lock, to leave the queue with the lock."""
    wake: Time
    """From the release to asking for the wait lock."""
    mark: Time
    """Under the wait lock, to find a writer to wake, or the first of a mutex."""


@dataclass(frozen=True)
class RwsemCode(SleepingCode):
    """What only rwsems have: readers that are granted the lock."""

    grant: Time
    """Under the wait lock, until the first reader has it."""
    undo: Time
    """From there on, if a writer has it meanwhile."""
    count: Time
    """From there on, until all readers that go are in the count."""
    count_reader: Time
    """The same for each reader."""
    collect: Time
    """From there on, until the wait lock is given back."""


@dataclass(frozen=True)
class QspinlockCode:
    """The code of qspinlocks."""

    pend: Time
    """From the failed attempt to the pending bit."""
    queue: Time
    """From the failed attempt to the tail."""
    joined: Time
    """From there to the first look at the word, or at its own node."""
    head: Time
    """From the look at its node that says it is the head to the look at the word."""
    take: Time
    """From the head's look that finds the lock free to taking it."""
    taken: Time
    """From there to the program."""
    pending_take: Time
    """The same of the pending waiter."""
    pending_taken: Time
    """From there to the program."""


@dataclass(frozen=True)
class QrwlockCode:
    """The code of qrwlocks, their wait lock apart."""

    ask: Time
    """From the failed attempt to the one at the wait lock."""
    count: Time
    """From having the wait lock to the reader's addition or the writer's mark."""
    enter: Time
    """From the look that finds the lock free to the writer's exchange, or to the reader's release of the wait lock."""
    leave: Time
    """From a writer's exchange to that."""
    taken: Time
    """From there to the program."""


@dataclass(frozen=True)
class SemaphoreCode:
    """The code of semaphores."""

    queue: Time
    """Under the wait lock, to queue oneself."""
    taken: Time
    """From waking up with it to the program."""
    mark: Time
    """Under the wait lock, to give it to the first."""


@dataclass(frozen=True)
class FutexCode:
    """The code of futexes."""

    queue: Time
    """Under the lock of the hash bucket, to queue oneself."""
    mark: Time
    """Under that lock, to find whom to wake."""


@dataclass(frozen=True)
class LockCode:
    """The times of a machine that takes `machine.costs.instruction` for each of the kernel's `code_*` instructions."""

    mutex: SleepingCode
    rwsem: RwsemCode
    qspinlock: QspinlockCode
    qrwlock: QrwlockCode
    semaphore: SemaphoreCode
    of_futex: FutexCode
    futex: Time
    """From user space to the lock of a futex's hash bucket."""
    futex_return: Time
    """From a futex's system call back to user space."""
    awake: Time
    """Waking a waiter that is awake."""
    before_wait: Time
    """The part of a wake-up before the waker waits for the CPU that the sleeper has not left yet."""
    pthread: Time
    """A call of `pthread_mutex_lock` or `pthread_mutex_unlock`, without its atomic operation and any waiting."""

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> LockCode:
        """Of the kernel and on the machine of a RunSpec."""
        constants, instruction = spec["kernel"]["constants"], spec["machine"]["costs"].get("instruction", 0.0)

        def takes(name: str) -> Time:
            return from_ns(constants[f"code_{name}"] * instruction)

        def part(of: type[Part], lock: str) -> Part:
            return of(**{field.name: takes(f"{lock}_{field.name}") for field in fields(of)})

        return cls(
            mutex=part(SleepingCode, "mutex"),
            rwsem=part(RwsemCode, "rwsem"),
            qspinlock=part(QspinlockCode, "qspinlock"),
            qrwlock=part(QrwlockCode, "qrwlock"),
            semaphore=part(SemaphoreCode, "semaphore"),
            of_futex=part(FutexCode, "futex"),
            futex=takes("futex"),
            futex_return=takes("futex_return"),
            awake=takes("wake_awake"),
            before_wait=takes("wake_before_wait"),
            pthread=takes("pthread"),
        )
