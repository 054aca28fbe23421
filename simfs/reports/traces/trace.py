"""Everything that happened in a run, as lines to read or as Chrome's trace format, which ui.perfetto.dev shows.

In Chrome's format each CPU is a track with what ran on it, and each task a track with what it did, waited for and held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simfs.machine import Event
from simfs.machine.labels import name_of
from simfs.results.timeline import Timeline

VERBS = {"wait": "waits for", "hold": "holds", "hold shared": "shares"}
CPUS, TASKS = 1, 2
"""Chrome's process numbers of the two groups of tracks."""


def line(event: Event) -> str:
    """An event as a line: microseconds, CPU, task, what, about what."""
    time, task, cpu, what, about = event
    return f"{time / 1e6:14.6f} us  CPU {cpu:<3} {'' if task is None else name_of(task):11} {what} {about}".rstrip()


def record(event: Event) -> dict[str, Any]:
    """An event with names for its parts; the time in nanoseconds."""
    time, task, cpu, what, about = event
    return {"time_ns": time / 1e3, "task": task, "cpu": cpu, "what": what, "about": about}


def chrome(line: Timeline) -> dict[str, Any]:
    """A time line in Chrome's trace format (times in microseconds)."""
    return {"displayTimeUnit": "ns", "traceEvents": [*_names(line), *_ran(line), *_slices(line)]}


def _names(line: Timeline) -> Iterator[dict[str, Any]]:
    for number, name in ((CPUS, "CPUs"), (TASKS, "tasks")):
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}}
    threads = [(CPUS, cpu, f"CPU {cpu}") for cpu in line.cpus]
    threads += [(TASKS, task, name_of(task)) for task in line.tasks]
    for group, track, name in threads:
        yield {"ph": "M", "name": "thread_name", "pid": group, "tid": track, "args": {"name": name}}


def _ran(line: Timeline) -> Iterator[dict[str, Any]]:
    for cpu, parts in line.cpus.items():
        for ran in parts:
            if ran.task is not None:
                yield _span(CPUS, cpu, name_of(ran.task), ran.begin, ran.end)


def _slices(line: Timeline) -> Iterator[dict[str, Any]]:
    """Waits, holds and operations; what reaches over the window is cut there."""
    for span in line.spans:
        name = (
            span.about if span.kind == "operation" else f"{VERBS[span.kind]} {span.about.partition('#')[0]}"
        )
        begin = max(span.begin, line.begin)
        one = _span(TASKS, span.task, name or "operation", begin, line.end if span.end is None else span.end)
        yield one if span.kind == "operation" else one | {"args": {"lock": span.about}}


def _span(group: int, track: int, name: str, begin: int, end: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": group,
        "tid": track,
        "name": name,
        "ts": begin / 1e6,
        "dur": (end - begin) / 1e6,
    }
