"""Where the texts of a figure lie, and that none lies over another or outside."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from simfs.reports.figures.drawing import style


def beyond_view(axis: Axis) -> list[Text]:
    """Tick labels that exist but are not drawn, because their ticks lie outside the axes."""
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=False)
    return [label for place, label in ticks if not low <= place <= high]


@cache
def boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Where each visible text of a figure lies, in pixels."""
    with style():  # all of it: who asks for ticks later, with other fonts, is given other ticks
        figure.draw_without_rendering()
        axes = [axis for each in figure.axes for axis in (each.xaxis, each.yaxis)]
        beyond = {id(t) for axis in axes for t in beyond_view(axis)}
        hidden = [each for each in figure.axes if not each.get_visible()]
        beyond |= {id(t) for each in hidden for t in each.findobj(Text)}
        every = [t for t in figure.findobj(Text) if isinstance(t, Text) and id(t) not in beyond]
        texts = [t for t in every if t.get_visible() and t.get_text()]
        found = [(t.get_text(), t.get_window_extent()) for t in texts]
        return [(name, box) for name, box in found if box.width > 0]


def assert_no_overlap(figure: Figure) -> None:
    found = boxes(figure)
    page = figure.bbox.padded(1)
    for name, box in found:
        assert page.contains(box.x0, box.y0), name
        assert page.contains(box.x1, box.y1), name
    assert not overlapping(found)


def overlapping(found: list[tuple[str, Bbox]]) -> list[tuple[str, str]]:
    """The texts of which one lies over the other, by a pixel at least in both directions."""
    low = np.array([box.min for _, box in found])
    high = np.array([box.max for _, box in found])
    # All pairs at once: a heat map has hundreds of texts, and matplotlib intersects two boxes at a time.
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    pairs = np.argwhere(np.triu((shared >= 1).all(axis=2), k=1))
    return [(found[one][0], found[other][0]) for one, other in pairs]
