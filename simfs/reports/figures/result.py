"""Figures of a scenario's result, for papers and screens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from simfs.reports.figures.bars import locks, measured
from simfs.reports.figures.curves import cpu_time, panels, throughput, warm_up
from simfs.reports.figures.latency import have_latencies, latencies
from simfs.reports.figures.lines import lines_over_tasks, measured_rates
from simfs.results.focus import focus
from simfs.results.model import ScenarioResult, short

MAX_LINES = 9
"""Lines a reader can tell apart; more get a panel each."""

MAX_PANELS = 24
"""Panels a page has room for; a scenario with more lines is a table and has its figure in `measured`."""


Makers = dict[str, Callable[[], Figure]]
"""What makes figures, by their names."""


def figures(result: ScenarioResult) -> dict[str, Figure]:
    """Return every figure that makes sense for this result, by file name without ending."""
    return {name: make() for name, make in makers(result).items()}


def makers(result: ScenarioResult) -> Makers:
    """What makes them; one figure alone takes a sixth of the time of all."""
    every: dict[str, tuple[bool, Callable[[ScenarioResult], Figure]]] = {
        "throughput": (
            has_curve(result),
            throughput if len(lines_over_tasks(result)) <= MAX_LINES else panels,
        ),
        "cpu-time": (has_curve(result) and len(lines_over_tasks(result)) <= MAX_LINES, cpu_time),
        "locks": (any(lock.contended for p in focus(result) for lock in p.locks), locks),
        "latency": (have_latencies(result), latencies),
        "warm-up": (any(len(p.batches_per_s) > 3 for p in focus(result)), warm_up),
        "measured": (any(measured_rates(p) for p in result.points), measured),
    }
    return {name: partial(make, result) for name, (sensible, make) in every.items() if sensible}


def has_curve(result: ScenarioResult) -> bool:
    """Whether there are lines worth drawing, and few enough to be told apart."""
    lines = lines_over_tasks(result)
    only_tasks = all(short(key) == "tasks" for key in result.sweep)
    most = MAX_PANELS if only_tasks else MAX_LINES
    return max(len(points) for _, points in lines) > 2 and len(lines) <= most
