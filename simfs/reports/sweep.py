"""A sweep on the terminal and as a figure: throughput over every key that varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from simfs.reports.figures.drawing import MARKERS, OKABE_ITO, from_zero, new_figure, style, thousands, unique
from simfs.reports.figures.result import has_curve
from simfs.reports.layout import Sheet, report_console
from simfs.reports.numbers import folded, plain, plural, plus_minus
from simfs.results.model import PointResult, ScenarioResult, Value, short
from simfs.results.quantities import in_units

MAX_PANELS = 8

MAX_NUMBERS = 150
"""Cells of a heat map that have their number in them."""

FEW = 9
"""Values of an axis that each have a tick."""

_READABLE = {
    "_ns": (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)),
    "_bytes": (("GiB", 2.0**30), ("MiB", 2.0**20), ("B", 1.0)),
}
"""Units an axis may have, by the ending of the column."""


@dataclass(frozen=True)
class Axis:
    """Where the values of one key go on an axis."""

    label: str
    at: Sequence[float]
    words: Sequence[str] = ()


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


def axis_of(key: str, values: Sequence[Value | None]) -> Axis:
    """Where the values of a key go: quantities in a unit that suits them, words in the order in which they come."""
    if quantities := in_units(values):
        ending, numbers = quantities
        largest = max(x for x in numbers if x is not None)
        unit, scale = next(((u, s) for u, s in _READABLE.get(ending, ()) if largest >= s), ("", 1.0))
        return Axis(f"{key} ({unit})" if unit else key, [(x or 0.0) / scale for x in numbers])
    plain_numbers = [float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(plain_numbers) == len(values):
        return Axis(key, plain_numbers)
    words = list(dict.fromkeys(map(str, values)))
    return Axis(key, [float(words.index(str(v))) for v in values], words)


def print_sweep(result: ScenarioResult, console: Console | None = None) -> None:
    """Of each variant its lowest and highest throughput, and all: a row a point over one key, a matrix over two."""
    console = console or report_console()
    table = Sheet(result.name)
    table.add_column("variant")
    table.add_column("points", justify="right")
    for name in ("lowest", "highest"):
        table.add_column(f"{name} {plural(result.operation)}/s", justify="right")
        table.add_column("at")
    for variant in result.variants:
        points = sorted(result.of(variant), key=lambda p: p.throughput.mean)
        ends = [cell for p in (points[0], points[-1]) for cell in (_throughput(p), _where(p))]
        table.add_row(result.title(variant), f"{len(points):,}", *ends)
    console.print(table)
    keys = varied(result)
    if len(keys) == 1:
        console.print(_along(result, keys[0]))
    elif is_grid(result, keys):
        for variant in result.variants:
            console.print(_matrix(result, variant, keys))


def varied(result: ScenarioResult) -> list[str]:
    """The keys that have more than one value."""
    return [key for key in result.sweep if len({p.values.get(key) for p in result.points}) > 1]


def is_grid(result: ScenarioResult, keys: Sequence[str]) -> bool:
    """Whether two keys vary and every variant has nearly all of their combinations: a drawn design has few."""
    if len(keys) != 2:
        return False
    cells = len(levels(result, keys[0])) * len(levels(result, keys[1])) * len(result.variants)
    return cells <= 2 * len(result.points)


def levels(result: ScenarioResult, key: str) -> list[Value]:
    """The values of a key, numbers in their order and words as they came."""
    values = list(dict.fromkeys(p.values[key] for p in result.points))
    axis = axis_of(key, values)
    return (
        values
        if axis.words
        else [value for _, value in sorted(zip(axis.at, values, strict=True), key=lambda v: v[0])]
    )


def _along(result: ScenarioResult, key: str) -> Sheet:
    """A row for each value of the only key, a column for each variant."""
    sheet = Sheet(f"{plural(result.operation)} per second")
    sheet.add_column(short(key), justify="right")
    for variant in result.variants:
        sheet.add_column(variant, justify="right")
        sheet.add_column("±", leaves=1, justify="right")
    at = {(p.variant, p.values[key]): p.throughput for p in result.points}
    for value in levels(result, key):
        cells = [at.get((variant, value)) for variant in result.variants]
        shown = [
            part for c in cells for part in (plain(c.mean if c else None), plus_minus(c).removeprefix("± "))
        ]
        sheet.add_row(str(value), *shown)
    return sheet


def _matrix(result: ScenarioResult, variant: str, keys: Sequence[str]) -> Sheet:
    """Throughput over two keys, the one with more values down."""
    down, across = sorted(keys, key=lambda key: -len(levels(result, key)))
    sheet = Sheet(
        f"{result.title(variant)}: {plural(result.operation)} per second over {short(down)} and {short(across)}"
    )
    sheet.add_column(f"{short(down)} \\ {short(across)}", justify="right")
    for value in levels(result, across):
        sheet.add_column(str(value), justify="right")
    at = {(p.values[down], p.values[across]): p.throughput.mean for p in result.of(variant)}
    for row in levels(result, down):
        sheet.add_row(str(row), *(plain(at.get((row, value))) for value in levels(result, across)))
    return sheet


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


def _throughput(point: PointResult) -> str:
    return f"{plain(point.throughput.mean)} {plus_minus(point.throughput)}"


def _where(point: PointResult) -> str:
    return ", ".join(f"{short(key)}={value}" for key, value in point.values.items())
