"""Memory per sleeping task, the start of 100,000 tasks, and processor time per event from 24 to 100,000 tasks.

Tasks think asleep, off the CPU. The think time grows with their number, so the lock is equally busy at every
number. Time per event is the difference of a long and a short run over the difference of their events: what a
run costs once, such as starting the tasks, is not in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from measure import Report, Spec, build, interleaved, lock_cycle, options, report, run_engine

#: Mean think time per task (ns): about half a million cycles a simulated second at every number of tasks.
THINK_PER_TASK = 2000
SHORT_NS, LONG_NS = 0.5e9, 2.5e9
TASKS = (24, 240, 2_400, 24_000, 100_000)


def main() -> int:
    """Measure, print, and return 1 if a figure misses its mark."""
    asked = options(__doc__, repeats=3).parse_args()
    told = report(asked)
    build("run")
    _start(told)
    _time(told, asked.repeats)
    return told.end()


def _sleepers(tasks: int) -> Spec:
    """Tasks that all sleep by the end of the run, far from waking."""
    return lock_cycle("semaphore", tasks=tasks, duration_ns=1e8, think="sleep", think_ns=1e13)


def _start(told: Report) -> None:
    few, many = run_engine(_sleepers(1_000)), run_engine(_sleepers(101_000))
    per_task = (many.rss_bytes - few.rss_bytes) / 100_000
    told.verdict("memory per sleeping task", per_task, 700, at_most=True, unit=" B")
    told.verdict("start of 100,000 tasks", (many.cpu_ns - few.cpu_ns) / 1e9, 0.5, at_most=True, unit=" s")


def _time(told: Report, repeats: int) -> None:
    def busy(tasks: int) -> Callable[[], float]:
        return lambda: _ns_per_event(tasks)

    samples = interleaved(repeats, {f"{tasks} tasks": busy(tasks) for tasks in TASKS})
    told.table("ns of processor time per event", samples)
    for tasks in TASKS:
        told.figure(f"lock held, {tasks} tasks", 100 * run_engine(_busy(tasks, SHORT_NS)).utilisation, " %")
    growth = samples[f"{TASKS[-1]} tasks"].minimum / samples[f"{TASKS[0]} tasks"].minimum
    told.verdict(f"time per event, {TASKS[-1]} tasks / {TASKS[0]}", growth, 3, at_most=True)


def _busy(tasks: int, duration_ns: float) -> Spec:
    params: dict[str, float | str] = {"think": "sleep", "think_ns": tasks * THINK_PER_TASK, "hold_ns": 500}
    return lock_cycle("qspinlock", tasks=tasks, duration_ns=duration_ns, **params)


def _ns_per_event(tasks: int) -> float:
    short, long = run_engine(_busy(tasks, SHORT_NS)), run_engine(_busy(tasks, LONG_NS))
    return (long.cpu_ns - short.cpu_ns) / (long.events - short.events)


if __name__ == "__main__":
    sys.exit(main())
