"""What a real machine waited for beside a simulation: by lock class, per operation or per second."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import Field

from simfs.interchange.dataset import unmapped
from simfs.interchange.locks_out import the_one, traced
from simfs.interchange.reading import Reading, UnreadableError, Waits
from simfs.interchange.symbols import merge, sort
from simfs.results.by_run import plain
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.run_result import Strict
from simfs.results.summaries import LockSummary

TRACED = ("perf-lock", "perf-script", "bpftrace")
"""Formats whose waits are those of the kernel's tracepoints."""

Per = Literal["operation", "second", "wait"]


class RealLine(Strict):
    """One quantity of both."""

    of: str = Field(description="lock class, or metric")
    quantity: str = Field(description="with its unit")
    real: float
    simulated: float
    ratio: float | None = Field(description="simulated over real; None where real is 0")


class RealComparison(Strict):
    """The output of a tool beside a point of a simulation."""

    real: str
    simulated: str
    per: Per = Field(description="what waits are counted by; `wait` where nobody says how much was done")
    lines: tuple[RealLine, ...]
    only_real: tuple[str, ...] = Field(description="locks that only the real machine waited for")
    only_simulated: tuple[str, ...]
    unmapped: tuple[str, ...] = Field(description="real waits for no lock of simfs")
    differs_most: str | None = Field(None, description="the lock whose share or time of waits differs most")
    sentence: str = ""


def compare_real(
    label: str,
    reading: Reading,
    result: ScenarioResult,
    points: Sequence[PointResult],
    *,
    operations: int | None = None,
    seconds: float | None = None,
) -> RealComparison:
    """Lay a reading beside points of one variant; waits beside that with as many tasks as CPUs, else the most.

    Raises UnreadableError for points of several variants, and where the two have nothing in common.
    """
    _refuse_variants(result, points)
    point, seconds = the_one(points), seconds or reading.seconds
    per: Per = "operation" if operations else "second" if seconds else "wait"
    found = sort(reading.waits)
    ours = by_class(point, found.by_lock, told=traced if reading.format in TRACED else whole)
    common = [lock for lock in found.by_lock if lock in ours]
    done = (operations or seconds or 0.0, _done(point, per))
    lines = [*_rates(reading, points, point)]
    totals = (_total(found.by_lock.values()), _total(ours.values()))
    for lock in common:
        lines += _of_lock(lock, found.by_lock[lock], ours[lock], per, done, totals)
    if not lines:
        raise UnreadableError(
            f"{label}: has no lock and no rate in common with {result.name}:{point.variant}"
        )
    worst = _worst(found.by_lock, ours, done if per != "wait" else totals)
    comparison = RealComparison(
        real=f"{label} ({reading.format})",
        simulated=f"{result.name}:{point.variant}, tasks {point.tasks}",
        per=per,
        lines=tuple(lines),
        only_real=tuple(lock for lock in found.by_lock if lock not in ours),
        only_simulated=tuple(lock for lock in ours if lock not in found.by_lock),
        unmapped=tuple(unmapped(found)),
        differs_most=worst,
    )
    return comparison.model_copy(update={"sentence": _sentence(comparison)})


def _refuse_variants(result: ScenarioResult, points: Sequence[PointResult]) -> None:
    variants = list(dict.fromkeys(p.variant for p in points))
    if len(variants) > 1:
        raise UnreadableError(
            f"{result.name}: has several variants; add `:` and one of {', '.join(variants)}"
        )


def whole(lock: LockSummary) -> tuple[int, float]:
    """All waits and their total time (ns)."""
    return lock.contended, lock.wait_total_ns


def by_class(
    point: PointResult, real: Mapping[str, Waits], told: Callable[[LockSummary], tuple[int, float]] = whole
) -> dict[str, Waits]:
    """Simulated waits by class, as `told`; levels that a real chain does not tell apart are added up, as there."""
    groups = defaultdict[str, list[LockSummary]](list)
    for lock in point.locks:
        if told(lock)[0]:
            group = lock.name.rpartition(" L")[0]
            groups[group if group in real else lock.name].append(lock)
    return {
        name: merge(
            name,
            [Waits((x.name,), told(x)[0], x.type, told(x)[1], x.wait_max_ns, x.acquired) for x in locks],
        )
        for name, locks in groups.items()
    }


def metric_of(comparison: RealComparison) -> str | None:
    """The metric of simulations that stands for what differs most, for `sensitivity`."""
    if comparison.differs_most is None:
        return None
    level = "_l0" if comparison.differs_most.endswith(" tree") else ""
    return f"{plain(comparison.differs_most)}{level}_waits_per_operation"


def _done(point: PointResult, per: Per) -> float:
    seconds = point.window_ns * point.replications / 1e9
    return float(point.operations) if per == "operation" else seconds if per == "second" else 0.0


def _total(waits: Iterable[Waits]) -> float:
    return sum(w.total_ns or 0.0 for w in waits)


def _rates(reading: Reading, points: Sequence[PointResult], the_point: PointResult) -> Iterator[RealLine]:
    """Rates and latencies of benchmarks, each beside the point with its number of tasks; repeated ones averaged."""
    groups = defaultdict[tuple[str, str, int | None], list[float]](list)
    for figure in reading.figures:
        groups[figure.series, figure.metric, figure.tasks].append(figure.value)
    for (series, name, tasks), values in groups.items():
        point = the_point if tasks is None else next((p for p in points if p.tasks == tasks), None)
        estimate = point.estimate(name) if point else None
        if estimate is not None and point is not None:
            quantity = f"{name}, {point.tasks} tasks"
            yield _line(series, quantity, sum(values) / len(values), estimate.mean)


def _line(of: str, quantity: str, real: float, simulated: float) -> RealLine:
    return RealLine(
        of=of, quantity=quantity, real=real, simulated=simulated, ratio=simulated / real if real else None
    )


def _of_lock(
    lock: str,
    real: Waits,
    ours: Waits,
    per: Per,
    done: tuple[float, float],
    totals: tuple[float, float],
) -> Iterator[RealLine]:
    if real.count and per != "wait" and all(done):
        yield _line(lock, f"waits per {per}", real.count / done[0], ours.count / done[1])
    if real.count and real.total_ns is not None:
        times = [(w.total_ns or 0.0) / w.count / 1e3 for w in (real, ours)]
        yield _line(lock, "mean wait, us", times[0], times[1])
    if real.total_ns is not None and all(totals):
        shares = [100 * (w.total_ns or 0.0) / t for w, t in zip((real, ours), totals, strict=True)]
        yield _line(lock, "share of all waits, %", shares[0], shares[1])


def _worst(real: Mapping[str, Waits], ours: Mapping[str, Waits], done: tuple[float, float]) -> str | None:
    """The lock for which time waited per unit of work, or its share, differs most; also one that one side lacks."""
    if not all(done):
        return None

    def distance(lock: str) -> float:
        sides = [(side[lock].total_ns or 0.0) if lock in side else 0.0 for side in (real, ours)]
        return abs(sides[0] / done[0] - sides[1] / done[1])

    return max([*real, *(x for x in ours if x not in real)], key=distance, default=None)


def _sentence(comparison: RealComparison) -> str:
    lock = comparison.differs_most
    if lock is None:
        ratios = [x for x in comparison.lines if x.ratio]
        if not ratios:
            return ""
        far = max(ratios, key=lambda x: abs(math.log(x.ratio or 1.0)) if (x.ratio or 0) > 0 else 0.0)
        return f"They differ most in {far.quantity} of {far.of}: simulated is {far.ratio:.2g} times the real."
    if lock in comparison.only_real:
        return f"They differ most in {lock}: only the real machine waited for it."
    if lock in comparison.only_simulated:
        return f"They differ most in {lock}: only the simulation waited for it."
    parts = [
        f"{x.quantity} {_digits(x.real)} and {_digits(x.simulated)}" for x in comparison.lines if x.of == lock
    ]
    return f"They differ most in {lock}: {'; '.join(parts)} (real and simulated)."


def _digits(value: float) -> str:
    """Three of them, and all that stand before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
