"""Threads take one of many locks at random and add to its number, as Aleksey Kladov's `lock-bench` lets them.

Each lock is alone in its cache line, with its number (`CachePadded`). Rust's `std::sync::Mutex` was a mutex of pthread
then, in memory of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from simfs._engine import Line, Lock, Machine, Step, Stream, Task, Word


class Padded(NamedTuple):
    """A lock: `futex` with the line of its number, or the word of a spinlock."""

    futex: Lock
    number: Line
    word: Word


def setup(machine: Machine) -> Sequence[Padded]:
    """Make the locks."""
    count = int(machine.params["locks"])
    return [Padded(machine.new_lock("futex"), machine.new_line(), machine.new_word()) for _ in range(count)]


def between(task: Task) -> Step:
    """Choose the next lock. The time varies a little: equal ones would keep threads in step for ever."""
    return task.run(task.gamma(task.params["choose"], 0.05))


def std(task: Task) -> Generator[Step, int, None]:
    """`std::sync::Mutex`."""
    stream, choose = task.stream(f"of thread {task.number}"), between(task)
    turns = [
        task.steps(
            choose,
            task.begin(),
            task.lock(padded.futex),
            task.touch(padded.number, "write"),
            task.unlock(padded.futex),
            task.end("turn"),
        )
        for padded in task.shared
    ]
    while True:
        yield turns[stream.next_u64() % len(turns)]


def parts(task: Task) -> tuple[Stream, Step, Step, list[tuple[Step, Step, Step]]]:
    """What a thread of a spinlock draws from, how a turn begins, a pause, and of each lock: take, look, release."""
    begin, end = task.steps(between(task), task.begin()), task.end("turn")
    locks = [
        (
            task.compare_exchange(padded.word, 0, 1),
            task.load(padded.word),
            task.steps(task.store(padded.word, 0), end),
        )
        for padded in task.shared
    ]
    return task.stream(f"of thread {task.number}"), begin, task.run(task.params["pause"]), locks


def spin(task: Task) -> Generator[Step, int, None]:
    """`spin::Mutex` 0.5: exchange, and after one that failed look until it is free, with a pause between."""
    stream, begin, pause, locks = parts(task)
    while True:
        take, look, release = locks[stream.next_u64() % len(locks)]
        yield begin
        while (yield take):
            while (yield look):
                yield pause
        yield release


def amd(task: Task) -> Generator[Step, int, None]:
    """`AmdSpinlock`: look, exchange if it was free, and pause if that failed."""
    stream, begin, pause, locks = parts(task)
    while True:
        take, look, release = locks[stream.next_u64() % len(locks)]
        yield begin
        while (yield look) or (yield take):
            yield pause
        yield release
