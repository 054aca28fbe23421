"""Points at which requests arrive faster than they are served: their latency has no mean, and a queue has no end."""

from __future__ import annotations

import math
from collections.abc import Mapping

from simfs.results.model import PointResult, ScenarioResult

SURE = 3.0
"""Standard deviations of a Poisson count by which too few requests must be served."""


def with_saturated(result: ScenarioResult, offered: Mapping[str, float]) -> ScenarioResult:
    """Mark the points that serve fewer requests than `offered`, a second by the point's id."""
    points = (_marked(p) if p.id in offered and is_saturated(p, offered[p.id]) else p for p in result.points)
    return result.model_copy(update={"points": tuple(points)})


def is_saturated(point: PointResult, offered: float) -> bool:
    """Whether a point serves fewer requests than `offered` a second, beyond chance and its interval."""
    seconds = point.window_ns * 1e-9 * point.replications
    chance = SURE * math.sqrt(offered / seconds)
    known = point.throughput.half_width if math.isfinite(point.throughput.half_width) else 0.0
    return point.throughput.mean + known < offered - chance


def _marked(point: PointResult) -> PointResult:
    return point.model_copy(update={"marks": (*point.marks, "saturated")})
