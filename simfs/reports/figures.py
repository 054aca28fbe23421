"""Figures for papers and screens: PNG and SVG, colour-blind safe, the same bytes every time.

Each function takes a `ScenarioResult` and returns a `matplotlib.figure.Figure`; none touches pyplot's
global state.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isclose
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator, NullFormatter
from matplotlib.transforms import offset_copy

from simfs.reports.numbers import plain, plural
from simfs.reports.text import error, holder_parts
from simfs.results.focus import focus, focus_tasks
from simfs.results.model import Comparison, LockSummary, PointResult, ScenarioResult, short
from simfs.results.scaling import base_tasks, ideal_per_s, per_task

DPI = 200
"""Resolution of PNG files."""

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Colours that people with any form of colour blindness can tell apart (Okabe and Ito, 2008)."""

MARKERS = "osD^vP*X"
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))

MAX_LINES = 9
"""Lines a reader can tell apart; more get a panel each."""

MAX_PANELS = 24
"""Panels a page has room for; a scenario with more lines is a table and has its figure in `measured`."""

WIDE = 100
"""Ratio of the highest to the lowest throughput from which the axis is logarithmic."""

MOST_SHOWN = 12
"""Points in the figure of the warm-up."""

STATES = {
    "user": ("user", "#0072B2", ""),
    "system": ("system", "#56B4E9", ""),
    "spin": ("spinning", "#D55E00", "//"),
    "switch": ("switching, interrupts", "#E69F00", "\\\\"),
    "idle": ("idle", "#EEEEEE", ""),
}
"""CPU states in stacking order: name, colour, hatch. Interrupt time is drawn with switching."""

HOLDER = (
    ("running", "#0072B2", ""),
    ("runnable, not running", "#E69F00", "//"),
    ("sleeping", "#CC79A7", "\\\\"),
    ("waiting for a device", "#000000", ""),
)
"""What a lock's holders did while others waited."""

STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "svg.hashsalt": "simfs",
    "svg.fonttype": "path",
}


@contextmanager
def style() -> Iterator[None]:
    """The look of all figures, also needed while saving; restores what was set before."""
    with mpl.rc_context(STYLE):
        yield


def figures(result: ScenarioResult) -> dict[str, Figure]:
    """Return every figure that makes sense for this result, by file name without ending."""
    makers: dict[str, tuple[bool, Callable[[ScenarioResult], Figure]]] = {
        "throughput": (has_curve(result), throughput if len(_lines(result)) <= MAX_LINES else panels),
        "cpu-time": (has_curve(result) and len(_lines(result)) <= MAX_LINES, cpu_time),
        "locks": (any(lock.contended for p in focus(result) for lock in p.locks), locks),
        "warm-up": (any(len(p.batches_per_s) > 3 for p in focus(result)), warm_up),
        "measured": (any(_rates(p) for p in result.points), measured),
    }
    return {name: make(result) for name, (sensible, make) in makers.items() if sensible}


def throughput(result: ScenarioResult) -> Figure:
    """Throughput over tasks: a line and interval a variant, perfect scaling, measured points."""
    with style():
        figure = new_figure(6.4, 4.2)
        axes = figure.add_subplot()
        lines = _lines(result)
        for index, (name, points) in enumerate(lines):
            _line(axes, name, points, index)
        _measured_points(axes, lines)
        _linear(axes, result)
        _cpus(axes, result)
        axes.set_xlabel("tasks")
        axes.set_ylabel(f"{plural(result.operation)} per second")
        _scale(axes, result.points)
        axes.set_xlim(0, max(p.tasks for p in result.points) * 1.03)
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 4, 8], integer=True))
        thousands(axes)
        _legend_of_markers(axes, result)
        figure.legend(*unique(axes), loc="outside lower center", ncols=2, handlelength=3.2)
        return figure


def panels(result: ScenarioResult) -> Figure:
    """Throughput over tasks as `throughput` has it, a panel of its own for each line."""
    with style():
        lines = _lines(result)
        columns = 4
        rows = -(-len(lines) // columns)
        figure = new_figure(2.1 * columns, 0.7 + 1.6 * rows)
        grid = list(figure.subplots(rows, columns, sharex=True, squeeze=False).flat)
        for axes, (name, points) in zip(grid, lines, strict=False):
            _line(axes, name, points, 0)
            _measured_points(axes, [(name, points)])
            axes.set_title(folded(name, 28), loc="left", fontsize=8)
            _scale(axes, points)
            axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 8], integer=True))
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
        lines = _lines(result)
        columns = min(len(lines), 4)
        rows = -(-len(lines) // columns)
        figure = new_figure(max(3.4, 1.9 * columns), 0.7 + 1.75 * rows)
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


def locks(result: ScenarioResult, top: int = 3) -> Figure:
    """The `top` locks of each variant by wait, split by what their holders did meanwhile."""
    with style():
        points = focus(result)
        bars = [(p, lock) for p in points for lock in _long_waits(p, points, top)]
        names = [folded(f"{_name(p, result)}:  {lock.name}", 44) for p, lock in bars]
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
        axes.set_title(f"{focus_tasks(result)} tasks on {points[0].cpus} CPUs", loc="left")
        handles, labels = unique(axes)
        title = "while the lock's holder was"
        figure.legend(handles, labels, loc="outside lower center", ncols=2, title=title)
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
        figure = new_figure(max(3.4, 1.9 * columns), 0.7 + 1.75 * rows)
        panels = list(figure.subplots(rows, columns, sharex=True, squeeze=False).flat)
        for axes, point in zip(panels, points, strict=False):
            _over_time(axes, point)
            axes.set_title(folded(_name(point, result), 26), fontsize=8)
        for axes in panels[len(points) :]:
            axes.set_visible(False)
        for lowest in panels[len(points) - columns : len(points)]:
            lowest.tick_params(labelbottom=True)
        figure.supxlabel("ms since measuring began", fontsize=9)
        figure.supylabel(f"{plural(result.operation)} per second", fontsize=9)
        handles, labels = unique(panels[0])
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
        return figure


def _over_time(axes: Axes, point: PointResult) -> None:
    batch_ms = point.window_ns / len(point.batches_per_s) / 1e6
    middles = [batch_ms * (n + 0.5) for n in range(len(point.batches_per_s))]
    axes.axvspan(0, batch_ms * point.transient_batches, color="0.85", label="transient (MSER)")
    axes.axhline(point.settled_per_s, color="0.4", linewidth=0.8, linestyle="--", label="mean without it")
    axes.plot(middles, point.batches_per_s, color=OKABE_ITO[0], marker=".", label="batch")
    axes.set_ylim(0, 1.25 * (max(point.batches_per_s) or 1))
    axes.set_xlim(0, point.window_ns / 1e6)
    thousands(axes)


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


def png(figure: Figure) -> bytes:
    """The figure as PNG."""
    return _saved(figure, "png")


def svg(figure: Figure) -> bytes:
    """The figure as SVG, without date and with reproducible ids."""
    return _saved(figure, "svg")


def _saved(figure: Figure, form: str) -> bytes:
    out = io.BytesIO()
    metadata = {"Date": None, "Creator": "simfs"} if form == "svg" else {"Software": "simfs"}
    with style():
        figure.savefig(out, format=form, dpi=DPI, metadata=metadata)
    return out.getvalue()


class Shown(Figure):
    """A figure that notebooks show as it is written to files, with or without pyplot."""

    def _repr_png_(self) -> bytes:
        return png(self)


def new_figure(width: float, height: float) -> Figure:
    """A figure of this size in inches that belongs to nobody's global state."""
    figure = Shown(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def has_curve(result: ScenarioResult) -> bool:
    """Whether there are lines worth drawing, and few enough to be told apart."""
    lines = _lines(result)
    only_tasks = all(short(key) == "tasks" for key in result.sweep)
    most = MAX_PANELS if only_tasks else MAX_LINES
    return max(len(points) for _, points in lines) > 2 and len(lines) <= most


def _scale(axes: Axes, points: Sequence[PointResult]) -> None:
    """From 0 to a little over the highest point; logarithmic where the lowest could not be seen so."""
    rates = [p.throughput.mean for p in points if p.throughput.mean > 0]
    measured_ = [row.value for p in points for row in (c.row for c in _rates(p))]
    if rates and max(rates) > WIDE * min(rates):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0.7 * min(rates + measured_), 1.5 * max(rates + measured_))
    else:
        ends = [p.throughput.high or p.throughput.mean for p in points]
        axes.set_ylim(0, 1.06 * max(ends + measured_) or 1)


def _lines(result: ScenarioResult) -> list[tuple[str, list[PointResult]]]:
    """Points over tasks; swept keys other than the tasks make lines of their own."""
    lines: dict[str, list[PointResult]] = {}
    for p in result.points:
        lines.setdefault(_name(p, result), []).append(p)
    return [(name, sorted(points, key=lambda p: p.tasks)) for name, points in lines.items()]


def _name(point: PointResult, result: ScenarioResult) -> str:
    return ", ".join(part for part in (result.title(point.variant), point.setting) if part)


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


def _measured_points(axes: Axes, lines: Sequence[tuple[str, Sequence[PointResult]]]) -> None:
    """Hexagons in the colours of their lines; side by side where they would hide each other."""
    found = [
        (p.tasks, c.row, OKABE_ITO[index % len(OKABE_ITO)])
        for index, (_, points) in enumerate(lines)
        for p in points
        for c in _rates(p)
    ]
    for i, (tasks, row, colour) in enumerate(found):
        at_once = [(j, r) for j, (n, r, _) in enumerate(found) if n == tasks]
        same = [j for j, r in at_once if isclose(r.value, row.value, rel_tol=0.04)]
        aside = 9 * (same.index(i) - (len(same) - 1) / 2)
        axes.plot(
            tasks, row.value, marker="h", markersize=8, linestyle="none", zorder=4,
            markerfacecolor=colour if row.role == "calibrate" else "white",
            markeredgecolor=colour, markeredgewidth=1.6,
            transform=offset_copy(axes.transData, axes.get_figure(root=True), x=aside, units="points"),
        )  # fmt: skip


def _legend_of_markers(axes: Axes, result: ScenarioResult) -> None:
    roles = {c.row.role for p in result.points for c in _rates(p)}
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
    tasks = sorted({base, *(p.tasks for p in result.points), fastest.cpus})
    ideal = [ideal_per_s(result, fastest, n) or 0.0 for n in tasks]
    axes.plot(tasks, ideal, color="#777777", linestyle="-", linewidth=0.9, label="linear scaling", zorder=1)


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
    axes.set_title(folded(name, 24), loc="left", fontsize=8)
    axes.set_xlim(min(x), max(x))
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 8], integer=True))


def _bar(axes: Axes, place: float, point: PointResult, lock: LockSummary) -> None:
    """One bar as long as the wait, split as the holders' time is; all grey where that was not recorded."""
    waiting = lock.wait_total_ns / (point.window_ns * point.replications)
    parts, left = holder_parts(lock), 0.0
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
        for c in _rates(p):
            panels.setdefault(p.setting, []).append((p, c))
    return panels


def _comparisons(
    axes: Axes, setting: str, rows: Sequence[tuple[PointResult, Comparison]], result: ScenarioResult
) -> None:
    for place, (_, c) in enumerate(rows):
        _compare(axes, place, c, fitted=c.row.role == "calibrate")
    names = [folded(f"{result.title(p.variant)}, {p.tasks} tasks", 40) for p, _ in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.12 * max(axes.get_xlim()))
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_title(setting, loc="left")


def _rates(point: PointResult) -> list[Comparison]:
    return [c for c in point.measured if point.estimate(c.row.metric) == point.throughput]


def thousands(axes: Axes) -> None:
    """Numbers of the y axis as text has them."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: plain(y)))


def unique(axes: Axes) -> tuple[list[Artist], list[str]]:
    """Handles and labels of a legend, each label once, in order of appearance."""
    handles, labels = axes.get_legend_handles_labels()
    seen = dict(zip(reversed(labels), reversed(handles), strict=True))
    names = list(dict.fromkeys(labels))
    return [seen[name] for name in names], names


def folded(text: str, width: int) -> str:
    """Text in lines of at most `width` characters, broken at spaces."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
