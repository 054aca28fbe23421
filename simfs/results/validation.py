"""Measured rows beside their predictions and two baselines, and how well each of the three did.

The baselines are what one would say without simfs: the Universal Scalability Law, fitted to the calibrate rows
of the same series, and "nothing changes", the value of the nearest calibrate row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Literal

from simfs.results.model import Finding, Fit, Role
from simfs.results.statistics import Estimate
from simfs.results.statistics_scaling import usl
from simfs.scenario.measured.dataset import RATIO
from simfs.scenario.measured.metrics import metric

Blame = Literal["input", "fit", "engine"]
"""Why nothing is predicted: the input is bad, no value within the bounds meets the rows, or the engine failed."""


@dataclass(frozen=True)
class Row:
    """A measured row, in the unit of its metric, with what is said of it; None where nothing is."""

    dataset: str
    series: str
    x: float
    role: Role
    metric: str
    unit: str
    measured: float
    predicted: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    low: float | None = None
    """Lowest of the measured runs."""
    high: float | None = None
    approx: bool = False
    usl: float | None = None
    nothing: float | None = None
    counted: bool = True
    """Whether it is scored as predicted: not where it hangs on a fit outside the range of the parameter's source."""

    @property
    def error(self) -> float | None:
        """Relative error of the prediction; None where the measured value is 0."""
        return relative(self.predicted, self.measured)

    @property
    def place(self) -> str:
        """The row as a person would name it."""
        return f"{self.series}, {self.x:g}, {self.metric}"

    def with_prediction(self, estimate: Estimate | None) -> Row:
        """The same row with what was simulated for it."""
        if estimate is None:
            return self
        return replace(self, predicted=estimate.mean, ci_low=estimate.low, ci_high=estimate.high)


KNOWN_TO = {False: 0.01, True: 0.05}
"""How well a value without lowest and highest runs is taken to be known, if approximate or not: plain runs of one
benchmark on one machine differ by about so much."""

POINTS = 1.0
"""The same of percentages, in points."""

COLUMNS = (
    "dataset", "series", "x", "role", "metric", "unit", "measured", "predicted", "ci_low", "ci_high", "error",
)  # fmt: skip
"""What is said of a row wherever rows are written."""


@dataclass(frozen=True)
class Validated:
    """A data set with its predictions; `problem` says why there are none, `blame` what is to blame."""

    dataset: str
    title: str
    x: str
    rows: tuple[Row, ...]
    scenario: str | None = None
    fits: tuple[Fit, ...] = ()
    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    blame: Blame = "input"
    notes: tuple[str, ...] = field(default=())
    outside: tuple[str, ...] = ()
    """What was fitted to a value outside the range of its source, a sentence each."""


@dataclass(frozen=True)
class Score:
    """How well some rows with role predict were said; errors are absolute and, but for percentages, relative."""

    rows: int
    right: int
    changes: int
    median: float | None
    worst: float | None
    points: tuple[float, float] | None
    """Median and worst error of percentages, in points."""

    @property
    def signs(self) -> float | None:
        """Share of the measured changes whose sign is right; None where nothing changed."""
        return self.right / self.changes if self.changes else None


Says = Callable[[Row], float | None]
"""What somebody says of a row."""

SAYERS: dict[str, Says] = {
    "simfs": lambda row: row.predicted,
    "USL": lambda row: row.usl,
    "nothing changes": lambda row: row.nothing,
}


def relative(value: float | None, measured: float) -> float | None:
    """The relative error of `value`; None where there is none."""
    return None if value is None or measured == 0 else (value - measured) / measured


def score(rows: Sequence[Row], says: Says = SAYERS["simfs"]) -> Score:
    """How well the rows were said: errors of those to be predicted, signs of the changes that lead to them."""
    wanted = [row for row in rows if row.role == "predict" and says(row) is not None]
    errors, points = _errors(wanted, says)
    known = [(a, b) for a, b in changes(rows) if says(a) is not None and says(b) is not None]
    return Score(
        rows=len(wanted),
        right=sum(_sign(says(b), says(a)) == _sign(b.measured, a.measured) for a, b in known),
        changes=len(known),
        median=median(errors) if errors else None,
        worst=max(errors, default=None),
        points=(median(points), max(points)) if points else None,
    )


def _errors(rows: Sequence[Row], says: Says) -> tuple[list[float], list[float]]:
    """Relative errors, and those of percentages in points: 0.2 % idle instead of 0.1 is no error of 100 %."""
    relative_: list[float] = []
    points: list[float] = []
    for row in rows:
        value = says(row)
        if value is None:
            continue
        if row.unit == "%":
            points.append(abs(value - row.measured))
        elif (error := relative(value, row.measured)) is not None:
            relative_.append(abs(error))
    return relative_, points


def changes(rows: Iterable[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs of rows between which something was measured to change, at least one of them to be predicted.

    Neighbours along x within a series, and at one x series that follow each other in the data set (before
    and after). Where the measured runs overlap, or what `KNOWN_TO` stands for them, the sign of the change is
    not known and the pair is left out.
    """
    along: dict[tuple[str, str, str, str], list[Row]] = {}
    across: dict[tuple[str, str, str, float], list[Row]] = {}
    for row in rows:
        if row.role != "info":
            along.setdefault((row.dataset, row.metric, row.unit, row.series), []).append(row)
            across.setdefault((row.dataset, row.metric, row.unit, row.x), []).append(row)
    steps = [pair for same in along.values() for pair in pairwise(sorted(same, key=lambda r: r.x))]
    steps = [(a, b) for a, b in steps if a.x != b.x]
    steps += [(a, b) for same in across.values() for a, b in pairwise(same) if a.series != b.series]
    return ((a, b) for a, b in steps if "predict" in (a.role, b.role) and _differ(a, b))


def with_baselines(rows: Sequence[Row], *, over_tasks: bool) -> tuple[Row, ...]:
    """The rows of one data set with both baselines; the scalability law only `over_tasks`."""
    return tuple(
        replace(row, nothing=_nearest(row, rows), usl=_law(row, rows) if over_tasks else None) for row in rows
    )


def _nearest(row: Row, rows: Sequence[Row]) -> float | None:
    """The value of the nearest calibrate row of this metric: of the own series if it has one."""
    known = [r for r in rows if r.role == "calibrate" and (r.metric, r.unit) == (row.metric, row.unit)]
    own = [r for r in known if r.series == row.series]
    best = min(own or known, key=lambda r: abs(r.x - row.x), default=None)
    return best.measured if best else None


def _law(row: Row, rows: Sequence[Row]) -> float | None:
    same = [r for r in rows if (r.role, r.metric, r.series) == ("calibrate", row.metric, row.series)]
    if metric(row.metric).quantity != "throughput" or row.unit == RATIO:
        return None
    law = usl([r.x for r in same], [r.measured for r in same])
    value = law.at(row.x) if law else 0.0
    return value if value > 0 else None


def _differ(a: Row, b: Row) -> bool:
    (low_a, high_a), (low_b, high_b) = _range(a), _range(b)
    return high_a < low_b or high_b < low_a


def _range(row: Row) -> tuple[float, float]:
    if row.low is not None and row.high is not None:
        return row.low, row.high
    spread = POINTS if row.unit == "%" else KNOWN_TO[row.approx] * row.measured
    return row.measured - spread, row.measured + spread


def _sign(b: float | None, a: float | None) -> int:
    assert a is not None
    assert b is not None
    return (b > a) - (b < a)
