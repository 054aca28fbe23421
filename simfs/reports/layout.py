"""What all reports on the terminal have in common: where they go, and tables that hold at every width."""

from __future__ import annotations

import os
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from simfs.reports.numbers import folded

WIDTH = 118
"""Columns a report is laid out for where the output is no terminal."""

WIDE = 10_000
"""Columns that are enough for every table."""

GAP = 1
"""Blanks between columns."""

TALLEST = 40
"""Lines of a cell that a layout is still looked for with."""


class ReportConsole(Console):
    """Standard output for reports; `columns` are the only ones of tables that are shown, where there are any."""

    def __init__(self, width: int | None, columns: Sequence[str] = ()) -> None:
        """Names and titles are printed as they are, whatever brackets and colons they have."""
        super().__init__(width=width, highlight=False, markup=False, emoji=False)
        self.columns = tuple(columns)

    def print(self, *objects: Any, **how: Any) -> None:  # noqa: ANN401
        """Print; where the output is no terminal, without blanks at the ends of lines."""
        if self.is_terminal:
            super().print(*objects, **how)
            return
        with self.capture() as caught:
            super().print(*objects, **how)
        self.file.write("\n".join(line.rstrip() for line in caught.get().split("\n")))


def report_console(*, wide: bool = False, columns: Sequence[str] = ()) -> Console:
    """Standard output for reports, as wide as the terminal or as `COLUMNS` says, else `WIDTH` columns.

    `wide` is for tables in full, however wide the terminal is.
    """
    there = Console()
    known = (there.is_terminal or os.environ.get("COLUMNS", "").isdecimal()) and there.width > 0
    return ReportConsole(WIDE if wide else None if known else WIDTH, columns)


@dataclass
class _Column:
    name: str
    leaves: int
    options: dict[str, Any]
    names_rows: bool = False
    cells: list[str] = field(default_factory=list)

    @property
    def called(self) -> str:
        """The name as it is typed: in one line, and without the list of parts in `holder %:` and its parts."""
        return self.name.partition(":")[0].replace("-\n", "-").replace("\n", " ")

    @property
    def is_text(self) -> bool:
        """Text is folded where it must be; numbers and short words never are."""
        return self.options.get("justify") != "right" and not self.options.get("no_wrap")

    @property
    def widest(self) -> int:
        return max(_longest(self.name.split("\n")), _longest(self._lines()))

    @property
    def narrowest(self) -> int:
        """Without a word broken or a number folded."""
        return max(_longest(self.name.split()), _longest(self._words() if self.is_text else self._lines()))

    def within(self, lines: int) -> int:
        """The least width at which each cell takes no more than so many lines."""
        widths = range(self.narrowest, max(self.narrowest, self.widest))
        fits = bisect(widths, False, key=lambda width: all(_height(c, width) <= lines for c in self.cells))
        return self.narrowest + fits

    def _lines(self) -> list[str]:
        return [line for cell in self.cells for line in cell.split("\n")]

    def _words(self) -> list[str]:
        return [word for cell in self.cells for word in cell.split()]


class Sheet:
    """A table that holds at every width: columns that matter less leave, text is folded, numbers never are."""

    def __init__(self, title: str = "") -> None:
        """Begin a table without columns."""
        self.title = title
        self.columns: list[_Column] = []
        self._rows: list[dict[str, Any]] = []

    def add_column(
        self,
        name: str,
        *,
        leaves: int = 0,
        names_rows: bool = False,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Add a column; those with the highest `leaves` leave first and together, those with 0 stay.

        Text that stays says what a row is about, and so does a number or a short word with `names_rows`.
        """
        self.columns.append(_Column(name, leaves, options, names_rows))

    def add_row(self, *cells: str, **options: Any) -> None:  # noqa: ANN401
        """Add a row; options are those of rich's."""
        for column, cell in zip(self.columns, cells, strict=True):
            column.cells.append(cell)
        self._rows.append(options)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text | Table]:
        """Lay the table out for a console, with its title above, which may be wider than the table.

        A table with none of the only columns that the console shows is left out.
        """
        only = getattr(console, "columns", ())
        if only and not any(column.called in only for column in self.columns):
            return
        if self.title:
            yield Text(self.title, style="bold")
        yield self.laid_out(options.max_width, only)

    def laid_out(self, width: int, only: Sequence[str] = ()) -> Table:
        """The table for a width; of the columns `only` these, where there are any, and those that always stay first."""
        shown = [column for column in self.columns if not only or column.called in only or _names(column)]
        while _needed(shown) > width and (last := max((c.leaves for c in shown), default=0)):
            shown = [column for column in shown if column.leaves < last]
        table = Table(box=SIMPLE_HEAD)
        table.padding = (0, GAP, 0, 0)
        for column, room in zip(shown, _shared_out(shown, width), strict=True):
            table.add_column(
                folded(column.name, room), width=room, overflow="fold", **_without(column.options)
            )
        for row, options in enumerate(self._rows):
            table.add_row(*(Text(column.cells[row]) for column in shown), **options)
        return table


def _names(column: _Column) -> bool:
    """Whether a column says what a row is about: text that stays, or what says so."""
    return column.names_rows or (column.is_text and not column.leaves)


def _needed(columns: Sequence[_Column]) -> int:
    return sum(column.narrowest for column in columns) + _around(columns)


def _around(columns: Sequence[_Column]) -> int:
    return 1 + GAP * len(columns) + 1 + max(0, len(columns) - 1)


def _shared_out(columns: Sequence[_Column], width: int) -> list[int]:
    """Widths: each column's narrowest, and what is left so that the tallest cell is as low as it can be.

    What is left then goes to those that would like more, the narrowest first.
    """
    rooms = [column.narrowest for column in columns]
    left = width - _around(columns) - sum(rooms)
    texts = sorted((i for i, c in enumerate(columns) if c.is_text), key=lambda i: columns[i].widest)
    numbers = [i for i, c in enumerate(columns) if not c.is_text]
    for wanted in (*_ever_taller(columns, texts, left), [c.widest for c in columns]):
        for at in (*numbers, *texts):
            more = max(0, min(left, wanted[at] - rooms[at]))
            rooms[at] += more
            left -= more
    while left < 0 and any(_can_fold(c, room) for c, room in zip(columns, rooms, strict=True)):
        foldable = [i for i, c in enumerate(columns) if _can_fold(c, rooms[i])]
        rooms[max(foldable, key=lambda i: rooms[i])] -= 1
        left += 1
    return rooms


def _ever_taller(columns: Sequence[_Column], texts: Sequence[int], left: int) -> Iterator[list[int]]:
    """The widths with which no cell takes more lines than it must, if folding to some height makes them fit."""
    for lines in range(1, TALLEST + 1):
        wanted = [c.within(lines) if i in texts else c.narrowest for i, c in enumerate(columns)]
        if sum(wanted) <= left + sum(column.narrowest for column in columns):
            yield wanted
            return


def _can_fold(column: _Column, room: int) -> bool:
    return column.is_text and room > 6


def _height(text: str, width: int) -> int:
    """The lines that a text takes, folded between words."""
    return sum(max(1, len(wrap(line, width, break_on_hyphens=False))) for line in text.split("\n"))


def _longest(lines: Sequence[str]) -> int:
    return max(map(cell_len, lines), default=0)


def _without(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in ("overflow", "no_wrap", "ratio")}


def new_table(title: str) -> Sheet:
    """An empty table in the style of all reports."""
    return Sheet(title)
