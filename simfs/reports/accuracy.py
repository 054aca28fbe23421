"""How far predictions were from what others measured: what one without a measurement beside it is worth.

docs/predictions.py scores all data sets that were published by others and writes `accuracy.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from simfs.results.run_result import Strict

FILE = Path(__file__).with_name("accuracy.json")

ENOUGH = 20
"""Throughputs below which nothing is said of a filesystem."""


class Level(Strict):
    """By which factor throughputs were off, up or down."""

    rows: int
    half: float
    """Half of them lie within this factor."""
    most: float
    """Nine of ten do."""


class Direction(Strict):
    """Changes between two versions, predicted to be smaller than `below` per cent and not in a class before."""

    below: float | None
    """None: all that are larger."""
    changes: int
    right: int


class Accuracy(Strict):
    """The record: levels by filesystem, of data sets where something was fitted and of those where nothing was."""

    fitted: dict[str, Level]
    unfitted: dict[str, Level]
    directions: tuple[Direction, ...]


@cache
def recorded() -> Accuracy:
    """The record that comes with the package."""
    return Accuracy.model_validate_json(FILE.read_text("utf-8"))


def levels(filesystems: Iterable[str], *, fitted: bool) -> Iterator[str]:
    """How far throughputs were off on these kinds of filesystem, a sentence each."""
    known = recorded().fitted if fitted else recorded().unfitted
    for name in filesystems:
        if (level := known.get(name)) and level.rows >= ENOUGH:
            where = "without a filesystem" if name == "none" else f"on {name}"
            how = "after a fit" if fitted else "without a fit"
            yield (
                f"how far off: of {level.rows} throughputs that others measured {where}, predicted {how}, half lie "
                f"within a factor of {level.half:.2f} of the prediction, nine of ten within {level.most:.1f}"
            )


def directions() -> str:
    """How often a change between two versions went the predicted way, by the size of what was predicted."""
    parts, low = [], 0.0
    for each in recorded().directions:
        size = f"above {low:g} %" if each.below is None else f"below {each.below:g} %"
        parts.append(f"{size} {100 * each.right / each.changes:.0f} % of {each.changes}")
        low = each.below or low
    return f"Of changes that others measured these went the way predicted, by predicted size: {', '.join(parts)}."
