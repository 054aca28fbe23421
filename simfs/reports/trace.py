"""Everything that happened in a run, as lines to read or as Chrome's trace format, which ui.perfetto.dev shows.

In Chrome's format each CPU is a track with what ran on it, and each task a track with what it waited for and held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from simfs.machine import Event

LEAVING = frozenset({"sleep", "preempt", "yield", "exit"})
"""What takes a task off its CPU."""
TAKING = {"acquire": "release", "acquire shared": "release shared"}
"""How a hold begins, and how it ends."""
CPUS, TASKS = 1, 2
"""Chrome's process numbers of the two groups of tracks."""


def line(event: Event) -> str:
    """An event as a line: microseconds, CPU, task, what, about what."""
    time, task, cpu, what, about = event
    return f"{time / 1e6:14.6f} us  CPU {cpu:<3} {'' if task is None else f'task {task}':10} {what} {about}".rstrip()


def record(event: Event) -> dict[str, Any]:
    """An event with names for its parts; the time in nanoseconds."""
    time, task, cpu, what, about = event
    return {"time_ns": time / 1e3, "task": task, "cpu": cpu, "what": what, "about": about}


def chrome(events: Iterable[Event]) -> dict[str, Any]:
    """The events in Chrome's trace format (times in microseconds)."""
    return {"displayTimeUnit": "ns", "traceEvents": [*_names(), *_spans(list(events))]}


def _names() -> Iterator[dict[str, Any]]:
    for number, name in ((CPUS, "CPUs"), (TASKS, "tasks")):
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}}


def _spans(events: list[Event]) -> Iterator[dict[str, Any]]:
    """Spans from what begins and ends; what is still open at the end lasts until then."""
    open_: dict[tuple[int, int, str], int] = {}

    def close(group: int, track: int, name: str, end: int) -> Iterator[dict[str, Any]]:
        begin = open_.pop((group, track, name), None)
        if begin is not None:
            yield _span(group, track, name, begin, end)

    for time, task, cpu, what, about in events:
        if task is None:
            continue
        if what == "run":
            open_[CPUS, cpu, f"task {task}"] = time
        elif what in LEAVING:
            yield from close(CPUS, cpu, f"task {task}", time)
        elif what == "wait":
            open_[TASKS, task, f"waits for {about}"] = time
        elif what in TAKING:
            yield from close(TASKS, task, f"waits for {about}", time)
            open_[TASKS, task, f"holds {about}"] = time
        elif what in TAKING.values():
            yield from close(TASKS, task, f"holds {about}", time)
    end = events[-1][0] if events else 0
    for (group, track, name), begin in open_.items():
        yield _span(group, track, name, begin, end)


def _span(group: int, track: int, name: str, begin: int, end: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": group,
        "tid": track,
        "name": name,
        "ts": begin / 1e6,
        "dur": (end - begin) / 1e6,
    }
