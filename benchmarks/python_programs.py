"""Processor time per lock cycle of programs written in Python on the native engine, beside SimPy.

24 tasks think (exponential, 1 us) on 24 CPUs and hold one lock (exponential, 50 ns). All programs use reusable steps
and the engine's distributions; they differ in how many steps they yield. Needs the installed package.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator

import simpy_cycle
from measure import Report, Sample, Spec, interleaved, lock_cycle, options, report

from simfs import _engine
from simfs._engine import Lock, Machine, Step, Task

TASKS = 24
Program = Generator[Step, None, None]


def setup(machine: Machine) -> Lock:
    return machine.new_lock("lock")


def a_step_a_yield(task: Task) -> Program:
    lock = task.shared
    think, hold = task.run(task.exponential(1000)), task.run(task.exponential(50), "system")
    take, give = task.lock(lock), task.unlock(lock)
    while True:
        yield think
        yield take
        yield hold
        yield give


def with_operations(task: Task) -> Program:
    lock = task.shared
    think, hold = task.run(task.exponential(1000)), task.run(task.exponential(50), "system")
    take, give, begin, end = task.lock(lock), task.unlock(lock), task.begin(), task.end("cycle")
    while True:
        yield think
        yield begin
        yield take
        yield hold
        yield give
        yield end


def section_as_one(task: Task) -> Program:
    lock = task.shared
    think, hold = task.run(task.exponential(1000)), task.run(task.exponential(50), "system")
    section = task.steps(task.lock(lock), hold, task.unlock(lock))
    while True:
        yield think
        yield section


def main() -> int:
    """Measure, print, and return 1 if a figure misses its mark."""
    parser = options(__doc__, repeats=5)
    parser.add_argument("--cycles", type=int, default=200_000, help="lock cycles a run")
    asked = parser.parse_args()
    told = report(asked)
    samples = interleaved(asked.repeats, _measurements(asked.cycles))
    told.table("ns of processor time per lock cycle", samples)
    _judge(told, samples)
    return told.end()


PROGRAMS: dict[str, Callable[[Task], Program] | None] = {
    "built in": None,
    "section as one step": section_as_one,
    "a step a yield": a_step_a_yield,
    "a step a yield, with operations": with_operations,
}


def _measurements(cycles: int) -> dict[str, Callable[[], float]]:
    kinds = {
        f"{name}, {lock}": _engine_run(lasting(lock, cycles), program)
        for lock in ("qspinlock", "semaphore")
        for name, program in PROGRAMS.items()
    }
    return {**kinds, "SimPy, idiomatic": lambda: simpy_cycle.idiomatic(TASKS, cycles) / cycles}


def lasting(lock: str, cycles: int) -> Spec:
    """Return the spec of about so many lock cycles."""
    spec = lock_cycle(lock)
    spec["duration_ns"] *= cycles / _acquired(_engine.run(json.dumps(spec)))
    return spec


def _engine_run(spec: Spec, program: Callable[[Task], Program] | None) -> Callable[[], float]:
    in_python = spec | {"workload": {"kind": "python", "tasks": TASKS}}
    text = json.dumps(in_python if program else spec)

    def measured() -> float:
        started = time.process_time_ns()
        result = _engine.run(text, program, setup if program else None)
        return (time.process_time_ns() - started) / _acquired(result)

    return measured


def _acquired(result: str) -> int:
    acquired: int = next(lock["acquired"] for lock in json.loads(result)["locks"] if lock["name"] == "lock")
    return acquired


def _judge(told: Report, samples: dict[str, Sample]) -> None:
    simpy = samples["SimPy, idiomatic"].minimum
    marked = ("section as one step, qspinlock", "a step a yield, qspinlock")
    for name in marked:
        told.verdict(f"SimPy, idiomatic / {name}", simpy / samples[name].minimum, 20)
    for name, sample in samples.items():
        if name not in (*marked, "SimPy, idiomatic"):
            told.figure(f"SimPy, idiomatic / {name}", simpy / sample.minimum)


if __name__ == "__main__":
    sys.exit(main())
