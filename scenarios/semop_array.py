"""Threads that change semaphores of one array of System V, each its own (ipc/sem.c and ipc/util.c before Linux 3.10).

A semop takes the array's lock when it has found the array (`ipc_lock`), and all else is done under it. The lock is the
first word of `struct sem_array` (in `struct kern_ipc_perm`). In its line lie what says whether the array is still there
and is the one meant (`deleted`, `seq`, which `ipc_lock` and `ipc_checkid` read), and owner and mode (`ipcperms`). So
whoever holds the lock reads them behind all who poll it. The time of the last operation (`sem_otime`) lies there, too;
it is written just before the release, which is the same transfer. A semaphore has 24 bytes (`struct sem`), so that
neighbours meet in its line. Where in a hold the accesses come is not told: they are a third of it apart.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from simfs._engine import Line, Lock, Machine, Step, Task

SEMAPHORE, LINE = 24, 64  # bytes


class Array(NamedTuple):
    """What all threads share."""

    lock: Lock
    semaphores: list[Line]


def setup(machine: Machine) -> Array:
    """Make an array with a semaphore for each thread."""
    return Array(
        machine.new_lock("array"), [machine.new_line() for _ in range(line_of(machine.tasks - 1) + 1)]
    )


def line_of(semaphore: int) -> int:
    """The line in which a semaphore begins."""
    return semaphore * SEMAPHORE // LINE


def worker(task: Task) -> Generator[Step, int, None]:
    """Change one semaphore, for ever."""
    array, params = task.shared, task.params
    third = task.run(task.exponential(params["hold"] / 3), "system")
    semop = task.steps(
        task.begin(),
        task.run(task.exponential(params["call"]), "system"),
        task.lock(array.lock),
        task.touch(array.lock, "read"),  # deleted, seq
        third,
        task.touch(array.lock, "read"),  # ipcperms
        third,
        task.touch(array.semaphores[line_of(task.number)]),
        third,
        task.unlock(array.lock),
        task.end("semop"),
    )
    while True:
        yield semop
