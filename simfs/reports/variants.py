"""The throughput of all variants side by side: the answer at a glance, before each variant's own table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from simfs.reports.layout import Sheet, new_table
from simfs.reports.numbers import NOTHING, plain, plural
from simfs.results.model import PointResult, ScenarioResult, short

Row = Mapping[object, PointResult]
"""Points of a variant by their value on the x axis."""


def side_by_side(result: ScenarioResult) -> Sheet:
    """A line a variant, and one for each value of a second swept key; a column for each value on the x axis.

    Where there is too little room, columns leave from the left.
    """
    axis = result.sweep[0]
    values = list(dict.fromkeys(point.values.get(axis) for point in result.points))
    table = new_table(f"{plural(result.operation)}/s by {short(axis)}")
    table.add_column("variant")
    for number, value in enumerate(values):
        table.add_column(str(value), leaves=len(values) - 1 - number, justify="right")
    for name, row in _rows(result, axis):
        table.add_row(name, *(plain(row[v].throughput.mean) if v in row else NOTHING for v in values))
    return table


def _rows(result: ScenarioResult, axis: str) -> Iterator[tuple[str, Row]]:
    for variant in result.variants:
        rows: dict[str, dict[object, PointResult]] = {}
        for point in result.of(variant):
            others = ", ".join(f"{short(k)} {v}" for k, v in point.values.items() if k != axis)
            rows.setdefault(others, {})[point.values.get(axis)] = point
        for others, row in rows.items():
            yield ", ".join(part for part in (result.title(variant), others) if part), row
