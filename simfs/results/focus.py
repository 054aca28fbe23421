"""Which point of each variant deserves a close look."""

from __future__ import annotations

from collections.abc import Sequence

from simfs.results.model import PointResult, ScenarioResult


def focus_tasks(result: ScenarioResult) -> int:
    """The task count of most interest: the largest measured one, else as many as CPUs, else the largest."""
    measured = [p.tasks for p in result.points if p.measured]
    full = [p.tasks for p in result.points if p.tasks == p.cpus]
    return max(measured or full or [p.tasks for p in result.points], default=0)


def focus(result: ScenarioResult) -> Sequence[PointResult]:
    """One point of each variant: nearest to `focus_tasks`; of several, the one with the longest waits."""
    tasks = focus_tasks(result)

    def interest(point: PointResult) -> tuple[int, float]:
        return -abs(point.tasks - tasks), sum(lock.wait_total_ns for lock in point.locks)

    return [max(result.of(variant), key=interest) for variant in result.variants]
