"""Output analysis: intervals, warm-up truncation, fairness, paired comparison.

Sources of the formulas: A. M. Law, *Simulation Modeling and Analysis*, 5th ed., McGraw-Hill 2015 ("Law");
K. P. White, M. J. Cobb, S. C. Spratt, *A comparison of five steady-state truncation heuristics for
simulation*, Winter Simulation Conference 2000 ("MSER-5"); C. Stein, *A two-sample test for a linear
hypothesis whose power is independent of the variance*, Annals of Mathematical Statistics 16, 1945 ("Stein");
R. Jain, D. Chiu, W. Hawe, *A quantitative measure of fairness*, DEC-TR-301, 1984 ("Jain").
"""

import math
import operator
from collections.abc import Iterable, Sequence
from functools import cache

from pydantic import BaseModel, ConfigDict

from simfs.results.sums import deviation, mean_of

LEVEL = 0.95
"""Confidence level of every interval unless told otherwise."""

FEW = 1000
"""Degrees of freedom up to which the engine's quantile is right to eight digits; above, SciPy is imported."""


class Estimate(BaseModel):
    """A mean with its confidence interval, in the unit of the observations.

    `low` and `high` are None where one observation does not allow an interval.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def half_width(self) -> float:
        """Half the interval's width; infinite where there is no interval."""
        return math.inf if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def relative_half_width(self) -> float:
        """Half-width over the size of the mean; 0 for an exact zero, infinite where undefined."""
        if self.half_width == 0:
            return 0.0
        return self.half_width / abs(self.mean) if self.mean else math.inf

    def contains(self, value: float) -> bool:
        """Whether the interval holds `value`; an estimate without an interval holds only its mean."""
        if self.low is None or self.high is None:
            return value == self.mean
        return self.low <= value <= self.high


def interval(observations: Iterable[float], level: float = LEVEL) -> Estimate:
    """Student-t interval of the mean of independent observations (Law, eq. 4.12).

    `observations`: one-dimensional, for example one throughput per replication.
    Raises ValueError where there are none.
    """
    x = _vector(observations)
    n = len(x)
    mean = math.fsum(x) / n
    if n < 2:
        return Estimate(mean=mean, low=None, high=None, n=n)
    half = deviation(x) / math.sqrt(n) * student_t(level, n - 1)
    return Estimate(mean=mean, low=mean - half, high=mean + half, n=n)


def quotient(a: Estimate | None, b: Estimate | None) -> Estimate | None:
    """One mean over another, independent one; the interval to first order (delta method).

    None where one of them is, or `b` is 0.
    """
    if a is None or b is None or b.mean == 0:
        return None
    mean = a.mean / b.mean
    half = abs(mean) * math.hypot(a.relative_half_width, b.relative_half_width)
    known = math.isfinite(half)
    return Estimate(
        mean=mean, low=mean - half if known else None, high=mean + half if known else None, n=min(a.n, b.n)
    )


@cache
def student_t(level: float, freedom: float) -> float:
    """The two-sided quantile of Student's t; a sweep needs few of them, each a thousand times."""
    below = (1 + level) / 2
    if freedom <= FEW:
        from simfs import _engine

        return _engine.student_t(below, freedom)
    from scipy.special import stdtrit

    return float(stdtrit(freedom, below))


def stddev(estimate: Estimate, level: float = LEVEL) -> float | None:
    """The standard deviation of the observations behind a Student-t interval; None where there is none."""
    if estimate.n < 2 or math.isinf(estimate.half_width):
        return None
    quantile = student_t(level, estimate.n - 1)
    return estimate.half_width / quantile * math.sqrt(estimate.n)


def batch_means(observations: Iterable[float], batches: int = 10, level: float = LEVEL) -> Estimate:
    """Interval of the mean of one correlated stream from the means of consecutive batches (Law, 9.5.3).

    Observations that do not fill a batch are left off at the beginning, where a transient would be.
    Raises ValueError for fewer than two batches or fewer observations than batches.
    """
    x = _vector(observations)
    if batches < 2:
        raise ValueError(f"batch means need at least 2 batches, not {batches}")
    return interval(_grouped(x, len(x) // batches)[-batches:], level)


def replications_needed(first: Iterable[float], precision: float, level: float = LEVEL) -> int:
    """How many observations make the half-width `precision` of the mean, from a first stage (Stein 1945).

    At least as many as the first stage has. Looking at the interval after every observation and stopping as
    soon as it is narrow would be cheaper and wrong: it stops where the spread is underestimated, and 95 %
    intervals then hold the truth in 91 to 94 %.
    """
    estimate = interval(first, level)
    return replications_for(estimate, precision * abs(estimate.mean))


def replications_for(first: Estimate, half_width: float) -> int:
    """How many observations make the half-width so small, from the interval of a first stage (Stein 1945)."""
    if first.half_width == 0:
        return first.n
    if half_width == 0 or not math.isfinite(first.half_width):
        return 10**9
    return max(first.n, math.ceil(first.n * (first.half_width / half_width) ** 2))


def two_stage(observations: Iterable[float], first: int, level: float = LEVEL) -> Estimate:
    """Interval of the mean where the first `first` observations decided how many there are (Stein 1945).

    The spread is that of the first stage alone, which the number of observations cannot have biased: exact
    for normal observations.
    """
    x = _vector(observations)
    n = len(x)
    if n <= first:
        return interval(x, level)
    mean = math.fsum(x) / n
    half = interval(x[:first], level).half_width * math.sqrt(first / n)
    return Estimate(mean=mean, low=mean - half, high=mean + half, n=n)


def mser_curve(observations: Iterable[float], group: int = 5) -> list[float]:
    """The MSER statistic by number of leading groups discarded: what `mser` takes the minimum of."""
    means = _grouped(_vector(observations), group, at_end=False)
    centre = mean_of(means)  # or the difference of squares below would lose all digits
    total = squares = 0.0
    errors = []
    for left, value in enumerate(reversed(means), start=1):
        off = value - centre
        total += off
        squares += off * off
        mean = total / left
        errors.append(max(squares / left - mean * mean, 0.0) / left)
    return errors[::-1][: max(1, len(means) // 2 + 1)]


def mser(observations: Iterable[float], group: int = 5) -> int:
    """Number of leading observations to discard as warm-up, by the MSER rule (MSER-5 with `group=5`).

    The truncation point minimises the squared standard error of what is left,
    sum((x - mean)^2) / n^2, over means of `group` consecutive observations. A minimum in the second half
    means that the stream is too short to tell; the answer is then half the stream, in whole groups.
    """
    curve = mser_curve(observations, group)
    return curve.index(min(curve)) * group


def jain(shares: Iterable[float]) -> float:
    """Jain's fairness index, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has all.

    Nobody having anything counts as fair (1), and so does nobody being there, as in a run that ends in its set-up.
    """
    x = list(map(float, shares))
    squares = math.fsum(share * share for share in x)
    return 1.0 if squares == 0 else math.fsum(x) ** 2 / (len(x) * squares)


def max_min(shares: Iterable[float]) -> float:
    """The largest share over the smallest: 1 when all are equal, infinite when somebody has nothing.

    Nobody having anything, or being there, counts as fair (1).
    """
    x = list(map(float, shares))
    if not any(x):
        return 1.0
    return max(x) / min(x) if min(x) > 0 else math.inf


def paired_difference(after: Sequence[float], before: Sequence[float], level: float = LEVEL) -> Estimate:
    """Interval of the mean of `after - before`, replication by replication (Law, 10.2.1).

    With common random numbers the pairs are correlated, so this interval is narrower than that of two
    independent means. Raises ValueError unless both have the same length.
    """
    a, b = _vector(after), _vector(before)
    if len(a) != len(b):
        raise ValueError(f"paired differences need equally many replications, not {len(a)} and {len(b)}")
    return interval(map(operator.sub, a, b), level)


def _vector(values: Iterable[float]) -> list[float]:
    x = list(map(float, values))
    if not x:
        raise ValueError("expected a non-empty list of numbers")
    return x


def _grouped(x: Sequence[float], size: int, *, at_end: bool = True) -> list[float]:
    """Means of consecutive groups; what does not fill a group is cut off in front, or else at the end."""
    whole = len(x) - len(x) % size if size else 0
    if whole == 0:
        raise ValueError(f"{len(x)} observations do not fill one group of {max(size, 1)}")
    kept = x[len(x) - whole :] if at_end else x[:whole]
    return [mean_of(kept[begin : begin + size]) for begin in range(0, whole, size)]
