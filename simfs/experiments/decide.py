"""Variations of a point run until it is decided which of them differ from it, in two stages.

C. Stein, *A two-sample test for a linear hypothesis whose power is independent of the variance*, Annals of
Mathematical Statistics 16, 1945: a first stage tells the spread, and from it alone how many replications a wanted
interval needs. What the first stage decides goes no further; as that is a second look, each look has half of the
error that is allowed (Bonferroni). Nor does what all runs that are allowed would hardly decide: D. J. Spiegelhalter,
L. S. Freedman, P. R. Blackburn, *Monitoring clinical trials: conditional or predictive power?*, Controlled Clinical
Trials 7, 1986. To stop for that cannot make an error of the first kind, so it is asked each time that there are twice
as many runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simfs.experiments.points import Varied, run_varied
from simfs.results.model import Finding, PointResult, ScenarioResult
from simfs.results.run import FIRST_STAGE, Engine, Progress, Runs, native_engine
from simfs.results.statistics import Estimate, replications_for, student_t, two_stage
from simfs.results.store import Store

EQUAL = 2.0
"""Per cent of the throughput that make no difference to anybody."""

HOPE = 0.2
"""Chance of being decided below which a difference is not run on."""

PerRun = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
"""From throughputs as it is (a column a replication) and of the variations (a row each), a number a replication."""


def gain(base: NDArray[np.float64], varied: NDArray[np.float64]) -> NDArray[np.float64]:
    """Throughput gained in each replication, in per cent of the mean as it is."""
    found: NDArray[np.float64] = 100 * (varied[0] - base) / base.mean()
    return found


@dataclass(frozen=True)
class Contrast:
    """A number made of a few variations that is to be told from 0; within `equal` of 0 it makes no difference."""

    points: tuple[Varied, ...]
    per_run: PerRun = gain
    equal: float = EQUAL
    among: int = 1

    @property
    def ids(self) -> tuple[str, ...]:
        """The variations by name."""
        return tuple(point.id for point in self.points)


@dataclass(frozen=True)
class Decided:
    """What came out: the point as it is, its variations by name, and how many runs of each were the first stage."""

    base: PointResult
    points: Mapping[str, PointResult]
    findings: tuple[Finding, ...]
    first: int
    level: float

    def estimate(self, contrast: Contrast) -> Estimate | None:
        """The contrast's interval; None where one of its runs stalled or nothing finished as it is."""
        mine = [self.points[name].replication_throughputs for name in contrast.ids]
        n = min(map(len, mine))
        base = np.array(self.base.replication_throughputs[:n])
        if self._stalled(contrast) or not base.all():
            return None
        per_run = contrast.per_run(base, np.array([rates[:n] for rates in mine]))
        return two_stage(per_run, self.first, self._level(contrast))

    def missing(self, contrast: Contrast, most: int) -> int:
        """Replications that the contrast needs to be decided; those that it has where it is, or hardly can be."""
        has = self.points[contrast.ids[0]].replications
        found = self.estimate(contrast)
        if found is None or is_decided(found, contrast.equal):
            return has
        needed = replications_for(found, contrast.equal / 2)
        if needed <= most:
            return needed
        return most if self.can_hope(contrast, most) else has

    def can_hope(self, contrast: Contrast, most: int) -> bool:
        """Whether `most` replications may well decide the contrast."""
        found = self.estimate(contrast)
        if found is None or found.n < 2 or math.isinf(found.half_width):
            return False
        quantile = student_t(self._level(contrast), min(found.n, self.first) - 1)
        spread = found.half_width / quantile * math.sqrt(found.n)
        return hope(found, spread, most, contrast.equal) >= HOPE

    def _level(self, contrast: Contrast) -> float:
        return 1 - (1 - self.level) / contrast.among

    def _stalled(self, contrast: Contrast) -> bool:
        return any(f.kind == "stall" and f.point in contrast.ids for f in self.findings)


def is_decided(found: Estimate, equal: float = EQUAL) -> bool:
    """Whether an interval leaves out 0, or has nothing but what makes no difference."""
    return verdict(found, equal).split()[0] != "undecided"


def hope(found: Estimate, spread: float | None, most: int, equal: float = EQUAL) -> float:
    """The chance that `most` replications, with this spread, decide what those that there are have not.

    It is the predictive power: the mean of all is as uncertain as the runs that there are and the others make it.
    """
    if not spread or most <= found.n:
        return 0.0
    mean = NormalDist(found.mean, spread * math.sqrt(1 / found.n - 1 / most))
    half = found.half_width * math.sqrt(found.n / most)
    differs = mean.cdf(-half) + 1 - mean.cdf(half)
    equals = max(0.0, mean.cdf(equal - half) - mean.cdf(half - equal))
    return min(1.0, differs + equals)


def verdict(found: Estimate | None, equal: float = EQUAL) -> str:
    """What an interval says: `equal within 2 %`, `better`, `worse`, or `undecided after 5` replications."""
    if found is None:
        return "undecided"
    if found.low is None or found.high is None:
        return f"undecided after {found.n}"
    if -equal < found.low and found.high < equal:
        return f"equal within {equal:g} %"
    if found.low > 0 or found.high < 0:
        return "better" if found.low > 0 else "worse"
    return f"undecided after {found.n}"


def decide(
    base: Varied,
    contrasts: Sequence[Contrast],
    runs: Runs,
    *,
    most: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Decided:
    """Run `base` and the points of all contrasts, and those that are undecided again, up to `most` replications.

    Without `most` each is run `runs.replications` times. Raises ValueError where the engine refuses one.
    """
    options: dict[str, Any] = {"threads": threads, "progress": progress, "engine": engine}
    points = tuple({point.id: point for contrast in contrasts for point in contrast.points}.values())
    if most is None:
        return _decided(run_varied((base, *points), runs, **options), runs, runs.confidence)
    first = replace(runs, replications=min(max(runs.replications, FIRST_STAGE), most))
    level = 1 - (1 - runs.confidence) / 2
    with TemporaryDirectory(prefix="simfs-") as folder:
        options["engine"] = Store(Path(folder)).remembering(engine or native_engine())
        found = _decided(run_varied((base, *points), first, **options), first, level)
        wanted = [(contrast, found.missing(contrast, most)) for contrast in contrasts]
        reach = first.replications
        while open_ := [(c, n) for c, n in wanted if n > reach]:
            reach = min(2 * reach, most)
            for number in sorted({min(n, reach) for _, n in open_}):
                names = {name for c, n in open_ if min(n, reach) == number for name in c.ids}
                again = [base, *(point for point in points if point.id in names)]
                more = run_varied(again, replace(runs, replications=number), **options)
                found = _joined(found, _decided(more, first, level))
            wanted = [(c, n) for c, n in open_ if n < most or found.can_hope(c, most)]
        return found


def _decided(result: ScenarioResult, first: Runs, level: float) -> Decided:
    base, *others = result.points
    return Decided(base, {p.id: p for p in others}, result.findings, first.replications, level)


def _joined(first: Decided, second: Decided) -> Decided:
    """Both, the second where a point is in both: its runs begin with those of the first."""
    again = {second.base.id, *second.points}
    kept = (finding for finding in first.findings if finding.point not in again)
    return replace(second, points={**first.points, **second.points}, findings=(*kept, *second.findings))
