"""What all reports on the terminal have in common."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

WIDTH = 118
"""Columns a report is laid out for where the output is no terminal."""


def new_table(title: str) -> Table:
    """An empty table in the style of all reports."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.padding = (0, 1, 0, 0)
    return table
