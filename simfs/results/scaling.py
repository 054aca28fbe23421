"""The linear line: what perfect scaling would give."""

from __future__ import annotations

from simfs.results.model import ScenarioResult


def ideal_per_s(result: ScenarioResult, tasks: int, cpus: int) -> float | None:
    """Operations per second if every task ran like those of the best variant at the fewest tasks.

    The line ends where the CPUs do. None where only one task count was simulated: then there is nothing to
    scale from.
    """
    base = base_tasks(result)
    if base is None:
        return None
    best = max(p.throughput.mean for p in result.points if p.tasks == base)
    return best / base * min(tasks, cpus)


def base_tasks(result: ScenarioResult) -> int | None:
    """The fewest tasks; None where there is only one task count, or it is above the CPUs."""
    counts = {p.tasks for p in result.points}
    if len(counts) < 2:
        return None
    fewest = min(counts)
    return fewest if all(fewest <= p.cpus for p in result.points) else None
