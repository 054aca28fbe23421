"""The linear line: what perfect scaling would give."""

from __future__ import annotations

from simfs.results.model import PointResult, ScenarioResult


class Ideal:
    """The line of each curve: operations per second if all tasks ran as fast as the fastest of the curve.

    The line ends where the CPUs do. Other variants may do other operations and lend no line. The fastest is not that of
    a single task alone: its few operations count coarsely, and a curve above its ideal helps nobody.
    """

    def __init__(self, result: ScenarioResult) -> None:
        """Look at every point once: a sweep has thousands."""
        self._fastest: dict[tuple[str, str], float] = {}
        if base_tasks(result) is None:  # there is nothing to scale from
            return
        for point in result.points:
            curve = point.variant, point.setting
            self._fastest[curve] = max(per_task(point), self._fastest.get(curve, 0.0))

    def per_s(self, like: PointResult, tasks: int | None = None) -> float | None:
        """Of `tasks` tasks (default: those of `like`) on the curve of `like`; None where there is no line."""
        fastest = self._fastest.get((like.variant, like.setting))
        return None if fastest is None else min(like.tasks if tasks is None else tasks, like.cpus) * fastest


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
