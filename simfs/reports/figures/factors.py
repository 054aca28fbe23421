"""Figures of a sweep: throughput over every key that varies, and a grid over two keys as colours."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simfs.reports.axis import Axis, axis_of, is_grid, levels, varied
from simfs.reports.figures.drawing import MARKERS, OKABE_ITO, from_zero, new_figure, style, thousands, unique
from simfs.reports.figures.result import has_curve
from simfs.reports.numbers import folded, plain, plural
from simfs.results.model import ScenarioResult, short

MAX_PANELS = 8

MAX_NUMBERS = 150
"""Cells of a heat map that have their number in them."""

FEW = 9
"""Values of an axis that each have a tick."""


def sweep_figures(result: ScenarioResult) -> dict[str, Figure]:
    """The figure `heat` of a grid over two keys; `factors` where more varies than it or a curve over tasks can show."""
    keys = varied(result)
    if not keys or (has_curve(result) and all(short(key) == "tasks" for key in keys)):
        return {}
    drawn = {"factors": factors(result, keys[:MAX_PANELS])}
    return drawn | ({"heat": heat(result, keys)} if is_grid(result, keys) else {})


def factors(result: ScenarioResult, keys: Sequence[str]) -> Figure:
    """Throughput of every point over each of `keys`, a panel a key, a colour a variant."""
    with style():
        columns = min(len(keys), 2)
        rows = -(-len(keys) // columns)
        figure = new_figure(3.4 * columns + 0.6, 0.8 + 2.5 * rows)
        panels = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
        for axes, key in zip(panels, keys, strict=False):
            _scatter(axes, result, axis_of(key, [p.values.get(key) for p in result.points]))
        for axes in panels[len(keys) :]:
            axes.set_visible(False)
        figure.supylabel(f"{plural(result.operation)} per second", fontsize=9)
        figure.legend(*unique(panels[0]), loc="outside lower center", ncols=2)
        return figure


def _scatter(axes: Axes, result: ScenarioResult, axis: Axis) -> None:
    size = min(4.5, max(1.5, 60 / len(result.points) ** 0.5))
    for index, variant in enumerate(result.variants):
        shown = [(x, p) for x, p in zip(axis.at, result.points, strict=True) if p.variant == variant]
        axes.plot(
            [x for x, _ in shown],
            [p.throughput.mean for _, p in shown],
            linestyle="none",
            marker=MARKERS[index % len(MARKERS)],
            markersize=size,
            alpha=0.8,
            markeredgewidth=0,
            color=OKABE_ITO[index % len(OKABE_ITO)],
            label=result.title(variant),
        )
    axes.set_xlabel(axis.label)
    from_zero(axes)
    if axis.words:
        axes.set_xticks(range(len(axis.words)), axis.words)
        axes.set_xlim(-0.5, len(axis.words) - 0.5)
    elif min(axis.at) > 0 and max(axis.at) > 30 * min(axis.at):
        axes.set_xscale("log")
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
        size = (max(2.4, 0.46 * len(columns)), max(1.8, 0.24 * len(rows)))
        figure = new_figure(wide * (size[0] + 0.5) + 1.0, high * (size[1] + 0.8))
        panels = list(figure.subplots(high, wide, squeeze=False, sharey=True).flat)
        most = max(p.throughput.mean for p in result.points)
        for axes, variant in zip(panels, result.variants, strict=False):
            at = {(p.values[down], p.values[across]): p.throughput.mean for p in result.of(variant)}
            cells = [[at.get((row, column), float("nan")) for column in columns] for row in rows]
            image = axes.imshow(cells, cmap="cividis", vmin=0, vmax=most, aspect="auto", origin="lower")
            _cells(axes, cells, most)
            axes.set_xticks(range(len(columns)), list(map(str, columns)))
            axes.set_yticks(range(len(rows)), list(map(str, rows)))
            axes.grid(visible=False)
            axes.set_title(folded(result.title(variant), 34), loc="left")
        for axes in panels[len(result.variants) :]:
            axes.set_visible(False)
        figure.supxlabel(axis_of(across, columns).label.partition(" (")[0], fontsize=9)
        figure.supylabel(axis_of(down, rows).label.partition(" (")[0], fontsize=9)
        bar = figure.colorbar(image, ax=panels, label=f"{plural(result.operation)} per second")
        bar.ax.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: plain(x)))
        return figure


def _cells(axes: Axes, cells: Sequence[Sequence[float]], most: float) -> None:
    if len(cells) * len(cells[0]) > MAX_NUMBERS:
        return
    for y, row in enumerate(cells):
        for x, value in enumerate(row):
            colour = "white" if value < 0.55 * most else "black"
            said = mpl.ticker.EngFormatter(places=0, sep="")(value)
            axes.text(x, y, said, ha="center", va="center", fontsize=6.5, color=colour)
