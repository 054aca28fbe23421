"""Curves of a lesson: simulated, measured, computed by hand and guessed, in one picture."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from simfs.reports.figures.drawing import DASHES, MARKERS, OKABE_ITO, from_zero, new_figure, style, thousands
from simfs.reports.numbers import plain

Kind = Literal["simulated", "measured", "by hand", "bound", "guess"]
Place = int | float | str


@dataclass(frozen=True)
class Line:
    """One curve; a measured one has the colour of the simulated one of the same name."""

    name: str
    values: Mapping[Place, float] | Mapping[str, float]
    kind: Kind = "simulated"

    @property
    def label(self) -> str:
        """What the legend says."""
        return self.name if self.kind in ("guess", "by hand", "bound") else f"{self.name}, {self.kind}"


def lines(
    curves: Sequence[Line], x: str, y: str, *, log_x: bool = False, log_y: bool = False, title: str = ""
) -> Figure:
    """Curves over numbers, or over names where places are no numbers; axes are labelled `x` and `y`."""
    with style():
        figure = new_figure(6.4, 3.8)
        axes = figure.add_subplot()
        draw(axes, curves, log_x=log_x, log_y=log_y)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_title(title, loc="left")
        figure.legend(loc="outside lower center", ncols=2, handlelength=3.2)
        return figure


def draw(axes: Axes, curves: Sequence[Line], *, log_x: bool = False, log_y: bool = False) -> None:
    """The curves alone."""
    names = list(dict.fromkeys(str(at) for line in curves for at in line.values))
    numeric = all(_is_number(name) for name in names)
    colours = {name: at for at, name in enumerate(dict.fromkeys(line.name for line in curves))}
    for line in curves:
        at = colours[line.name] % len(OKABE_ITO)
        xs = [float(place) if numeric else names.index(str(place)) for place in line.values]
        look = _look(line.kind, at)
        if not numeric:
            look["linestyle"] = "none"  # names have no order
        axes.plot(xs, list(line.values.values()), label=line.label, **look)
    if log_x:
        axes.set_xscale("log", base=2)
        ticks = sorted({float(name) for name in names})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    elif not numeric:
        axes.set_xticks(range(len(names)), [spaced(name) for name in names])
    elif all(float(name).is_integer() for name in names):
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 4, 8, 10], integer=True))
    if log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        from_zero(axes)
    thousands(axes)


def spaced(place: str) -> str:
    """A quantity with the space before its unit that guesses leave out; names stay as they are."""
    return re.sub(r"^([\d.]+)([a-zA-Z]+)$", r"\1 \2", place)


def _look(kind: Kind, at: int) -> dict[str, Any]:
    colour = OKABE_ITO[at]
    if kind == "simulated":
        return {"linestyle": DASHES[at], "marker": MARKERS[at], "color": colour}
    if kind == "measured":
        return {"linestyle": "none", "marker": "h", "color": colour, "markersize": 9, "fillstyle": "none"}
    if kind == "by hand":
        return {"linestyle": "--", "color": "#000000", "linewidth": 1.0}
    if kind == "bound":
        return {"linestyle": DASHES[at], "color": "#777777", "linewidth": 0.9}
    return {"linestyle": ":", "marker": "x", "color": "#000000", "markersize": 7}


def scatter(places: Mapping[str, tuple[float, float]], front: Sequence[str], x: str, y: str) -> Figure:
    """Designs by two figures, both of which should be high; those on the Pareto front are joined.

    Labels of neighbours stand on top of each other, the leftmost highest.
    """
    with style():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        joined = sorted(places[name] for name in front)
        axes.plot(*zip(*joined, strict=True), color="#777777", linewidth=1.0, drawstyle="steps-pre", zorder=1)
        for name, (right, up) in places.items():
            best = name in front
            axes.plot(right, up, "o" if best else "s", color=OKABE_ITO[0 if best else 1], markersize=6)
        for name, place in places.items():
            above = 5 + 11 * _crowd(name, places)
            axes.annotate(name, place, (0, above), textcoords="offset points", fontsize=8, ha="right")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.margins(0.2)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        return figure


def _crowd(name: str, places: Mapping[str, tuple[float, float]]) -> int:
    """How many stand close by on the right: a label for each of them is below."""
    wide, high = (max(axis) - min(axis) or 1.0 for axis in zip(*places.values(), strict=True))
    x, y = places[name]
    return sum(
        (0 <= a - x < wide / 4 or a == x) and abs(b - y) < high / 10 and (a, other) > (x, name)
        for other, (a, b) in places.items()
    )


def pareto(places: Mapping[str, tuple[float, float]]) -> list[str]:
    """Names of those that no other is at least as good as in both and better in one; high is good."""
    return [
        name
        for name, own in places.items()
        if not any(a >= own[0] and b >= own[1] and (a, b) != own for a, b in places.values())
    ]


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
