"""Threads that look for futexes in a hash table, as `perf bench futex hash` lets them (kernel/futex/core.c since 6.17).

A FUTEX_WAIT whose value does not match looks its bucket up, counts itself as a waiter, takes the bucket's lock, reads
the value and gives everything back. Lock, count and, where the process has a table of its own, a pointer to that table
lie in one line; the pointer was read when the bucket was looked up and when it was given back. The counts of users of
the table are those of a CPU. Two threads seldom want one bucket at a time, so its spinlock is a word that is exchanged.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from simfs._engine import Machine, Step, Task, Word


class Bucket(NamedTuple):
    """One line of the table."""

    waiters: Word
    lock: Word
    table: Word


def setup(machine: Machine) -> list[Bucket]:
    """Make the hash table."""
    return [bucket(machine) for _ in range(int(machine.params["buckets"]))]


def bucket(machine: Machine) -> Bucket:
    """Make one bucket."""
    waiters = machine.new_word()
    return Bucket(waiters, machine.new_word(beside=waiters), machine.new_word(beside=waiters))


def worker(task: Task) -> Generator[Step, int, None]:
    """Wait for one futex after the other, none of which has the value that is expected."""
    table, params, stream = task.shared, task.params, task.stream(f"futexes of {task.number}")
    begin = task.steps(task.begin(), task.run(task.gamma(params["call"], 0.05), "system"))
    value, again, end = (
        task.run(params["value"], "system"),
        task.run(params["value"], "system"),
        task.end("wait"),
    )
    reads = bool(params["reads"])
    while True:
        bucket = table[stream.next_u64() % len(table)]
        yield begin
        if reads:
            yield task.load(bucket.table)
        yield task.fetch_add(bucket.waiters, 1)
        while (yield task.exchange(bucket.lock, 1)):
            yield again
        yield value
        yield task.store(bucket.lock, 0)
        yield task.fetch_add(bucket.waiters, -1)
        if reads:
            yield task.load(bucket.table)
        yield end
