"""Figures of a validation: of each data set measured against predicted, and the errors of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simfs.reports.figures.drawing import (
    DASHES,
    MARKERS,
    OKABE_ITO,
    WIDE,
    from_zero,
    new_figure,
    style,
    unique,
)
from simfs.reports.numbers import folded, plain
from simfs.reports.validate import error
from simfs.results.model import short
from simfs.results.validation import Row, Validated, score

GREY = "#555555"
BANDS = ((30, "#F2F2F2"), (10, "#DDDDDD"))
"""Relative errors in per cent that are shaded, the wider first."""

ROLES = {
    "predict": ("predicted", OKABE_ITO[0]),
    "calibrate": ("calibration row", OKABE_ITO[4]),
    "info": ("for information", OKABE_ITO[7]),
}
MAX_ROWS = 40
"""Rows that are named one by one; more make a scatter."""

MAX_SERIES = len(MARKERS)
SPAN = 100
"""Errors, in per cent, beyond which the overview shows only the direction."""

ALSO_WIDE = 10
"""Ratio of the highest to the lowest value from which an axis is logarithmic over one that is: so all errors show."""

Draw = Callable[[Axes, Sequence[Row], str], None]


def figures(found: Sequence[Validated]) -> dict[str, Figure]:
    """A figure for each data set with predictions, named like it, and `overview`."""
    known = [each for each in found if any(row.predicted is not None for row in each.rows)]
    drawn = {each.dataset: dataset(each) for each in known}
    return drawn | ({"overview": overview(known)} if known else {})


def dataset(each: Validated) -> Figure:
    """Measured against predicted, a panel a metric: over x where there are curves, else row by row."""
    rows = [row for row in each.rows if row.predicted is not None]
    panels = [[row for row in rows if row.metric == m] for m in dict.fromkeys(row.metric for row in rows)]
    with style():
        drawers = [_drawer(panel) for panel in panels]
        heights = [_height(draw, panel) for draw, panel in zip(drawers, panels, strict=True)]
        figure = new_figure(7.2, 1.2 + sum(heights))
        grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, draw, panel in zip(grid, drawers, panels, strict=True):
            draw(axes, panel, short(each.x))
            axes.set_title(f"{panel[0].metric} ({panel[0].unit})", loc="left")
        figure.suptitle(folded(each.title, 105), fontsize=9, x=0.01, ha="left")
        shown = dict(pair for axes in grid for pair in zip(*reversed(unique(axes)), strict=True))
        columns = 2 if _curves in drawers else 4
        look: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "handlelength": 3.4}
        figure.legend(list(shown.values()), list(shown), **look)
        return figure


def overview(found: Sequence[Validated]) -> Figure:
    """The error of every row to be predicted, a line a data set, the median marked."""
    with style():
        figure = new_figure(7.2, 1.4 + 0.34 * len(found))
        axes = figure.add_subplot()
        for percent, colour in BANDS:
            axes.axvspan(-percent, percent, color=colour, linewidth=0, zorder=0, label=f"within {percent} %")
        axes.axvline(0, color=GREY, linewidth=0.9, zorder=1)
        for place, each in enumerate(found):
            _errors(axes, place, each)
        names = [f"{each.dataset} {_signs(each)}".rstrip() for each in found]
        axes.set_yticks(range(len(found)), names)
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.set_xlim(-SPAN - 8, SPAN + 8)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("predicted - measured, % of measured (in brackets: right signs of change)", x=0.3)
        figure.legend(*unique(axes), loc="outside upper center", ncols=3)
        return figure


def _errors(axes: Axes, place: int, each: Validated) -> None:
    rows = [row for row in each.rows if row.role == "predict" and row.predicted is not None]
    errors = [100 * row.error for row in rows if row.unit != "%" and row.error is not None]
    points = [row.predicted - row.measured for row in rows if row.unit == "%" and row.predicted is not None]
    inside = [e for e in errors if abs(e) <= SPAN]
    look: dict[str, Any] = {"linestyle": "none", "color": OKABE_ITO[0], "alpha": 0.7, "zorder": 3}
    axes.plot(
        inside, [place] * len(inside), marker="o", markersize=4.5, markeredgewidth=0, label="a row", **look
    )
    axes.plot(
        points, [place + 0.2] * len(points), marker="d", markersize=4.5, markerfacecolor="none", linestyle="none",
        color=OKABE_ITO[3], label="a row in per cent, difference in points", zorder=3,
    )  # fmt: skip
    for beyond, marker in ((1, ">"), (-1, "<")):
        at, count = beyond * (SPAN + 3), sum(beyond * e > SPAN for e in errors)
        if count:
            axes.plot([at], [place], marker=marker, markersize=6, label=f"rows beyond {SPAN} %", **look)
            axes.annotate(
                str(count), (at, place), xytext=(beyond * 6, -3), textcoords="offset points", fontsize=7,
                ha="left" if beyond > 0 else "right", color=GREY, annotation_clip=False,
            )  # fmt: skip
    if errors and abs(median(errors)) <= SPAN:
        axes.plot(
            [median(errors)], [place], marker="|", markersize=15, markeredgewidth=2.2, color=OKABE_ITO[1],
            linestyle="none", label="median", zorder=4,
        )  # fmt: skip


def _signs(each: Validated) -> str:
    s = score(each.rows)
    return f"({s.right}/{s.changes})" if s.changes else ""


def _drawer(rows: Sequence[Row]) -> Draw:
    places: Mapping[str, set[float]] = {
        name: {row.x for row in rows if row.series == name} for name in {row.series for row in rows}
    }
    if max(map(len, places.values())) >= 3 and len(places) <= MAX_SERIES:
        return _curves
    return _named if len(rows) <= MAX_ROWS else _scatter


def _height(draw: Draw, rows: Sequence[Row]) -> float:
    """Inches a panel needs."""
    if draw is _named:
        return 0.6 + 0.3 * len(rows)
    return 3.4 + 0.08 * len({row.series for row in rows}) if draw is _curves else 3.8


def _curves(axes: Axes, rows: Sequence[Row], x_name: str) -> None:
    """A line of predictions with its interval for each series, markers for what was measured."""
    for index, name in enumerate(dict.fromkeys(row.series for row in rows)):
        _series(axes, name, sorted((row for row in rows if row.series == name), key=lambda row: row.x), index)
    grey: dict[str, Any] = {
        "marker": "o",
        "linestyle": "none",
        "markeredgecolor": GREY,
        "markeredgewidth": 1.4,
    }
    axes.plot([], [], markerfacecolor="white", label="measured (lines: predicted)", **grey)
    if any(row.role == "calibrate" for row in rows):
        axes.plot([], [], markerfacecolor=GREY, label="measured, calibration row", **grey)
    axes.set_xlabel(x_name)
    values = [value for row in rows for value in (row.measured, _said(row))]
    positive = [value for value in values if value > 0]
    places = sorted({row.x for row in rows})
    doubles = places[0] > 0 and places[-1] >= 16 * places[0]
    if positive and max(positive) > (ALSO_WIDE if doubles else WIDE) * min(positive):
        axes.set_yscale("log")
        axes.set_ylim(0.7 * min(positive), 1.4 * max(positive))
        if max(positive) <= WIDE * min(positive):
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        from_zero(axes)
    if doubles:
        axes.set_xscale("log", base=2)
        axes.set_xticks(_apart(places))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: plain(y)))


def _series(axes: Axes, name: str, curve: Sequence[Row], index: int) -> None:
    colour, x = OKABE_ITO[index], [row.x for row in curve]
    low, high = zip(*map(_ends, curve), strict=True)
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, [_said(row) for row in curve], color=colour, linestyle=DASHES[index])
    look: dict[str, Any] = {"marker": MARKERS[index], "markersize": 6, "markeredgecolor": colour}
    look |= {"markeredgewidth": 1.4, "zorder": 4}
    for row in curve:
        face = colour if row.role == "calibrate" else "white"
        front = {"zorder": 5} if row.role == "calibrate" else {}  # it is often alone, and under others
        axes.plot([row.x], [row.measured], markerfacecolor=face, linestyle="none", **(look | front))
    label = folded(name, 48)
    axes.plot([], [], color=colour, linestyle=DASHES[index], markerfacecolor="white", label=label, **look)


def _apart(places: Sequence[float]) -> list[float]:
    """Those of the rising places of a logarithmic axis whose labels have room beside each other."""
    room = (places[-1] / places[0]) ** (1 / 16)
    kept = [places[0]]
    for place in places[1:-1]:
        if room * kept[-1] <= place <= places[-1] / room:
            kept.append(place)
    return [*kept, places[-1]]


def _named(axes: Axes, rows: Sequence[Row], x_name: str) -> None:
    """A bar of the prediction and a diamond of the measurement for each row."""
    for place, row in enumerate(rows):
        name, colour = ROLES[row.role]
        axes.barh(
            place, _said(row), xerr=[[side] for side in _sides(row)], height=0.6, color=colour,
            hatch="//" if row.role == "calibrate" else "", edgecolor="white", linewidth=0,
            error_kw={"elinewidth": 1.2, "capsize": 2.5}, label=name,
        )  # fmt: skip
        axes.plot(
            [row.measured], [place], marker="D", markersize=6.5, markerfacecolor="white", markeredgecolor="#000000",
            markeredgewidth=1.3, linestyle="none", label="measured", zorder=4, clip_on=False,
        )  # fmt: skip
        right = max(row.measured, _ends(row)[1])
        axes.annotate(
            error(row), (right, place), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8
        )
    several = len({row.x for row in rows}) > 1
    names = [f"{row.series}, {row.x:g} {x_name}" if several else row.series for row in rows]
    axes.set_yticks(range(len(rows)), [name if len(name) <= 48 else f"{name[:47]}…" for name in names])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.2 * max(max(row.measured, _ends(row)[1]) for row in rows) or 1)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))


def _scatter(axes: Axes, rows: Sequence[Row], x_name: str) -> None:
    """Every row as a point beside the line of equality; percentages apart on logarithmic axes, zeros at their edge."""
    values = [value for row in rows for value in (row.measured, _said(row))]
    positive = [value for value in values if value > 0]
    logarithmic = rows[0].unit != "%" and bool(positive)
    line = [0.8 * min(positive), 1.25 * max(positive)] if logarithmic else [0.0, 1.05 * max(values) or 1.0]
    for percent, colour in BANDS:
        low, high = ([(1 + side * percent / 100) * v for v in line] for side in (-1, 1))
        axes.fill_between(line, low, high, color=colour, linewidth=0, label=f"within {percent} %")
    axes.plot(line, line, color=GREY, linewidth=0.9)
    for index, (role, (name, colour)) in enumerate(ROLES.items()):
        shown = [row for row in rows if row.role == role]
        if shown:
            sides = list(zip(*map(_sides, shown), strict=True))
            axes.errorbar(
                [max(row.measured, line[0]) for row in shown], [max(_said(row), line[0]) for row in shown],
                yerr=sides, fmt=MARKERS[index], markersize=4.5, alpha=0.8, color=colour, elinewidth=0.9,
                linestyle="none", label=name, clip_on=False,
            )  # fmt: skip
    for scale, limits, axis in (
        (axes.set_xscale, axes.set_xlim, axes.xaxis),
        (axes.set_yscale, axes.set_ylim, axes.yaxis),
    ):
        if logarithmic:
            scale("log")
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if line[1] < 100 * line[0] else (1,)))
            axis.set_minor_formatter(NullFormatter())
        limits(*line)
        axis.set_major_formatter(FuncFormatter(lambda v, _: plain(v)))
    axes.set_xlabel("measured")
    axes.set_ylabel("predicted")


def _said(row: Row) -> float:
    assert row.predicted is not None  # only such rows are drawn
    return row.predicted


def _ends(row: Row) -> tuple[float, float]:
    value = _said(row)
    return (value if row.ci_low is None else row.ci_low, value if row.ci_high is None else row.ci_high)


def _sides(row: Row) -> tuple[float, float]:
    low, high = _ends(row)
    return max(0.0, _said(row) - low), max(0.0, high - _said(row))
