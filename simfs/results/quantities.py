"""Swept values as numbers: '15 ms' in a scenario is 15e6 in the column `..._ns` of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simfs.results.model import Value
from simfs.scenario.sections.units import duration, percentage, size

_UNITS: dict[str, Callable[[object], float]] = {"_ns": duration, "_bytes": size, "_fraction": percentage}


def in_units(values: Sequence[Value | None]) -> tuple[str, list[float | None]] | None:
    """The ending a column's name gets, and the numbers; None unless all are quantities of one unit.

    Values that are absent stay so. A column of plain numbers or words has no unit.
    """
    given = [value for value in values if value is not None]
    if not given or not all(isinstance(value, str) for value in given):
        return None
    for ending, read in _UNITS.items():
        try:
            return ending, [None if value is None else read(value) for value in values]
        except ValueError:
            continue
    return None
