"""Threads that add to one counter: by an addition, or by a compare-and-exchange that is tried until it succeeds."""

from __future__ import annotations

from collections.abc import Generator

from simfs._engine import Machine, Step, Task, Word


def setup(machine: Machine) -> Word:
    """Make the counter."""
    return machine.new_word(0)


def adder(task: Task) -> Generator[Step, int, None]:
    """Add one with `lock add`, again and again."""
    loop = task.run(task.params["loop"], "user")
    addition = task.steps(task.begin(), loop, task.fetch_add(task.shared, 1), task.end("addition"))
    while True:
        yield addition


def exchanger(task: Task) -> Generator[Step, int, None]:
    """Load the counter, and exchange it with one more until nobody came between (`atomic_add_unless`)."""
    loop, counter = task.run(task.params["loop"], "user"), task.shared
    load = task.steps(task.begin(), loop, task.load(counter))
    end = task.end("addition")
    while True:
        old = yield load
        while (found := (yield task.compare_exchange(counter, old, old + 1))) != old:
            old = found
        yield end
