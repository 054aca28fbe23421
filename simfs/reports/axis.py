"""What varies in a sweep, and where its values go on an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simfs.results.model import ScenarioResult, Value
from simfs.results.quantities import in_units

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
