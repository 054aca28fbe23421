"""Sheets as tables of HTML: every cell escaped, what it sorts by beside it, columns of shares as bars."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape

from simfs.reports.layout import Sheet

Draw = Callable[[str], str]
"""HTML for a cell's text."""

NUMBER = re.compile(r"[~±(]*\s*([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(ns|us|ms|s\b)?")
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}

HOLDERS = ("running", "waiting for a CPU", "asleep", "waiting for a device")
"""What the parts of a holder's bar are, in the order of `holder_parts`."""


def table(sheet: Sheet, draw: Mapping[str, Draw] | None = None) -> str:
    """A sheet as a table; `draw` makes the cells of a column, by its name."""
    draw = draw or {}
    columns = [(column.name.replace("\n", " ").replace("- ", "-"), column) for column in sheet.columns]
    numeric = [column.options.get("justify") == "right" for _, column in columns]
    heads = "".join(
        f'<th scope="col"{_class(right)}>{escape(name.strip())}</th>'
        for (name, _), right in zip(columns, numeric, strict=True)
    )
    rows = []
    for row in range(len(sheet)):
        cells = [
            _cell(column.cells[row], at == 0, numeric[at], draw.get(name.strip()))
            for at, (name, column) in enumerate(columns)
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    caption = f"<caption>{escape(sheet.title)}</caption>" if sheet.title else ""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(sheet.title or "table")}">'
        f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _class(right: bool) -> str:
    return ' class="n"' if right else ""


def _cell(text: str, first: bool, right: bool, draw: Draw | None) -> str:
    shown = draw(text) if draw else escape(text).replace("\n", "<br>")
    tag = 'th scope="row"' if first else "td"
    key = sort_key(text)
    sorts = f' data-sort="{key:.12g}"' if key is not None else ""
    return f"<{tag}{_class(right)}{sorts}>{shown}</{tag.split()[0]}>"


def sort_key(text: str) -> float | None:
    """The number that a cell begins with, durations in seconds; None for words."""
    found = NUMBER.match(text)
    if not found:
        return None
    return float(found[1].replace(",", "")) * SECONDS.get(found[2] or "", 1.0)


def split_bar(text: str) -> str:
    """`12/80/8/0`, per cents of a holder's time, as a bar of four parts with its text beside it."""
    parts = text.split("/")
    if len(parts) != len(HOLDERS):
        return escape(text)
    said = ", ".join(f"{part} % {name}" for part, name in zip(parts, HOLDERS, strict=True))
    spans = "".join(
        f'<i class="h{at}" style="width:{part}%"></i>' for at, part in enumerate(parts) if part != "0"
    )
    return f'<span class="split" role="img" title="{said}" aria-label="{said}">{spans}</span> {escape(text)}'


def bar(most: float) -> Draw:
    """Draws a number as a bar, of which `most` is the whole."""

    def draw(text: str) -> str:
        part = min(100.0, 100 * max(sort_key(text) or 0.0, 0.0) / most) if most else 0.0
        return f'<span class="part" aria-hidden="true"><i style="width:{part:.1f}%"></i></span>{escape(text)}'

    return draw
