"""The names of a report's columns: of one that is there, and of one before anything is run for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simfs.experiments.answer import operation_of
from simfs.reports.layout import Sheet
from simfs.reports.text import sheets
from simfs.reports.tournament import heads
from simfs.results.model import ScenarioResult, short
from simfs.results.tournament import LOCK
from simfs.scenario import Point


def columns_of(result: ScenarioResult) -> list[str]:
    """Names of all columns of a report, each once."""
    return _called(sheets(result))


def columns_to_come(sweep: Sequence[str], points: Sequence[Point]) -> list[str]:
    """Names of all columns that a report on these points can have; some of them may turn out to be empty."""
    blank = ScenarioResult(name="", operation=operation_of(points), sweep=(), points=(), unmatched=())
    counts = sorted({point.scenario.tasks for point in points})
    compared = [heads(counts)] if LOCK in sweep else []
    side_by_side = [str(point.values.get(sweep[0])) for point in points if sweep]
    return list(
        dict.fromkeys([*_called([*sheets(blank), *compared]), *(short(key) for key in sweep), *side_by_side])
    )


def _called(tables: Iterable[Sheet]) -> list[str]:
    return list(dict.fromkeys(column.called for table in tables for column in table.columns))
