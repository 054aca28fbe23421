"""Comparison tables in the layout of `lkp compare`: the first variant of a result beside each other one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from simfs.reports.numbers import plain
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.statistics import Estimate, stddev


def write(result: ScenarioResult, points: Sequence[PointResult]) -> str:
    """A table for every variant after the first, of a single one beside itself; rows are of points."""
    first, *others = dict.fromkeys(p.variant for p in points)
    return "\n".join(_table(result, first, other) for other in others or [first])


def _table(result: ScenarioResult, first: str, other: str) -> str:
    left, right = _name(first), _name(other)
    rows = [
        f"{left:16} {right:27} ",
        f"{'-' * 16} {'-' * 27} ",
        f"{'%stddev':>16}     %change         %stddev",
        "             \\          |                \\  ",
    ]
    by_values = {tuple(p.values.items()): p for p in result.of(other)}
    for point in result.of(first):
        beside = by_values.get(tuple(point.values.items()))
        if beside is not None:
            rows += _rows(result.name, point, beside)
    return "\n".join(rows) + "\n"


def _name(variant: str) -> str:
    return re.sub(r"\s", "_", variant)[:16]


def _rows(scenario: str, a: PointResult, b: PointResult) -> list[str]:
    test = re.sub(r"\W", "-", scenario)
    pairs = [
        (f"{test}.{a.tasks}.processes", a.throughput, b.throughput),
        ("mpstat.cpu.all.idle%", a.shares.idle, b.shares.idle),
        ("mpstat.cpu.all.usr%", a.shares.user, b.shares.user),
        ("vmstat.system.cs", a.context_switches, b.context_switches),
    ]
    return [_row(name, x, y) for name, x, y in pairs]


def _row(name: str, a: Estimate, b: Estimate) -> str:
    points = name.endswith("%")
    change = b.mean - a.mean if points else 100 * (b.mean / a.mean - 1) if a.mean else 0.0
    shown = f"{change:+.1f}{'' if points else '%'}"
    return f"{_number(a)}{shown:>11} {_number(b)}  {name}"


def _number(estimate: Estimate) -> str:
    spread = stddev(estimate) or 0.0
    relative = 100 * spread / abs(estimate.mean) if estimate.mean else 0.0
    shown = plain(estimate.mean).replace(",", "")
    return f"{shown:>10}" + (f" ±{min(relative, 999):3.0f}%" if relative >= 1 else " " * 6)
