"""Which point of each variant deserves a close look."""

from __future__ import annotations

from collections.abc import Sequence

from simfs.results.model import PointResult, ScenarioResult


def focus_tasks(result: ScenarioResult) -> int:
    """The task count of most interest: the largest measured one, else as many as CPUs, else the largest."""
    measured = [p.tasks for p in result.points if p.measured]
    full = [p.tasks for p in result.points if p.tasks == p.cpus]
    return max(measured or full or [p.tasks for p in result.points])


def focus(result: ScenarioResult) -> Sequence[PointResult]:
    """One point of each variant: at or nearest to `focus_tasks`; of several, the last in sweep order."""
    tasks = focus_tasks(result)

    def nearest(points: Sequence[PointResult]) -> PointResult:
        return min(reversed(points), key=lambda p: abs(p.tasks - tasks))

    return [nearest(result.of(variant)) for variant in result.variants]
