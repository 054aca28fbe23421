"""Simulated time: whole picoseconds in an int, so that a sub-nanosecond cache hit is not rounded away."""

from __future__ import annotations

import math

Time = int
"""Simulated time or a span of it, in picoseconds."""

PS_PER_NS = 1_000


def from_ns(ns: float) -> Time:
    """Nanoseconds as time, rounded half up; negative becomes zero."""
    ps = ns * PS_PER_NS
    whole = math.floor(ps)
    return max(whole + (ps - whole >= 0.5), 0)


def to_ns(time: Time) -> float:
    """Time as nanoseconds, for reports."""
    return time / PS_PER_NS
