"""Locks under the same load, one row a lock: what a scenario that sweeps `workload.lock` is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from simfs.reports.layout import Sheet, new_table
from simfs.reports.numbers import NOTHING, plain
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.tournament import LOCK

NAME = "lock"
"""The lock of a lock cycle, as the statistics call it; the locks inside it have longer names."""


class Column(NamedTuple):
    """A quantity of a point, for each of the task counts or only for the fewest and the most tasks."""

    title: tuple[str, str]
    """In two lines; the task count is the third."""
    cell: Callable[[PointResult], str]
    every_count: bool = False


def tournament(result: ScenarioResult) -> list[Sheet]:
    """One table a variant, the lock with the highest throughput at the fewest tasks first."""
    return [_table(result, variant) for variant in result.variants]


def wait_p99_us(point: PointResult) -> float | None:
    """99 % of the waits for the lock are shorter, in microseconds; None where nobody waited."""
    waits = [lock.wait_p99_ns / 1e3 for lock in point.locks if lock.name == NAME and lock.contended]
    return waits[0] if waits else None


def cpu_us_per_operation(point: PointResult) -> float | None:
    """CPU time that is not idle (thinking, holding, spinning, switching) per operation, in microseconds."""
    cpu_ns = (100 - point.shares.idle.mean) / 100 * point.cpus * point.window_ns * point.replications
    return cpu_ns / point.operations / 1e3 if point.operations else None


COLUMNS = (
    Column(("1000", "/s"), lambda p: plain(p.throughput.mean / 1000), every_count=True),
    Column(("p99", "wait us"), lambda p: plain(wait_p99_us(p)), every_count=True),
    Column(("Jain", ""), lambda p: f"{p.fairness.mean:.2f}" if p.operations else NOTHING),
    Column(("max", "/min"), lambda p: plain(p.max_min.mean if p.max_min else None)),
    Column(("CPU", "us/op"), lambda p: plain(cpu_us_per_operation(p))),
    Column(("uJ", "/op"), lambda p: plain(joules.mean * 1e6 if (joules := p.joules_per_operation) else None)),
)


def heads(counts: Sequence[int]) -> Sheet:
    """The table without a row; `counts` of tasks from the fewest on."""
    table = new_table("")
    table.add_column("lock", no_wrap=True)
    chosen = _chosen(counts)
    for at, (column, count) in enumerate(chosen):
        goes_on = at > 0 and chosen[at - 1][0] is column
        title = ("", "") if goes_on else column.title
        leaves = (
            0 if count in (counts[0], counts[-1]) and column in COLUMNS[:2] else 1 + COLUMNS.index(column)
        )
        table.add_column("\n".join((*title, str(count))), leaves=leaves, justify="right")
    return table


def _chosen(counts: Sequence[int]) -> list[tuple[Column, int]]:
    ends = sorted({counts[0], counts[-1]})
    return [(column, n) for column in COLUMNS for n in (counts if column.every_count else ends)]


def _table(result: ScenarioResult, variant: str) -> Sheet:
    points = {(str(p.values[LOCK]), p.tasks): p for p in result.of(variant)}
    counts = sorted({tasks for _, tasks in points})
    cpus = next(iter(points.values())).cpus
    table = heads(counts)
    table.title = f"{result.title(variant)}; {', '.join(map(str, counts))} tasks on {cpus} CPUs"
    names = list(dict.fromkeys(name for name, _ in points))
    for name in sorted(names, key=lambda name: -points[name, counts[0]].throughput.mean):
        table.add_row(name, *(column.cell(points[name, count]) for column, count in _chosen(counts)))
    return table
