"""Threads write to eventfds, and one thread waits for all of them by epoll, as R. Penyaev's stress-epoll.c does.

A write adds to its eventfd's count under the lock of its wait queue and calls `ep_poll_callback` (fs/eventpoll.c of 5.0
and 5.1): it takes the epoll instance's lock, sees that the file is on the ready list, and gives the lock back. The
poller takes that list under the lock, asks each file, puts back those that are still ready (they are, as it waits for
levels), and then reads each. Left out: files that join the list, where writers change neighbours, as they stay on it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from simfs._engine import Lock, Machine, Step, Task, Word


class Shared(NamedTuple):
    """What all threads share."""

    epoll: Lock
    queues: list[Lock]
    """The lock of each eventfd's wait queue."""
    counts: list[Word]


def setup(machine: Machine) -> Shared:
    """Make one epoll instance and an eventfd for each writer."""
    writers = range(machine.tasks)
    return Shared(
        machine.new_lock("epoll"),
        [machine.new_lock("eventfd", "wait_queue") for _ in writers],
        [machine.new_word() for _ in writers],
    )


def poller(task: Task) -> Generator[Step, int, None]:
    """Wait for events and read them, for ever."""
    shared, call = task.shared, task.run(task.params["call"], "system")
    take = task.steps(task.lock(shared.epoll), task.unlock(shared.epoll))
    scan = [call, take, *(task.load(count) for count in shared.counts), take]
    reads = [
        task.steps(call, task.lock(queue), task.store(count, 0), task.unlock(queue))
        for queue, count in zip(shared.queues, shared.counts, strict=True)
    ]
    round_of_events = task.steps(*scan, *reads)
    while True:
        yield round_of_events


def writer(task: Task) -> Generator[Step, int, None]:
    """Write events for ever."""
    shared, params = task.shared, task.params
    if task.number == 0:
        yield task.spawn(poller)
    queue, count = shared.queues[task.number], shared.counts[task.number]
    side = "read" if params["shared"] else "write"
    callback = task.steps(
        task.lock(shared.epoll, side),
        task.run(params["callback"], "system"),
        task.unlock(shared.epoll, side),
    )
    call = task.run(task.gamma(params["call"], 0.05), "system")
    event = task.steps(
        task.begin(),
        call,
        task.lock(queue),
        task.store(count, 1),
        callback,
        task.unlock(queue),
        task.end("event"),
    )
    while True:
        yield event
