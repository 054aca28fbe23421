"""Whether a result is about locks beside each other."""

from __future__ import annotations

from simfs.results.model import ScenarioResult

LOCK = "workload.lock"
"""The key that such a scenario sweeps."""


def is_tournament(result: ScenarioResult) -> bool:
    """Whether the result compares locks, over nothing but variants and task counts, and is not held to data."""
    return (
        not any(p.measured for p in result.points)
        and LOCK in result.sweep
        and set(result.sweep) <= {LOCK, "workload.tasks"}
    )
