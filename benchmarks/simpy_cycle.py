"""The lock cycle in SimPy: as its manual teaches it, and tuned by hand. Times are nanoseconds."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Generator, Iterator
from itertools import count
from typing import Any

import simpy

THINK = 1000.0
HOLD = 50.0

Program = Generator[simpy.Event, Any, None]


def idiomatic(tasks: int, cycles: int) -> float:
    """Return the processor time (ns) of `cycles` cycles with `simpy.Resource`."""
    environment = simpy.Environment()
    lock = simpy.Resource(environment, capacity=1)
    enough = environment.event()
    done = count(1)
    draw = random.Random(1).expovariate

    def task() -> Program:
        while True:
            yield environment.timeout(draw(1 / THINK))
            with lock.request() as request:
                yield request
                yield environment.timeout(draw(1 / HOLD))
            if next(done) == cycles:
                enough.succeed()

    for _ in range(tasks):
        environment.process(task())
    return _timed(environment, enough)


def tuned(tasks: int, cycles: int) -> float:
    """Return the processor time (ns) of `cycles` cycles: own queue, an event a wait, times drawn ahead."""
    environment = simpy.Environment()
    enough = environment.event()
    done = count(1)
    waiting: deque[simpy.Event] = deque()
    held = False
    # Drawing is part of the work: the clock covers it, in one go instead of call by call.
    started = time.process_time_ns()
    draw = random.Random(1).expovariate
    think: Iterator[float] = iter([draw(1 / THINK) for _ in range(cycles + tasks)])
    hold: Iterator[float] = iter([draw(1 / HOLD) for _ in range(cycles + tasks)])
    drawing = time.process_time_ns() - started
    timeout, event = environment.timeout, environment.event

    def task() -> Program:
        nonlocal held
        while True:
            yield timeout(next(think))
            if held:
                turn = event()
                waiting.append(turn)
                yield turn
            else:
                held = True
            yield timeout(next(hold))
            if waiting:
                waiting.popleft().succeed()
            else:
                held = False
            if next(done) == cycles:
                enough.succeed()

    for _ in range(tasks):
        environment.process(task())
    return drawing + _timed(environment, enough)


def _timed(environment: simpy.Environment, until: simpy.Event) -> float:
    started = time.process_time_ns()
    environment.run(until=until)
    return time.process_time_ns() - started
