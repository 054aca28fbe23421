"""`runtest.py` of will-it-scale: `tasks,processes,processes_idle,threads,threads_idle,linear`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simfs.interchange.reading import Figure, Lines, Reading, count, number

if TYPE_CHECKING:
    from simfs.results.model import PointResult, ScenarioResult

HEADING = "tasks,processes,processes_idle,threads,threads_idle,linear"


def is_mine(text: str) -> bool:
    """Whether there is its heading."""
    return any(line.strip() == HEADING for line in text.splitlines())


def read(text: str) -> Reading:
    """Read rates and idle times of processes and threads; -1 is what did not run."""
    lines, figures, seen = Lines(text), list[Figure](), False
    for line in lines:
        if line.strip() == HEADING:
            lines.take()
            seen = True
        elif seen and (found := _row(line)) is not None:
            lines.take()
            figures += found
    return Reading("will-it-scale", lines.matched if figures else 0, lines.skipped, tuple(figures))


def _row(line: str) -> list[Figure] | None:
    words = line.strip().split(",")
    values = [number(w) for w in words]
    tasks = count(words[0])
    if len(words) != 6 or tasks is None or None in values:
        return None
    found = []
    for name, rate, idle in (("processes", values[1], values[2]), ("threads", values[3], values[4])):
        if tasks and rate is not None and idle is not None and rate > 0 and 0 <= idle <= 100:
            found.append(Figure(name, "operations_per_s", rate, tasks))
            found.append(Figure(name, "idle_percent", idle, tasks))
    return found


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """The points of one variant as processes; threads, which it has not, are -1."""
    one = min(points, key=lambda p: p.tasks)
    linear = one.throughput.mean / one.tasks
    rows = [HEADING, "0,0,100,0,100,0"]
    rows += [
        f"{p.tasks},{p.throughput.mean:.0f},{p.shares.idle.mean:.2f},-1,100.00,{linear * p.tasks:.0f}"
        for p in points
    ]
    return "\n".join(rows) + "\n"
