"""Figures over the number of tasks, or over time: throughput, CPU time, warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator, NullFormatter
from matplotlib.transforms import offset_copy
from numpy import geomspace

from simfs.reports.figures.drawing import (
    DASHES,
    MARKERS,
    OKABE_ITO,
    WIDE,
    label,
    more_lines,
    new_figure,
    over_tasks,
    style,
    thousands,
    unique,
)
from simfs.reports.figures.lines import line_name, lines_over_tasks, rates_while_running
from simfs.reports.numbers import plain, plural
from simfs.results.focus import focus
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.scaling import Ideal, base_tasks, per_task

MOST_SHOWN = 12
"""Points in the figure of the warm-up."""

LEGEND = 42
"""Characters in a line of a legend of two columns."""

PANEL = 24
"""Characters in a line of the title of a small panel."""

CURVE = 100
"""Places of a line that is drawn as a curve."""

TITLE_LINE = 0.13
"""Inches of a line of such a title."""

SIDE_BY_SIDE = "side by side: at the same number of tasks"

STATES = {
    "user": ("user", "#0072B2", ""),
    "system": ("system", "#56B4E9", ""),
    "spin": ("spinning", "#D55E00", "//"),
    "switch": ("switching, interrupts", "#E69F00", "\\\\"),
    "idle": ("idle", "#EEEEEE", ""),
}
"""CPU states in stacking order: name, colour, hatch. Interrupt time is drawn with switching."""


def throughput(result: ScenarioResult) -> Figure:
    """Throughput over tasks: a line and interval a variant, perfect scaling, measured points."""
    with style():
        figure = new_figure(6.4, 4.2)
        axes = figure.add_subplot()
        lines = lines_over_tasks(result)
        for index, (name, points) in enumerate(lines):
            _line(axes, name, points, index)
        moved = _measured_points(axes, lines)
        counts = [p.tasks for p in result.points]
        axes.set_xlim(0, max(counts) * 1.03)
        over_tasks(axes, counts)
        _linear(axes, result)
        _cpus(axes, result)
        axes.set_xlabel("tasks")
        axes.set_ylabel(f"{plural(result.operation)} per second")
        _scale(axes, result.points)
        thousands(axes)
        _legend_of_markers(axes, result)
        if moved:
            axes.plot([], [], linestyle="none", label=SIDE_BY_SIDE)
        handles, labels = unique(axes)
        names = [label(name, LEGEND) for name in labels]
        more = sum(name.count("\n") for name in names)
        figure.set_figheight(figure.get_figheight() + 0.075 * more)  # two columns of them, 0.15 inches a line
        figure.legend(handles, names, loc="outside lower center", ncols=2, handlelength=3.2)
        return figure


def panels(result: ScenarioResult) -> Figure:
    """Throughput over tasks as `throughput` has it, a panel of its own for each line."""
    with style():
        lines = lines_over_tasks(result)
        columns = 4
        rows = -(-len(lines) // columns)
        counts = [p.tasks for p in result.points]
        figure = new_figure(2.1 * columns, 0.7 + 1.6 * rows)
        grid = list(figure.subplots(rows, columns, sharex=True, squeeze=False).flat)
        for axes, (name, points) in zip(grid, lines, strict=False):
            _line(axes, name, points, 0)
            _measured_points(axes, [(name, points)])
            axes.set_title(label(name, 28), loc="left", fontsize=8)
            _scale(axes, points)
            over_tasks(axes, counts, ticks=4)
            axes.yaxis.set_major_formatter(EngFormatter(sep=""))
            axes.tick_params(labelbottom=True, labelsize=7)
        for axes in grid[len(lines) :]:
            axes.set_visible(False)
        figure.supxlabel("tasks", fontsize=9)
        figure.supylabel(f"{plural(result.operation)} per second", fontsize=9)
        return figure


def cpu_time(result: ScenarioResult) -> Figure:
    """Shares of CPU time by state, stacked over tasks, one small panel for each variant."""
    with style():
        lines = lines_over_tasks(result)
        columns = min(len(lines), 4)
        rows = -(-len(lines) // columns)
        higher = TITLE_LINE * more_lines(label(name, PANEL) for name, _ in lines)
        figure = new_figure(max(3.4, 1.9 * columns), 0.7 + (1.75 + higher) * rows)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        panels = list(grid.flat)
        for axes, (name, points) in zip(panels, lines, strict=False):
            _stack(axes, name, points)
        for axes in panels[len(lines) :]:
            axes.set_visible(False)
        for lowest in panels[len(lines) - columns : len(lines)]:
            # Also where the row below is not full.
            lowest.tick_params(labelbottom=True)
        figure.supxlabel("tasks", fontsize=9)
        figure.supylabel("CPU time (%)", fontsize=9)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(STATES), columns + 1))
        return figure


def warm_up(result: ScenarioResult) -> Figure:
    """Throughput over the measured window at the most tasks, with what MSER would still discard as warm-up.

    Of many points those with the longest transients.
    """
    with style():
        every = [p for p in focus(result) if len(p.batches_per_s) > 1]
        longest = sorted(every, key=lambda p: -p.transient_batches)[:MOST_SHOWN]
        points = [p for p in every if p in longest]
        columns = min(len(points), 4)
        rows = -(-len(points) // columns)
        titles = [label(line_name(point, result), PANEL) for point in points]
        figure = new_figure(max(3.4, 1.9 * columns), 0.7 + (1.75 + TITLE_LINE * more_lines(titles)) * rows)
        panels = list(figure.subplots(rows, columns, sharex=True, squeeze=False).flat)
        for axes, point, title in zip(panels, points, titles, strict=False):
            _over_time(axes, point)
            axes.set_title(title, loc="left", fontsize=8)
        for axes in panels[len(points) :]:
            axes.set_visible(False)
        for lowest in panels[len(points) - columns : len(points)]:
            lowest.tick_params(labelbottom=True)
        some = f" ({len(points)} of {len(every)}: the longest transients)" if len(points) < len(every) else ""
        figure.supxlabel(f"ms since measuring began{some}", fontsize=9)
        figure.supylabel(f"{plural(result.operation)} per second", fontsize=9)
        handles, labels = unique(panels[0])
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), columns + 1))
        return figure


def _over_time(axes: Axes, point: PointResult) -> None:
    batch_ms = point.window_ns / len(point.batches_per_s) / 1e6
    middles = [batch_ms * (n + 0.5) for n in range(len(point.batches_per_s))]
    axes.axvspan(0, batch_ms * point.transient_batches, color="0.85", label="transient (MSER)")
    axes.axhline(point.settled_per_s, color="0.4", linewidth=0.8, linestyle="--", label="mean without it")
    axes.plot(middles, point.batches_per_s, color=OKABE_ITO[0], marker=".", label="batch")
    axes.set_ylim(0, 1.25 * (max(point.batches_per_s) or 1))
    axes.set_xlim(0, point.window_ns / 1e6)
    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))


def _scale(axes: Axes, points: Sequence[PointResult]) -> None:
    """From 0 to a little over the highest point; logarithmic where the lowest could not be seen so."""
    rates = [p.throughput.mean for p in points if p.throughput.mean > 0]
    measured_ = [row.value for p in points for row in (c.row for c in rates_while_running(p))]
    if rates and max(rates) > WIDE * min(rates):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0.7 * min(rates + measured_), 1.5 * max(rates + measured_))
    else:
        ends = [p.throughput.high or p.throughput.mean for p in points]
        axes.set_ylim(0, 1.06 * max(ends + measured_) or 1)


def _line(axes: Axes, name: str, points: Sequence[PointResult], index: int) -> None:
    colour = OKABE_ITO[index % len(OKABE_ITO)]
    x = [p.tasks for p in points]
    low = [p.throughput.mean if p.throughput.low is None else p.throughput.low for p in points]
    high = [p.throughput.mean if p.throughput.high is None else p.throughput.high for p in points]
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(
        x,
        [p.throughput.mean for p in points],
        color=colour,
        marker=MARKERS[index % len(MARKERS)],
        linestyle=DASHES[index % len(DASHES)],
        label=name,
    )


def _measured_points(axes: Axes, lines: Sequence[tuple[str, Sequence[PointResult]]]) -> bool:
    """Hexagons in the colours of their lines; True if some stand side by side, as they would hide each other."""
    found = [
        (p.tasks, c.row, OKABE_ITO[index % len(OKABE_ITO)])
        for index, (_, points) in enumerate(lines)
        for p in points
        for c in rates_while_running(p)
    ]
    moved = False
    for i, (tasks, row, colour) in enumerate(found):
        at_once = [(j, r) for j, (n, r, _) in enumerate(found) if n == tasks]
        same = [j for j, r in at_once if isclose(r.value, row.value, rel_tol=0.04)]
        aside = 9 * (same.index(i) - (len(same) - 1) / 2)
        moved |= aside != 0
        axes.plot(
            tasks, row.value, marker="h", markersize=8, linestyle="none", zorder=4,
            markerfacecolor=colour if row.role == "calibrate" else "white",
            markeredgecolor=colour, markeredgewidth=1.6, clip_on=False,
            transform=offset_copy(axes.transData, axes.get_figure(root=True), x=aside, units="points"),
        )  # fmt: skip
    return moved


def _legend_of_markers(axes: Axes, result: ScenarioResult) -> None:
    roles = {c.row.role for p in result.points for c in rates_while_running(p)}
    names = {
        "calibrate": ("measured, calibration row", "#555555"),
        "predict": ("measured, to be predicted", "white"),
        "info": ("measured, for information", "white"),
    }
    for role in sorted(roles):
        name, face = names[role]
        axes.plot(
            [], [], marker="h", markersize=9, markerfacecolor=face, markeredgecolor="#555555",
            markeredgewidth=1.6, linestyle="none", label=name,
        )  # fmt: skip


def _linear(axes: Axes, result: ScenarioResult) -> None:
    base = base_tasks(result)
    if base is None:
        return
    fastest = max(result.points, key=per_task)
    tasks = {base, *(p.tasks for p in result.points), fastest.cpus}
    line = Ideal(result)
    if axes.get_xscale() == "log":  # where a straight line is a curve
        tasks |= {round(n) for n in geomspace(base, max(tasks), CURVE)}
    ideal = [line.per_s(fastest, n) or 0.0 for n in sorted(tasks)]
    axes.plot(
        sorted(tasks), ideal, color="#777777", linestyle="-", linewidth=0.9, label="linear scaling", zorder=1
    )


def _cpus(axes: Axes, result: ScenarioResult) -> None:
    counts = {p.cpus for p in result.points}
    most = max(p.tasks for p in result.points)
    if len(counts) != 1 or (cpus := counts.pop()) > most:
        return
    left = cpus > 0.8 * most
    axes.axvline(cpus, color="#777777", linewidth=0.8, zorder=1)
    axes.annotate(
        f"{cpus} CPUs",
        (cpus, 0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if left else 4, 4),
        textcoords="offset points",
        ha="right" if left else "left",
        color="#555555",
        fontsize=8,
    )


def _stack(axes: Axes, name: str, points: Sequence[PointResult]) -> None:
    x = [p.tasks for p in points]
    shares = {state: [getattr(p.shares, state).mean for p in points] for state in STATES}
    shares["switch"] = [p.shares.switch.mean + p.shares.irq.mean for p in points]
    labels, colours, hatches = zip(*STATES.values(), strict=True)
    axes.stackplot(
        x, *shares.values(), labels=labels, colors=colours, hatch=hatches, edgecolor="white", linewidth=0.3
    )
    axes.set_title(label(name, PANEL), loc="left", fontsize=8)
    over_tasks(axes, x, ticks=4)
    axes.set_xlim(min(x), max(x))
    axes.set_ylim(0, 100)
