"""What a benchmark reports whose clock runs while it sleeps before its tasks start: AIM7 waits for ten seconds.

A run of `operations` at a rate takes `operations / rate` seconds and the pause. The pause is idle time of all CPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from simfs.results.statistics import Estimate
from simfs.scenario.measured.metrics import Metric


@dataclass(frozen=True)
class Paused:
    """A measured run: its operations, and seconds in which none was done."""

    operations: float
    seconds: float

    @classmethod
    def of(cls, operations: float | None, seconds: float | None) -> Self | None:
        """None of a run without a pause."""
        return None if operations is None or seconds is None else cls(operations, seconds)

    def rate(self, rate: float) -> float:
        """The rate over all of the run, of one while the tasks run."""
        return self.operations / (self.operations / rate + self.seconds) if rate > 0 else 0.0

    def while_running(self, rate: float) -> float:
        """The rate while the tasks run, of one over all of the run; infinite where the pause is all of it."""
        running = self.operations / rate - self.seconds
        return self.operations / running if running > 0 else float("inf")

    def seen(self, known: Metric, estimate: Estimate | None, rate: float) -> Estimate | None:
        """What the source would report for an estimate of the time in which tasks run, at that rate."""
        if estimate is None or rate <= 0:
            return estimate
        running = self.rate(rate) / rate
        match known.quantity:
            case "throughput":
                return _each(estimate, self.rate)
            case "real":
                return _each(estimate, lambda seconds: seconds + self.seconds)
            case "share" if known.state == "idle":
                return _each(estimate, lambda idle: 100 - (100 - idle) * running)
            case "share" | "kernel" | "switches" | "bytes":
                return _each(estimate, lambda value: value * running)
            case _:
                return estimate


def _each(estimate: Estimate, of: Callable[[float], float]) -> Estimate:
    low, high = (None if end is None else of(end) for end in (estimate.low, estimate.high))
    return Estimate(mean=of(estimate.mean), low=low, high=high, n=estimate.n)
