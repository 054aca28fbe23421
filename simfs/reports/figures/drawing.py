"""How all figures look: colours that the colour-blind can tell apart, sizes for print, the same bytes every time.

Nothing here touches pyplot's global state.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from simfs.reports.numbers import folded, plain

DPI = 200
"""Resolution of PNG files."""

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Colours that people with any form of colour blindness can tell apart (Okabe and Ito, 2008)."""

MARKERS = "osD^vP*X"
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))

WIDE = 100
"""Ratio of the highest to the lowest throughput from which the axis is logarithmic."""

LABEL_LINES = 3
"""Lines of a label; of a longer name the middle is left out."""

FAR = 256
"""Ratio of the most to the fewest tasks from which their axis may be logarithmic."""

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
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


@contextmanager
def style() -> Iterator[None]:
    """The look of all figures, also needed while saving; restores what was set before."""
    with mpl.rc_context(STYLE):
        yield


class Shown(Figure):
    """A figure that notebooks show as it is written to files, with or without pyplot."""

    def _repr_png_(self) -> bytes:
        return png(self)


def new_figure(width: float, height: float) -> Figure:
    """A figure of this size in inches that belongs to nobody's global state."""
    figure = Shown(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Figure) -> bytes:
    """The figure as PNG."""
    return _saved(figure, "png")


def svg(figure: Figure) -> bytes:
    """The figure as SVG whose text is text, without date and with reproducible ids."""
    return _saved(figure, "svg")


def pdf(figure: Figure) -> bytes:
    """The figure as PDF for papers, its fonts embedded, without date."""
    return _saved(figure, "pdf")


def pictures(name: str, figure: Figure) -> dict[str, bytes]:
    """The files of a figure by name: for screens, for editing, for papers. All have the layout of the first.

    To lay a figure out takes longer than to draw it.
    """
    first = png(figure)
    layout = figure.get_layout_engine()
    figure.set_layout_engine(None)
    files = {"png": first, "svg": svg(figure), "pdf": pdf(figure)}
    figure.set_layout_engine(layout)
    return {f"figures/{name}.{ending}": data for ending, data in files.items()}


def _saved(figure: Figure, form: str) -> bytes:
    out = io.BytesIO()
    metadata = {
        "png": {"Software": "simfs"},
        "svg": {"Date": None, "Creator": "simfs"},
        "pdf": {"CreationDate": None, "Creator": "simfs", "Producer": "simfs"},
    }[form]
    with style():
        figure.savefig(out, format=form, dpi=DPI, metadata=metadata)
    return out.getvalue()


def from_zero(axes: Axes) -> None:
    """Begin the y axis at 0, with room for marks above the highest that was drawn."""
    axes.set_ylim(0, 1.06 * axes.dataLim.ymax or 1)


def thousands(axes: Axes) -> None:
    """Numbers of the y axis as text has them."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: plain(y)))


def label(text: str, width: int, lines: int = LABEL_LINES) -> str:
    """A name in at most so many lines of `width` characters: too long words are broken, the middle is left out."""
    shown = _broken(text, width)
    for room in range(lines * width, 0, -1):
        if shown.count("\n") < lines:
            break
        head = room * 2 // 3
        shown = _broken(f"{text[:head].rstrip()} ... {text[head - room :].lstrip()}", width)
    return shown


def _broken(text: str, width: int) -> str:
    return folded(re.sub(rf"\S{{{width}}}(?=\S)", r"\g<0> ", text), width)


def more_lines(labels: Iterable[str]) -> int:
    """Lines that the tallest of some labels has besides its first."""
    return max((text.count("\n") for text in labels), default=0)


def over_tasks(axes: Axes, counts: Sequence[int], ticks: int = 8) -> None:
    """The axis of numbers of tasks: from 0, or logarithmic where most of them would stand in its first eighth."""
    most = max(counts)
    if most >= FAR * min(counts) and median(sorted(set(counts))) < most / 8:
        axes.set_xscale("log", base=2)
        axes.set_xlim(min(counts) / 1.2, most * 1.2)
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
        return
    axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 4, 8], integer=True))


def unique(axes: Axes) -> tuple[list[Artist], list[str]]:
    """Handles and labels of a legend, each label once, in order of appearance."""
    handles, labels = axes.get_legend_handles_labels()
    seen = dict(zip(reversed(labels), reversed(handles), strict=True))
    names = list(dict.fromkeys(labels))
    return [seen[name] for name in names], names
