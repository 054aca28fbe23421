"""What all reports on the terminal have in common."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

WIDTH = 118
"""Columns a report is laid out for where the output is no terminal."""


def report_console(width: int = WIDTH) -> Console:
    """Standard output for reports: names and titles are printed as they are, whatever brackets and colons they have.

    `width` is for what is no terminal, or one that does not know how wide it is.
    """
    there = Console()
    known = there.is_terminal and there.width > 0
    return Console(width=None if known else width, highlight=False, markup=False, emoji=False)


def new_table(title: str) -> Table:
    """An empty table in the style of all reports."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.padding = (0, 1, 0, 0)
    return table
