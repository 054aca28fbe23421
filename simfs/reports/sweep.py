"""A sweep on the terminal: of each variant its lowest and highest throughput, and all over one key or two."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from simfs.reports.axis import is_grid, levels, varied
from simfs.reports.layout import Sheet, report_console
from simfs.reports.numbers import plain, plural, plus_minus
from simfs.results.model import PointResult, ScenarioResult, short


def print_sweep(result: ScenarioResult, console: Console | None = None) -> None:
    """Of each variant its lowest and highest throughput, and all: a row a point over one key, a matrix over two."""
    console = console or report_console()
    table = Sheet(result.name)
    table.add_column("variant")
    table.add_column("points", justify="right")
    for name in ("lowest", "highest"):
        table.add_column(f"{name} {plural(result.operation)}/s", justify="right")
        table.add_column("at")
    for variant in result.variants:
        points = sorted(result.of(variant), key=lambda p: p.throughput.mean)
        ends = [cell for p in (points[0], points[-1]) for cell in (_throughput(p), _where(p))]
        table.add_row(result.title(variant), f"{len(points):,}", *ends)
    console.print(table)
    keys = varied(result)
    if len(keys) == 1:
        console.print(_along(result, keys[0]))
    elif is_grid(result, keys):
        for variant in result.variants:
            console.print(_matrix(result, variant, keys))


def _along(result: ScenarioResult, key: str) -> Sheet:
    """A row for each value of the only key, a column for each variant."""
    sheet = Sheet(f"{plural(result.operation)} per second")
    sheet.add_column(short(key), justify="right")
    for variant in result.variants:
        sheet.add_column(variant, justify="right")
        sheet.add_column("±", leaves=1, justify="right")
    at = {(p.variant, p.values[key]): p.throughput for p in result.points}
    for value in levels(result, key):
        cells = [at.get((variant, value)) for variant in result.variants]
        shown = [
            part for c in cells for part in (plain(c.mean if c else None), plus_minus(c).removeprefix("± "))
        ]
        sheet.add_row(str(value), *shown)
    return sheet


def _matrix(result: ScenarioResult, variant: str, keys: Sequence[str]) -> Sheet:
    """Throughput over two keys, the one with more values down."""
    down, across = sorted(keys, key=lambda key: -len(levels(result, key)))
    sheet = Sheet(
        f"{result.title(variant)}: {plural(result.operation)} per second over {short(down)} and {short(across)}"
    )
    sheet.add_column(f"{short(down)} \\ {short(across)}", justify="right")
    for value in levels(result, across):
        sheet.add_column(str(value), justify="right")
    at = {(p.values[down], p.values[across]): p.throughput.mean for p in result.of(variant)}
    for row in levels(result, down):
        sheet.add_row(str(row), *(plain(at.get((row, value))) for value in levels(result, across)))
    return sheet


def _throughput(point: PointResult) -> str:
    return f"{plain(point.throughput.mean)} {plus_minus(point.throughput)}"


def _where(point: PointResult) -> str:
    return ", ".join(f"{short(key)}={value}" for key, value in point.values.items())
