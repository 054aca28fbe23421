"""The linear line: what perfect scaling would give."""

from __future__ import annotations

from simfs.results.model import PointResult, ScenarioResult


def ideal_per_s(result: ScenarioResult, like: PointResult, tasks: int | None = None) -> float | None:
    """Operations per second if `tasks` tasks (default: those of `like`) all ran as fast as the fastest of its curve.

    The line ends where the CPUs do. Other variants may do other operations and lend no line. The fastest is not that of
    a single task alone: its few operations count coarsely, and a curve above its ideal helps nobody. None where there
    is nothing to scale from.
    """
    if base_tasks(result) is None:
        return None
    fastest = max(per_task(p) for p in result.of(like.variant) if p.setting == like.setting)
    return min(like.tasks if tasks is None else tasks, like.cpus) * fastest


def per_task(point: PointResult) -> float:
    """Operations per second of each task, or of each CPU where tasks have to share them."""
    return point.throughput.mean / min(point.tasks, point.cpus)


def base_tasks(result: ScenarioResult) -> int | None:
    """The fewest tasks; None where there is only one task count, or it is above the CPUs."""
    counts = {p.tasks for p in result.points}
    if len(counts) < 2:
        return None
    fewest = min(counts)
    return fewest if all(fewest <= p.cpus for p in result.points) else None
