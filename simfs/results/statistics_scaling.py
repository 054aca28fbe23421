"""A curve in three numbers, and its analytic twin.

USL: N. Gunther's Universal Scalability Law, X(N) = rate N / (1 + contention (N - 1) + coherency N (N - 1)),
fitted to the simulated curve; a description, not a prediction. The twin: the machine repairman (closed queue
of one exclusive lock, exponential hold and think times, no cost of handing over), solved by mean value
analysis (M. Reiser, S. Lavenberg, *Mean-value analysis of closed multichain queueing networks*, JACM 27, 1980).
What the simulation does worse than its twin is the cost of waiting itself: wake-ups, line transfers, convoys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from simfs.results.least_squares import least_squares
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.run_result import Strict
from simfs.results.statistics import LEVEL, Estimate, student_t

COEFFICIENTS = 3
"""Of the law, which as many task counts determine."""

MIN_POINTS = 4
"""Fewest task counts for three coefficients and an interval."""


class Usl(Strict):
    """Coefficients of the law with their intervals; a negative one says faster than linear, or noise."""

    rate: Estimate
    contention: Estimate
    coherency: Estimate

    def at(self, tasks: float) -> float:
        """Operations per second of the fitted curve."""
        slowed = 1 + self.contention.mean * (tasks - 1) + self.coherency.mean * tasks * (tasks - 1)
        return self.rate.mean * tasks / slowed

    @property
    def peak(self) -> float:
        """Tasks at which the fitted curve is highest, one at least; infinite where it never falls."""
        if self.coherency.mean <= 0:
            return math.inf
        return math.sqrt(max(self.coherency.mean, 1 - self.contention.mean) / self.coherency.mean)


def usl(tasks: Iterable[float], rates: Iterable[float], level: float = LEVEL) -> Usl | None:
    """Fit the law to a curve by relative least squares of N / X, in which it is linear.

    None for fewer than three task counts, and where the fitted rate is not positive. The intervals, for more
    than three, are those of the linear fit with Student's t, carried over to the coefficients by their
    derivatives: they tell the scatter of the points around the law, not whether the law is the right one.
    """
    curve = [(float(n), float(x)) for n, x in zip(tasks, rates, strict=True)]
    if len({n for n, _ in curve}) < COEFFICIENTS or any(x <= 0 for _, x in curve):
        return None
    columns = [[term(n) * (x / n) for n, x in curve] for term in _TERMS]
    fit = least_squares(columns, [1.0] * len(curve))
    base, serial, crosstalk = fit.coefficients
    if base <= 0:
        return None
    best = (1 / base, serial / base, crosstalk / base)
    freedom = len(curve) - COEFFICIENTS
    if freedom == 0:  # the law goes through the points
        return _law([Estimate(mean=m, low=None, high=None, n=len(curve)) for m in best])
    slopes = (
        (-1 / base**2, 0.0, 0.0),
        (-serial / base**2, 1 / base, 0.0),
        (-crosstalk / base**2, 0.0, 1 / base),
    )
    scatter = math.fsum(miss * miss for miss in fit.left) / freedom
    halves = [student_t(level, freedom) * math.sqrt(scatter * fit.variance(each)) for each in slopes]
    return _law(
        [Estimate(mean=m, low=m - h, high=m + h, n=len(curve)) for m, h in zip(best, halves, strict=True)]
    )


_TERMS: tuple[Callable[[float], float], ...] = (lambda n: 1.0, lambda n: n - 1, lambda n: n * (n - 1))
"""What N / X is made of, in the law."""


def _law(coefficients: Sequence[Estimate]) -> Usl:
    rate, contention, coherency = coefficients
    return Usl(rate=rate, contention=contention, coherency=coherency)


@dataclass(frozen=True)
class Twin:
    """The machine repairman of one lock: each task thinks for `think_ns`, then holds the lock for `hold_ns`."""

    lock: str
    hold_ns: float
    think_ns: float

    @property
    def knee(self) -> float:
        """N*, the tasks at which the two bounds meet."""
        return (self.think_ns + self.hold_ns) / self.hold_ns

    def bound_per_s(self, tasks: int) -> float:
        """No distribution of the times allows more operations per second than this."""
        return 1e9 * min(tasks / (self.think_ns + self.hold_ns), 1 / self.hold_ns)

    def per_s(self, tasks: int) -> float:
        """Operations per second by mean value analysis."""
        queue = rate = 0.0
        for n in range(1, tasks + 1):
            response = self.hold_ns * (1 + queue)
            rate = n / (self.think_ns + response)
            queue = rate * response
        return 1e9 * rate


@dataclass(frozen=True)
class Scaling:
    """What is said of one curve: its law and its twin, where there are enough points for them."""

    variant: str
    setting: str
    law: Usl | None
    twin: Twin | None


def scalings(result: ScenarioResult) -> tuple[Scaling, ...]:
    """Law and twin of every curve over tasks with at least `MIN_POINTS` task counts that have a CPU each."""
    curves: dict[tuple[str, str], list[PointResult]] = {}
    for point in result.points:
        if point.tasks <= point.cpus:
            curves.setdefault((point.variant, point.setting), []).append(point)
    return tuple(
        Scaling(variant, setting, usl([p.tasks for p in c], [p.throughput.mean for p in c]), twin(c))
        for (variant, setting), c in curves.items()
        if len({p.tasks for p in c}) >= MIN_POINTS
    )


def twin(curve: Sequence[PointResult]) -> Twin | None:
    """The twin of a curve: its busiest lock, with hold and think times as simulated with the fewest tasks.

    A class is taken for one lock: where its instances share the load, or readers the lock, the twin is
    pessimistic. Classes that were held more than all of the time are not one lock and are passed over. None
    where no lock is left, or there is nothing besides it.
    """
    inside = sorted((p for p in curve if p.tasks <= p.cpus and p.operations), key=lambda p: p.tasks)
    if not inside:
        return None
    first, last = inside[0], inside[-1]
    locks = {lock.name: lock for lock in first.locks if lock.hold_total_ns > 0}
    single = [
        x for x in last.locks if x.name in locks and x.hold_total_ns <= last.replications * last.window_ns
    ]
    busiest = max(single, key=lambda lock: lock.hold_total_ns, default=None)
    if busiest is None:
        return None
    hold = locks[busiest.name].hold_total_ns / first.operations
    cycle = first.tasks * 1e9 / first.throughput.mean
    waited = sum(lock.wait_total_ns for lock in first.locks) / first.operations
    think = cycle - waited - hold
    return Twin(busiest.name, hold, think) if think > 0 else None
