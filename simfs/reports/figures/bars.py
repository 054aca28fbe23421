"""Figures of bars: the longest waits for locks, and measured rates beside simulated ones."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from simfs.reports.figures.drawing import OKABE_ITO, label, new_figure, style, unique
from simfs.reports.figures.lines import line_name, measured_rates
from simfs.reports.numbers import counted, folded, plain, plural, together
from simfs.reports.text import error
from simfs.results.focus import focus, focus_tasks
from simfs.results.model import Comparison, PointResult, ScenarioResult
from simfs.results.summaries import LockSummary

HOLDER = (
    ("running", "#0072B2", ""),
    ("runnable, not running", "#E69F00", "//"),
    ("sleeping", "#CC79A7", "\\\\"),
    ("waiting for a device", "#000000", ""),
)
"""What a lock's holders did while others waited."""


MOST_SHOWN = 16
"""Points in the figure of the locks."""


def locks(result: ScenarioResult, top: int = 3) -> Figure:
    """The `top` locks of each variant by wait, split by what their holders did meanwhile."""
    with style():
        every = focus(result)
        points = _longest_waits(every)
        bars = [(p, lock) for p in points for lock in _long_waits(p, points, top)]
        names = [f"{label(line_name(p, result), 42, 2)}: {lock.name}" for p, lock in bars]
        names = [label(name, 44) for name in names]
        lines = max(name.count("\n") + 1 for name in names)
        figure = new_figure(6.4, 1.5 + (0.06 + 0.13 * lines) * (len(bars) + 0.7 * len(points)))
        axes = figure.add_subplot()
        places = _places([p.variant for p, _ in bars])
        for place, (point, lock) in zip(places, bars, strict=True):
            _bar(axes, place, point, lock)
        axes.set_yticks(places, names)
        axes.set_ylim(max(places) + 0.7, -0.7)
        axes.set_xlim(0, 1.12 * max(axes.get_xlim()))
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("tasks waiting on average (total wait / measured time)")
        some = f": {len(points)} of {len(every)}, the longest waits" if len(points) < len(every) else ""
        axes.set_title(f"{counted(focus_tasks(result), 'task')} on {points[0].cpus} CPUs{some}", loc="left")
        handles, labels = unique(axes)
        title = "by what holders did in contended holds"
        figure.legend(handles, labels, loc="outside lower center", ncols=2, title=title)
        return figure


def measured(result: ScenarioResult) -> Figure:
    """Measured rates beside simulated ones, row by row: for scenarios that are a table more than a curve.

    Swept keys besides the tasks make a panel for each of their settings.
    """
    with style():
        panels = _by_setting(result)
        columns = min(len(panels), 2)
        grid_rows = -(-len(panels) // columns)
        longest = max(map(len, panels.values()))
        figure = new_figure(6.4 * columns, 0.9 + grid_rows * (0.5 + 0.3 * longest))
        grid = list(figure.subplots(grid_rows, columns, squeeze=False).flat)
        for axes, (setting, rows) in zip(grid, panels.items(), strict=False):
            _comparisons(axes, setting, rows, result)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        figure.supxlabel(f"{plural(result.operation)} per second", fontsize=9)
        shown = dict(pair for axes in grid for pair in zip(*reversed(unique(axes)), strict=True))
        figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=3)
        return figure


def _bar(axes: Axes, place: float, point: PointResult, lock: LockSummary) -> None:
    """One bar as long as the wait, split as the holders' time is; all grey where that was not recorded."""
    waiting = lock.wait_total_ns / (point.window_ns * point.replications)
    parts, left = lock.holder_parts, 0.0
    if not sum(parts):
        axes.barh(place, waiting, height=0.8, color="#999999", label="not recorded")
        return
    for part, (name, colour, hatch) in zip(parts, HOLDER, strict=True):
        width = waiting * part / sum(parts)
        axes.barh(
            place, width, left=left, height=0.8, color=colour, hatch=hatch, edgecolor="white", linewidth=0,
            label=name,
        )  # fmt: skip
        left += width
    axes.annotate(
        plain(waiting) if waiting >= 0.01 else "< 0.01",
        (waiting, place),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
        color="#555555",
    )


def _longest_waits(points: Sequence[PointResult]) -> list[PointResult]:
    """The points in which tasks waited for a lock: of too many those that waited longest, in their order."""
    waited = [p for p in points if any(lock.contended for lock in p.locks)]
    longest = sorted(waited, key=lambda p: -max(lock.wait_total_ns for lock in p.locks))[:MOST_SHOWN]
    return [p for p in waited if p in longest]


def _long_waits(point: PointResult, points: Sequence[PointResult], top: int) -> list[LockSummary]:
    """The `top` locks of a point that are long enough to be seen in the figure, and the first in any case."""
    visible = 0.01 * max(lock.wait_total_ns for p in points for lock in p.locks)
    contended = [lock for lock in point.locks if lock.contended]
    return contended[:1] + [lock for lock in contended[1:top] if lock.wait_total_ns > visible]


def _places(groups: Sequence[str]) -> list[float]:
    """Positions of bars, with a gap where a new group begins."""
    places: list[float] = []
    for i, group in enumerate(groups):
        step = 0.0 if i == 0 else 1.0 if group == groups[i - 1] else 1.7
        places.append((places[-1] if places else 0.0) + step)
    return places


def _compare(axes: Axes, place: int, c: Comparison, *, fitted: bool) -> None:
    colour = OKABE_ITO[4] if fitted else OKABE_ITO[0]
    half = 0.0 if c.simulated.low is None else c.simulated.half_width
    axes.barh(
        place, c.simulated.mean, xerr=half, height=0.6, color=colour, hatch="//" if fitted else "",
        edgecolor="white", linewidth=0, error_kw={"elinewidth": 1.2, "capsize": 2.5},
        label="simulated, calibration row" if fitted else "predicted",
    )  # fmt: skip
    axes.plot(
        c.row.value, place, marker="D", markersize=6.5, markerfacecolor="white", markeredgecolor="#000000",
        markeredgewidth=1.3, linestyle="none", label="measured", zorder=4,
    )  # fmt: skip
    axes.annotate(
        error(c),
        (max(c.row.value, c.simulated.mean + half), place),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
    )


def _by_setting(result: ScenarioResult) -> dict[str, list[tuple[PointResult, Comparison]]]:
    panels: dict[str, list[tuple[PointResult, Comparison]]] = {}
    for p in result.points:
        for c in measured_rates(p):
            panels.setdefault(p.setting, []).append((p, c))
    return panels


def _comparisons(
    axes: Axes, setting: str, rows: Sequence[tuple[PointResult, Comparison]], result: ScenarioResult
) -> None:
    for place, (_, c) in enumerate(rows):
        _compare(axes, place, c, fitted=c.row.role == "calibrate")
    names = [folded(f"{result.title(p.variant)}, {together(counted(p.tasks, 'task'))}", 40) for p, _ in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.12 * max(axes.get_xlim()))
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_title(setting, loc="left")
