"""What figures of a scenario's result share: its lines over tasks, their names, its measured rates."""

from __future__ import annotations

from simfs.results.model import Comparison, PointResult, ScenarioResult


def lines_over_tasks(result: ScenarioResult) -> list[tuple[str, list[PointResult]]]:
    """Points over tasks; swept keys other than the tasks make lines of their own."""
    lines: dict[str, list[PointResult]] = {}
    for p in result.points:
        lines.setdefault(line_name(p, result), []).append(p)
    return [(name, sorted(points, key=lambda p: p.tasks)) for name, points in lines.items()]


def line_name(point: PointResult, result: ScenarioResult) -> str:
    """The variant's title and the settings of other swept keys."""
    return ", ".join(part for part in (result.title(point.variant), point.setting) if part)


def measured_rates(point: PointResult) -> list[Comparison]:
    """The comparisons of a point that are of its throughput."""
    return [c for c in point.measured if point.estimate(c.row.metric) == point.throughput]


def rates_while_running(point: PointResult) -> list[Comparison]:
    """The same, measured while the tasks ran: to be drawn beside the simulated throughput."""
    return [c.model_copy(update={"row": c.row.while_running()}) for c in measured_rates(point)]
