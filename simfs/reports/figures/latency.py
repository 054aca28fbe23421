"""The figure of latencies: how many operations of each kind took longer than so long."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from simfs.reports.figures.drawing import DASHES, OKABE_ITO, label, more_lines, new_figure, style, unique
from simfs.reports.figures.lines import line_name
from simfs.reports.numbers import counted, duration, plain
from simfs.results.focus import focus, focus_tasks
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.summaries import CURVE, PooledLatency

MOST_LINES = len(OKABE_ITO)
"""Variants in a panel; a colour each."""

MOST_OPERATIONS = 9
"""Panels."""

WIDTHS = {1: 6.4, 2: 8.4, 3: 9.6}
"""Inches of the figure by its columns."""

LEGEND = 42
"""Characters in a line of a legend of two columns."""

TICKS = 4
"""Most ticks of an axis of times, whose labels are long."""

THIN, THICKER = 1.3, 0.3
"""Points of width of the last line, and of each before it: who lies behind others is seen beside them."""

Curve = tuple[tuple[float, float], ...]
"""Time in ns, and the share of operations that took longer."""


def latencies(result: ScenarioResult) -> Figure:
    """The share of operations that took longer than a time: a panel an operation, a line a variant, both axes log."""
    with style():
        every = focus(result)
        points = _longest(every)
        names = [line_name(point, result) for point in points]
        operations = _operations(points)
        shown = operations[:MOST_OPERATIONS]
        columns = min(len(shown), 2 if len(shown) == 4 else 3)
        rows = -(-len(shown) // columns)
        figure = new_figure(WIDTHS[columns], 1.0 + (2.8 if rows == 1 else 2.2) * rows)
        panels = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
        for axes, operation in zip(panels, shown, strict=False):
            _panel(axes, operation, points, names)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        for lowest in panels[len(shown) - columns : len(shown)]:
            lowest.tick_params(labelbottom=True)
        panels[0].set_ylim(_lowest(points, shown) / 1.5, 1)
        figure.supylabel("operations that took longer", fontsize=9)
        figure.supxlabel(_about(result, points, every, len(shown), len(operations)), fontsize=9)
        _legend(figure, panels[: len(shown)])
        return figure


def have_latencies(result: ScenarioResult) -> bool:
    """Whether some operation did not always take the same time."""
    return any(_operations([point]) for point in focus(result))


def curve(latency: PooledLatency) -> Curve:
    """The points of a line, down to the one operation that took longest: beyond its count nothing is known."""
    known = [
        (ns, 1 - percent / 100)
        for percent, ns in zip(CURVE, latency.curve, strict=True)
        if (1 - percent / 100) * latency.count > 1
    ]
    return (*known, (latency.max_ns, 1 / latency.count))


def _operations(points: Sequence[PointResult]) -> list[str]:
    """Those whose latencies differ; in the order of the result or, if there are too many, of the time spent on them."""
    spent: dict[str, float] = {}
    for point in points:
        for name, latency in point.latency.items():
            if latency.curve and latency.curve[0] < latency.max_ns:
                spent[name] = spent.get(name, 0.0) + latency.count * latency.mean_ns
    return list(spent) if len(spent) <= MOST_OPERATIONS else sorted(spent, key=lambda name: -spent[name])


def _longest(points: Sequence[PointResult]) -> list[PointResult]:
    """As many as there are colours: those in which the slowest hundredth of some operation takes longest."""
    slowest = sorted(points, key=lambda p: -max((each.p99_ns for each in p.latency.values()), default=0.0))
    return [point for point in points if point in slowest[:MOST_LINES]]


def _lowest(points: Sequence[PointResult], operations: Sequence[str]) -> float:
    """One in as many operations as the most frequent of them has."""
    return 1 / max(
        point.latency[name].count for point in points for name in operations if name in point.latency
    )


def _panel(axes: Axes, operation: str, points: Sequence[PointResult], names: Sequence[str]) -> None:
    for index, (point, name) in enumerate(zip(points, names, strict=True)):
        latency = point.latency.get(operation)
        if latency is None or not latency.curve:
            continue
        times, shares = zip(*curve(latency), strict=True)
        colour, width = OKABE_ITO[index], THIN + THICKER * (len(points) - 1 - index)
        axes.plot(times, shares, color=colour, linestyle=DASHES[index], linewidth=width, label=name)
        axes.plot(times[-1], shares[-1], color=colour, marker=".", markersize=4 + 2 * width, linestyle="none")
    axes.set_title(operation, loc="left", fontsize=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _times(axes)
    axes.yaxis.set_major_locator(LogLocator(base=10))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: one_in(y)))


def _times(axes: Axes) -> None:
    """Times as text has them, as many as there is room for."""
    low, high = axes.get_xlim()
    decades = log10(high / low)
    between = (1.0, 2.0, 5.0) if decades < 1.5 else (1.0, 3.0) if decades < 2.5 else (1.0,)
    some = MaxNLocator(TICKS) if decades < 0.5 else LogLocator(subs=between, numticks=TICKS + 1)
    axes.xaxis.set_major_locator(some)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: duration(x)))


def one_in(share: float) -> str:
    """A share of operations in words: `all`, `1 in 1,000`."""
    return "all" if share >= 1 else f"1 in {plain(10 ** -floor(log10(share) + 0.5))}"


def _about(
    result: ScenarioResult,
    points: Sequence[PointResult],
    every: Sequence[PointResult],
    shown: int,
    operations: int,
) -> str:
    """What the axes of times are of."""
    parts = [f"latency with {counted(focus_tasks(result), 'task')} on {points[0].cpus} CPUs"]
    if len(points) < len(every):
        parts.append(f"{len(points)} of {len(every)} variants: the longest")
    if shown < operations:
        parts.append(f"{shown} of {operations} operations: those that take most time")
    return "; ".join(parts)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """The lines of all panels above them; none where there is but one."""
    lines = {name: handle for axes in panels for handle, name in zip(*unique(axes), strict=True)}
    if len(lines) < 2:
        return
    names = [label(name, LEGEND) for name in lines]
    figure.set_figheight(figure.get_figheight() + 0.1 * len(names) + 0.075 * more_lines(names))
    figure.legend(list(lines.values()), names, loc="outside upper center", ncols=2, handlelength=3.2)
