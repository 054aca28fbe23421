"""Threads that add to counters, as folly's `CacheLocalityBenchmark.cpp` does."""

from __future__ import annotations

from collections.abc import Generator

from simfs._engine import Machine, Step, Task, Word


def setup(machine: Machine) -> list[Word]:
    """Make as many counters as there are CPUs, each in a line of its own; threads find them as `task.shared`."""
    return [machine.new_word(0) for _ in range(32)]


def worker(task: Task) -> Generator[Step, int, None]:
    """Do some work and add to the counter of this thread's neighbours, again and again."""
    params = task.params
    counter = task.shared[task.cpu // int(params["sharers"])]
    work = task.run(task.gamma(params["work"], 0.05), "user")
    addition = task.steps(task.begin(), work, task.fetch_add(counter, 1), task.end("addition"))
    while True:
        yield addition
