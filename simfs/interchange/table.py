"""Tables of people's own measurements: CSV with a line of headings, also what `simfs validate --format csv` prints.

A table is long (a column `series`, one for the number of tasks, one for the value) or wide (one for the number of
tasks, each other column a series). Nothing in it is skipped: a cell that cannot be read is told with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

from simfs.interchange.reading import BadCell, BadCellsError, Figure, Reading, count, number
from simfs.scenario.measured.dataset import Role
from simfs.scenario.measured.metrics import metric
from simfs.scenario.suggest import nearest

RATE = "operations_per_s"
"""What is measured where nothing else is said."""

WORDS = {
    "tasks": ("x", "tasks", "workload.tasks", "threads", "processes", "jobs", "clients", "nr_task"),
    "series": ("series", "variant"),
    "value": ("value", "measured"),
    "low": ("low", "min"),
    "high": ("high", "max"),
    "metric": ("metric",),
    "unit": ("unit",),
    "role": ("role",),
    "approx": ("approx",),
    RATE: ("ops/s", "ops/sec", "op/s", "ops_per_s", "ops", "operations/s", "throughput", "iops", "rate"),
}
"""What a column is for, by its heading in small letters."""

UNUSED = ("dataset", "predicted", "ci_low", "ci_high", "error", "usl", "nothing_changes", "counted", "note")
"""Columns of `simfs validate --format csv` that are no measurements."""

SERIES = "measured"
"""The series where a table names none."""

ROLE = "predict"
"""What rows are for where the table does not say it: to be scored, and fitted on never."""


@dataclass(frozen=True)
class Cell:
    """A text and where it stands."""

    line: int
    column: int
    text: str

    def bad(self, message: str, suggestion: str | None = None) -> BadCell:
        """What is wrong with it."""
        return BadCell(self.line, self.column, message, suggestion)


@dataclass(frozen=True)
class _Head:
    """The columns: what each is for, and what heads it."""

    uses: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def is_long(self) -> bool:
        """Whether values stand in one column, and another says what they are of."""
        return "value" in self.uses


def is_mine(text: str) -> bool:
    """Whether the first line has one heading for the number of tasks, and another column."""
    first = next(_rows(text), [])
    return len(first) > 1 and [_use(cell.text) for cell in first].count("tasks") == 1


def read(text: str) -> Reading:
    """Read every row; raises BadCellsError with the place of each cell that cannot be read."""
    rows = _rows(text)
    first = next(rows, None)
    if first is None:
        return Reading("table", 0, 0)
    head = _head(first)
    wrong: list[BadCell] = []
    figures: list[Figure] = []
    lines = 0
    for lines, row in enumerate(rows, 1):  # noqa: B007
        found, bad = _row(head, row)
        figures += found
        wrong += bad
    if wrong:
        raise BadCellsError(wrong)
    return Reading("table", len(figures) and lines, 0 if figures else lines, tuple(figures))


def _rows(text: str) -> Iterator[list[Cell]]:
    """The lines that have something in them, without comments, in cells; the first line says what parts these."""
    lines = [
        (at, line)
        for at, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1)
        if line.strip(" \t,;") and not line.lstrip().startswith("#")
    ]
    mark = next((mark for mark in ",;\t" if lines and mark in lines[0][1]), None)
    for at, line in lines:
        yield list(_cells(at, line, mark))


def _cells(at: int, line: str, mark: str | None) -> Iterator[Cell]:
    """The cells of a line, which may be quoted; without a mark, blanks part them."""
    pattern = rf'\s*("(?:[^"]|"")*"|[^{mark}]*)\s*(?:{mark}|$)' if mark else r"(\S+)(?:\s+|$)"
    for found in re.finditer(pattern, line):
        if found.start() == len(line) and not (mark and line.endswith(mark)):
            return
        bare = found[1].strip()
        quoted = len(bare) > 1 and bare[0] == bare[-1] == '"'
        yield Cell(at, found.start(1) + 1, bare[1:-1].replace('""', '"') if quoted else bare)


def _use(heading: str) -> str:
    word = heading.lower()
    return next((use for use, words in WORDS.items() if word in words), "")


def _head(cells: list[Cell]) -> _Head:
    uses = tuple(_use(cell.text) for cell in cells)
    is_long = "value" in uses
    named = tuple(
        use or ("unused" if cell.text.lower() in UNUSED else _metric(cell.text)) or ("" if is_long else "of")
        for use, cell in zip(uses, cells, strict=True)
    )
    head = _Head(named, tuple(cells))
    wrong = list(_head_problems(head))
    if wrong:
        raise BadCellsError(wrong)
    return head


def _metric(word: str) -> str:
    try:
        metric(word)
    except ValueError:
        return ""
    return word


def _head_problems(head: _Head) -> Iterator[BadCell]:
    first = head.cells[0]
    if "tasks" not in head.uses:
        words = ", ".join(WORDS["tasks"])
        yield first.bad(f"no column is the number of tasks; its heading is one of {words}")
    for at, (use, cell) in enumerate(zip(head.uses, head.cells, strict=True)):
        if not cell.text:
            yield cell.bad("a column has no heading")
        elif use in WORDS and use in head.uses[:at]:
            yield cell.bad(f"'{cell.text}' is the second column that is {use}")
        elif use == "":
            known = [*(word for words in WORDS.values() for word in words), *UNUSED]
            said = f"column '{cell.text}' is unknown in a table with a column of values"
            yield cell.bad(said, nearest(cell.text, known))
        elif use in ("low", "high") and sum(map(_has_values, head.uses)) > 1:
            yield cell.bad(f"'{cell.text}' goes with one column of values; give each value a line of its own")
    if not any(map(_has_values, head.uses)):
        yield first.bad("no column has values; its heading is value, a metric, or the name of a series")


_SIDE = ("tasks", "series", "low", "high", "metric", "unit", "role", "approx", "unused", "")


def _has_values(use: str) -> bool:
    return use not in _SIDE


def _row(head: _Head, row: list[Cell]) -> tuple[list[Figure], list[BadCell]]:
    """The figures of a line, and what is wrong with it."""
    if len(row) != len(head.cells):
        said = f"{len(row)} cells, where the line of headings has {len(head.cells)}"
        return [], [(row or head.cells)[-1].bad(said)]
    named = {use: cell for use, cell in zip(head.uses, row, strict=True) if use != "of"}
    wrong: list[BadCell] = []
    tasks = count(named["tasks"].text)
    if not tasks:
        wrong.append(
            named["tasks"].bad(f"'{named['tasks'].text}' is no number of tasks: a whole one from 1 on")
        )
    plain = _plain(named, wrong)
    return list(_values(head, row, replace(plain, tasks=tasks), wrong)), wrong


def _plain(named: dict[str, Cell], wrong: list[BadCell]) -> Figure:
    """What all figures of a line have in common."""
    low, high = (_number(named.get(side), wrong) for side in ("low", "high"))
    role = (named["role"].text if "role" in named else "") or ROLE
    if role not in get_args(Role):
        roles = get_args(Role)
        wrong.append(named["role"].bad(f"'{role}' is no role: {', '.join(roles)}", nearest(role, roles)))
    series = named["series"].text if "series" in named else SERIES
    approx = "approx" in named and named["approx"].text.lower() in ("true", "1", "yes")
    name = _named_metric(named, wrong)
    return Figure(series or SERIES, name, 0.0, low=low, high=high, role=role, approx=approx)


def _values(head: _Head, row: list[Cell], plain: Figure, wrong: list[BadCell]) -> Iterator[Figure]:
    """Each value of a line with its metric, and with its series where its column is one."""
    for use, heading, cell in zip(head.uses, head.cells, row, strict=True):
        if not _has_values(use):
            continue
        if use != "value" and cell.text in ("", "-"):
            continue  # not every series has every number of tasks
        value = _number(cell, wrong)
        if value is not None and not _lies_between(value, plain):
            wrong.append(cell.bad(f"{cell.text} lies outside its low and high"))
        elif value is not None:
            series = heading.text if use == "of" else plain.series
            name = plain.metric if use in ("of", "value") else use
            yield replace(plain, series=series, metric=name, value=value)
        elif cell.text in ("", "-"):
            wrong.append(cell.bad("has no value"))


def _lies_between(value: float, plain: Figure) -> bool:
    return (plain.low is None or plain.low <= value) and (plain.high is None or value <= plain.high)


def _named_metric(named: dict[str, Cell], wrong: list[BadCell]) -> str:
    """The metric that a line names, whose unit must be that of the line."""
    cell = named.get("metric")
    if cell is None or not cell.text:
        return RATE
    try:
        known = metric(cell.text)
    except ValueError as error:
        message, _, hint = str(error).partition("; did you mean '")
        wrong.append(cell.bad(message, hint.removesuffix("'?") or None))
        return RATE
    unit = named.get("unit")
    if unit is not None and unit.text not in ("", known.unit):
        wrong.append(unit.bad(f"{cell.text} is given in {known.unit}, not in '{unit.text}'"))
    return cell.text


def _number(cell: Cell | None, wrong: list[BadCell]) -> float | None:
    if cell is None or cell.text in ("", "-"):
        return None
    value = number(cell.text)
    if value is None or cell.text.endswith("%"):
        wrong.append(cell.bad(f"'{cell.text}' is no number: digits and a point, without a unit"))
        return None
    if value < 0:
        wrong.append(cell.bad(f"'{cell.text}' is less than nothing"))
        return None
    return value
