"""What makes a number one to be careful with: a wide interval, or observations that fall into two groups.

Source of the test: L. Engelman, J. A. Hartigan, *Percentage points of a test for clusters*, Journal of the American
Statistical Association 64, 1969: of all ways to cut the sorted observations in two, the least share of the sum of
squares that is left within the parts, compared with what normal observations leave.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from simfs.results.statistics import Estimate
from simfs.results.sums import mean_of, total_of

Mark = Literal["wide", "two groups", "saturated", "no round"]
"""An interval wider than a fifth of the value; replications that fall into two groups; requests that outrun tasks;
parts of operations ended in the window, and no whole one."""

FIFTH = 0.2
"""An interval that is wider than this part of its value is wide; groups nearer to each other count as one."""

POINTS = 2.0
"""Narrower intervals of percentages are not wide, however small the percentage is."""

SMALLEST = 2
"""Observations in the smaller group: a single one is an outlier and no group."""

LEVEL = 0.01
"""How often the test may find two groups in observations that are normal."""

DRAWS = 20_000
"""Normal samples from which the test's percentage point is taken."""

KNOWN = (
    0.006614383744633657,
    0.0169296024092766,
    0.03229766820987409,
    0.048098752150540026,
    0.06541672297441914,
    0.07819907930645532,
    0.0884137230122672,
    0.10106184366236805,
    0.11411701992963337,
    0.12360003917384725,
    0.12827485667026753,
    0.14058254098234124,
    0.14529413398449834,
    0.15229378252956438,
    0.1571098542447436,
    0.16502667214933553,
    0.1638658334088227,
)
"""The points of 4 to 20 observations, as they are drawn: a first draw takes as long as a tenth of a quick run."""


class Groups(BaseModel):
    """Two groups of observations: the mean and the number of each, the lower one first."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    means: tuple[float, float]
    sizes: tuple[int, int]
    of: str = Field(description="what was observed: replications, or batches of the only one")

    def __str__(self) -> str:
        """Both groups as a person would say them."""
        (low, high), (few, many) = self.means, self.sizes
        return f"{few} {self.of} at {low:,.4g}, {many} at {high:,.4g}"


def is_wide(estimate: Estimate, unit: str) -> bool:
    """Whether the interval is wider than a fifth of the value; of percentages also wider than 2 points."""
    if estimate.low is None or estimate.high is None:
        return False
    width = estimate.high - estimate.low
    return width > FIFTH * abs(estimate.mean) and not (unit == "%" and width <= POINTS)


def marks(estimate: Estimate, unit: str, groups: Groups | None) -> tuple[Mark, ...]:
    """Why an estimate of a point whose throughputs fall into `groups` is one to be careful with."""
    wide: tuple[Mark, ...] = ("wide",) if is_wide(estimate, unit) else ()
    return (*wide, "two groups") if groups else wide


def two_groups(observations: Iterable[float], of: str = "replications") -> Groups | None:
    """The two groups that the observations fall into; None if they are one.

    They do where Engelman and Hartigan's test rejects normal observations at 1 % and the groups are a fifth of the mean
    apart. Fewer than four observations cannot.
    """
    x = sorted(map(float, observations))
    if len(x) < 2 * SMALLEST or x[0] == x[-1]:
        return None
    left = _left_within(x)
    cut = left.index(min(left))
    if left[cut] > _percentage_point(len(x)):
        return None
    low, high = x[: cut + SMALLEST], x[cut + SMALLEST :]
    means = (mean_of(low), mean_of(high))
    if means[1] - means[0] <= FIFTH * abs(mean_of(x)):
        return None
    return Groups(means=means, sizes=(len(low), len(high)), of=of)


def observed(replications: Sequence[float], batches: Sequence[float]) -> tuple[Sequence[float], str]:
    """What groups are looked for in: throughputs of replications; of the only one, those of pairs of batches."""
    if len(replications) > 1 or len(batches) < 2:
        return replications, "replications"
    even = batches[len(batches) % 2 :]
    return [mean_of(pair) for pair in zip(even[::2], even[1::2], strict=True)], "batches"


def _left_within(x: Sequence[float]) -> list[float]:
    """Of a sorted sample the share of the sum of squares left within both parts, for every cut."""
    n, centre = len(x), mean_of(x)
    centred = [value - centre for value in x]
    squares = total_of([value * value for value in centred])
    sums = list(accumulate(centred))[SMALLEST - 1 : n - SMALLEST]
    return [
        1 - (low * low / size + low * low / (n - size)) / squares
        for size, low in enumerate(sums, start=SMALLEST)
    ]


def _percentage_point(n: int) -> float:
    """Below which share the best cut of `n` normal observations stays at `LEVEL`."""
    at = n - 2 * SMALLEST
    return KNOWN[at] if at < len(KNOWN) else drawn_point(n)


@cache
def drawn_point(n: int) -> float:
    """The same as random samples have it."""
    import numpy as np

    samples = np.sort(np.random.default_rng(1).standard_normal((DRAWS, n)), axis=1)
    centred = samples - samples.mean(axis=1, keepdims=True)
    sums, sizes = (
        centred.cumsum(axis=1)[:, SMALLEST - 1 : n - SMALLEST],
        np.arange(SMALLEST, n - SMALLEST + 1),
    )
    between = sums**2 / sizes + sums**2 / (n - sizes)  # as in `_left_within`, of all samples at once
    left = 1 - between / (centred**2).sum(axis=1, keepdims=True)
    return float(np.quantile(left.min(axis=1), LEVEL))
