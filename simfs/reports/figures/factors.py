"""Figures of a sweep: throughput over every key that varies, and a grid over two keys as colours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import ceil, log

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simfs.reports.axis import Axis, axis_of, is_grid, levels, varied
from simfs.reports.figures.curves import LEGEND
from simfs.reports.figures.drawing import (
    MARKERS,
    OKABE_ITO,
    from_zero,
    label,
    more_lines,
    new_figure,
    style,
    thousands,
    unique,
)
from simfs.reports.figures.result import MAX_LINES, Makers, has_curve
from simfs.reports.numbers import counted, plain, plural, with_prefix
from simfs.results.model import ScenarioResult, Value, short

MAX_PANELS = 8

MAX_NUMBERS = 150
"""Cells of a heat map that have their number in them."""

FEW = 9
"""Values of an axis that each have a tick."""

CROWDED = 0.07
"""Part of an axis that two ticks need between them."""

MAX_HEAT = 12.0
"""Inches that a heat map is wide or high at most."""


def sweep_figures(result: ScenarioResult) -> dict[str, Figure]:
    """The figure `heat` of a grid over two keys; `factors` where more varies than it or a curve over tasks can show."""
    return {name: make() for name, make in sweep_makers(result).items()}


def sweep_makers(result: ScenarioResult) -> Makers:
    """What makes them."""
    keys = varied(result)
    if not keys or (has_curve(result) and all(short(key) == "tasks" for key in keys)):
        return {}
    made: Makers = {"factors": partial(factors, result, keys[:MAX_PANELS])}
    shown = is_grid(result, keys) and len(result.variants) <= MAX_LINES
    return made | ({"heat": partial(heat, result, keys)} if shown else {})


def factors(result: ScenarioResult, keys: Sequence[str]) -> Figure:
    """Throughput of every point over each of `keys`, a panel a key, a colour a variant."""
    with style():
        columns = min(len(keys), 2)
        rows = -(-len(keys) // columns)
        figure = new_figure(3.4 * columns + 0.6, 0.8 + 2.5 * rows)
        panels = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
        for axes, key in zip(panels, keys, strict=False):
            _scatter(axes, result, _spread(key, [p.values.get(key) for p in result.points]))
        for axes in panels[len(keys) :]:
            axes.set_visible(False)
        figure.supylabel(f"{plural(result.operation)} per second", fontsize=9)
        handles, labels = unique(panels[0])
        names = [label(name, LEGEND) for name in labels]
        figure.set_figheight(figure.get_figheight() + 0.07 * (len(names) + more_lines(names)))
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        return figure


def _spread(key: str, values: Sequence[Value | None]) -> Axis:
    """The axis of a key; few numbers of which some would stand on one another stand side by side, as words do."""
    axis = axis_of(key, values)
    places = sorted(set(axis.at))
    if axis.words or not 1 < len(places) <= FEW:
        return axis
    far = [log(x) for x in places] if _is_far(axis) and places[0] > 0 else places
    if min(b - a for a, b in pairwise(far)) >= CROWDED * (far[-1] - far[0]):
        return axis
    words = dict(sorted(zip(axis.at, map(str, values), strict=True)))
    return Axis(key, [float(places.index(x)) for x in axis.at], [words[x] for x in places])


def _is_far(axis: Axis) -> bool:
    """Whether the values lie so far apart that their axis is logarithmic."""
    positive = [x for x in axis.at if x > 0]
    return min(axis.at) >= 0 and bool(positive) and max(positive) > 30 * min(positive)


def _scatter(axes: Axes, result: ScenarioResult, axis: Axis) -> None:
    size = min(4.5, max(1.5, 60 / len(result.points) ** 0.5))
    many = len(result.variants) > MAX_LINES  # of which nobody could tell one from the other
    for index, variant in enumerate(result.variants):
        look = 0 if many else index
        shown = [(x, p) for x, p in zip(axis.at, result.points, strict=True) if p.variant == variant]
        axes.plot(
            [x for x, _ in shown],
            [p.throughput.mean for _, p in shown],
            linestyle="none",
            marker=MARKERS[look % len(MARKERS)],
            markersize=size,
            alpha=0.8,
            markeredgewidth=0,
            color=OKABE_ITO[look % len(OKABE_ITO)],
            label=counted(len(result.variants), "variant") if many else result.title(variant),
        )
    axes.set_xlabel(axis.label)
    from_zero(axes)
    if axis.words:
        axes.set_xticks(range(len(axis.words)), axis.words)
        axes.set_xlim(-0.5, len(axis.words) - 0.5)
    elif _is_far(axis):
        if min(axis.at) > 0:
            axes.set_xscale("log")
        else:
            axes.set_xscale("symlog", linthresh=min(x for x in axis.at if x > 0), linscale=0.3)
        axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: plain(x)))
        axes.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    if not axis.words and len(values := sorted(set(axis.at))) <= FEW:
        axes.set_xticks(values, [plain(x) for x in values])
        axes.set_xticks([], minor=True)
    thousands(axes)


def heat(result: ScenarioResult, keys: Sequence[str]) -> Figure:
    """Throughput over two keys as colours, a panel a variant; numbers stand in the cells where there is room."""
    down, across = sorted(keys, key=lambda key: -len(levels(result, key)))
    rows, columns = levels(result, down), levels(result, across)
    with style():
        wide = min(len(result.variants), 3)
        high = -(-len(result.variants) // wide)
        size = [max(2.4, 0.46 * len(columns)), max(1.8, 0.24 * len(rows))]
        size = [min(MAX_HEAT / n, inches) for n, inches in zip((wide, high), size, strict=True)]
        figure = new_figure(wide * (size[0] + 0.5) + 1.0, high * (size[1] + 0.8))
        panels = list(figure.subplots(high, wide, squeeze=False, sharey=True).flat)
        most = max(p.throughput.mean for p in result.points)
        for axes, variant in zip(panels, result.variants, strict=False):
            at = {(p.values[down], p.values[across]): p.throughput.mean for p in result.of(variant)}
            cells = [[at.get((row, column), float("nan")) for column in columns] for row in rows]
            image = axes.imshow(cells, cmap="cividis", vmin=0, vmax=most, aspect="auto", origin="lower")
            _cells(axes, cells, most)
            axes.set_xticks(*_some(columns, size[0] / 0.4))
            axes.set_yticks(*_some(rows, size[1] / 0.2))
            axes.grid(visible=False)
            axes.set_title(label(result.title(variant), 34), loc="left")
        for axes in panels[len(result.variants) :]:
            axes.set_visible(False)
        figure.supxlabel(axis_of(across, columns).label.partition(" (")[0], fontsize=9)
        figure.supylabel(axis_of(down, rows).label.partition(" (")[0], fontsize=9)
        bar = figure.colorbar(image, ax=panels, label=f"{plural(result.operation)} per second")
        bar.ax.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: plain(x)))
        return figure


def _some(values: Sequence[Value], most: float) -> tuple[list[int], list[str]]:
    """Places and words of every value, or of some at equal distances where they are too many."""
    shown = range(0, len(values), ceil(len(values) / most))
    return list(shown), [str(values[at]) for at in shown]


def _cells(axes: Axes, cells: Sequence[Sequence[float]], most: float) -> None:
    if len(cells) * len(cells[0]) > MAX_NUMBERS:
        return
    for y, row in enumerate(cells):
        for x, value in enumerate(row):
            colour = "white" if value < 0.55 * most else "black"
            cell = axes.text(x, y, with_prefix(value), ha="center", va="center", fontsize=6.5, color=colour)
            cell.set_in_layout(False)  # it lies within the axes; hundreds are most of the time of a layout
