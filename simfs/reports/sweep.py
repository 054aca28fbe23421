"""A sweep on the terminal and as a figure: throughput over every key that varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from simfs.reports.drawing import MARKERS, OKABE_ITO, new_figure, style, thousands, unique
from simfs.reports.figures import has_curve
from simfs.reports.layout import Sheet, report_console
from simfs.reports.numbers import plain, plural, plus_minus
from simfs.results.model import PointResult, ScenarioResult, Value, short
from simfs.results.quantities import in_units

MAX_PANELS = 8
WIDTH = 118

_READABLE = {
    "_ns": (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)),
    "_bytes": (("GiB", 2.0**30), ("MiB", 2.0**20), ("B", 1.0)),
}
"""Units an axis may have, by the ending of the column."""


@dataclass(frozen=True)
class _Axis:
    """Where the values of one key go on an axis."""

    label: str
    at: Sequence[float]
    words: Sequence[str] = ()


def sweep_figures(result: ScenarioResult) -> dict[str, Figure]:
    """The figure `factors`, where more or something else varies than a curve over tasks can show."""
    varied = [key for key in result.sweep if len({p.values.get(key) for p in result.points}) > 1]
    if not varied or (has_curve(result) and all(short(key) == "tasks" for key in varied)):
        return {}
    return {"factors": factors(result, varied[:MAX_PANELS])}


def factors(result: ScenarioResult, keys: Sequence[str]) -> Figure:
    """Throughput of every point over each of `keys`, a panel a key, a colour a variant."""
    with style():
        columns = min(len(keys), 2)
        rows = -(-len(keys) // columns)
        figure = new_figure(3.4 * columns + 0.6, 0.8 + 2.5 * rows)
        panels = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
        for axes, key in zip(panels, keys, strict=False):
            _scatter(axes, result, _axis(key, [p.values.get(key) for p in result.points]))
        for axes in panels[len(keys) :]:
            axes.set_visible(False)
        figure.supylabel(f"{plural(result.operation)} per second", fontsize=9)
        figure.legend(*unique(panels[0]), loc="outside lower center", ncols=2)
        return figure


def _scatter(axes: Axes, result: ScenarioResult, axis: _Axis) -> None:
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
    axes.set_ylim(bottom=0)
    if axis.words:
        axes.set_xticks(range(len(axis.words)), axis.words)
        axes.set_xlim(-0.5, len(axis.words) - 0.5)
    elif min(axis.at) > 0 and max(axis.at) > 30 * min(axis.at):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: plain(x)))
    thousands(axes)


def _axis(key: str, values: Sequence[Value | None]) -> _Axis:
    if quantities := in_units(values):
        ending, numbers = quantities
        largest = max(x for x in numbers if x is not None)
        unit, scale = next(((u, s) for u, s in _READABLE.get(ending, ()) if largest >= s), ("", 1.0))
        return _Axis(f"{key} ({unit})" if unit else key, [(x or 0.0) / scale for x in numbers])
    plain_numbers = [float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(plain_numbers) == len(values):
        return _Axis(key, plain_numbers)
    words = list(dict.fromkeys(map(str, values)))
    return _Axis(key, [float(words.index(str(v))) for v in values], words)


def print_sweep(result: ScenarioResult, console: Console | None = None) -> None:
    """Of each variant how many points there are, and where its throughput is lowest and highest."""
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


def _throughput(point: PointResult) -> str:
    return f"{plain(point.throughput.mean)} {plus_minus(point.throughput)}"


def _where(point: PointResult) -> str:
    return ", ".join(f"{short(key)}={value}" for key, value in point.values.items())
