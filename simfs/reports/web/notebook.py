"""What notebooks show of answers, what-ifs and locks: the tables of a report, which need no script."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from simfs.experiments.briefing import waited
from simfs.experiments.whatif import WhatIf
from simfs.reports import whatif as what_if_report
from simfs.reports.layout import Sheet
from simfs.reports.numbers import plain, plural, plus_minus
from simfs.reports.web import locks
from simfs.reports.web.tables import table
from simfs.results.focus import focus
from simfs.results.model import ScenarioResult
from simfs.scenario.suggest import choices

MOST_ROWS = 60

STYLE = Path(__file__).with_name("notebook.css").read_text("utf-8")


@dataclass(frozen=True, repr=False)
class Shown:
    """Something that a notebook shows."""

    title: str
    html: str

    def __repr__(self) -> str:
        """Say what it is."""
        return f"<{self.title}>"

    def _repr_html_(self) -> str:
        return self.html


def framed(title: str, parts: Iterable[str]) -> str:
    """Parts under a title, with the style of tables."""
    return f'<div class="simfs"><style>{STYLE}</style><p><b>{escape(title)}</b></p>{"".join(parts)}</div>'


def answer(result: ScenarioResult, title: str) -> str:
    """The answer and a row a point."""
    sheet = Sheet()
    for name in ("variant", "at"):
        sheet.add_column(name)
    for name in (f"{plural(result.operation)} per second", "±", "idle %"):
        sheet.add_column(name, justify="right")
    for point in result.points[:MOST_ROWS]:
        at = ", ".join(f"{key} = {value}" for key, value in point.values.items())
        rate = (plain(point.throughput.mean), plus_minus(point.throughput).removeprefix("± "))
        sheet.add_row(result.title(point.variant), at, *rate, f"{point.shares.idle.mean:.1f}")
    left_off = len(result.points) - len(sheet)
    more = [f"<p>and {left_off} more points</p>"] if left_off else []
    return framed(title, [f"<p>{escape(result.answer)}</p>", table(sheet), *more])


def what_if(found: WhatIf) -> str:
    """The point as it is, the sentences, and the tables."""
    first, *lines = [*what_if_report.heading(found), *what_if_report.sentences(found)]
    return framed(
        first, [*(f"<p>{escape(line)}</p>" for line in lines), *map(table, what_if_report.sheets(found))]
    )


def lock_views(result: ScenarioResult, variant: str | None) -> Shown:
    """The locks of a variant, by default of the one that waits longest. Raises ValueError for an unknown variant."""
    points = {point.variant: point for point in focus(result)}
    if variant is not None and variant not in points:
        raise ValueError(f"there is no variant '{variant}'; {choices(variant, points)}")
    point = points[variant] if variant is not None else max(points.values(), key=waited)
    title = f"{result.title(point.variant)}, {point.tasks} tasks on {point.cpus} CPUs"
    return Shown(f"locks of {title}", framed(title, locks.views(point).values()))
