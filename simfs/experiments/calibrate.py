"""Fitting the parameters a scenario declares, to the measured rows it declares, and to nothing else.

Residuals are `measured / simulated - 1` for rates and `(simulated - measured) / 100` for percentages. The
time of an operation is nearly a linear function of the CPU time in it, so the first kind is nearly linear
in the parameter, and a search (`search`) needs some three evaluations. Every evaluation runs with the same seeds
(common random numbers), so the residual is a function and not a random variable. It is a rough one, since at
the next value events come in another order. So a search ends where residuals are no larger than the standard
error of what was simulated; that of one row where it is within two of them, which do not refute the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simfs.experiments.search import HELD, holds, search, size
from simfs.results.aggregate import PointLike, compare
from simfs.results.model import Comparison, Fit, MeasuredRow, PointResult, quantity
from simfs.results.run import Engine, MeasureLike, Progress, Runs, ToSpec, run_scenario
from simfs.results.statistics import LEVEL, stddev
from simfs.scenario.measured.metrics import metric

TOLERANCE = 3e-3
"""Residual, and relative change of a parameter, at which a fit stops: well below what rows are known to."""

DRAFT_TOLERANCE = 1e-2
"""The same for the rough search that only finds where to begin."""

DRAFT = 0.2
"""Part of a replication's duration that the first, rough search simulates."""

SURE = 2.0
"""Times what rows refute at least: from there on straight slopes say it as well as a run."""

Vector = NDArray[np.float64]

Build = Callable[[Mapping[str, float]], Sequence[PointLike]]
"""The points of the scenario with these parameter values."""


class CalibrationError(ValueError):
    """A fit that may not or cannot be done; the message says why and what would help."""


class UnmetRowsError(CalibrationError):
    """No value within the bounds meets the rows: the input is sound, and a mechanism is missing or mispriced."""


@dataclass(frozen=True)
class Parameter:
    """One parameter that may be fitted; positive, in `unit` throughout."""

    name: str
    low: float
    high: float
    start: float | None = None
    unit: str = "ns"
    sourced: tuple[float, float] | None = None
    """The range that its source gives."""

    def __post_init__(self) -> None:
        """Refuse bounds that a search on the logarithm cannot use."""
        if not 0 < self.low < self.high:
            raise CalibrationError(
                f"{self.name}: bounds must be positive and rising, not {self.low}, {self.high}"
            )


def calibrate(
    parameters: Sequence[Parameter],
    rows: Iterable[MeasuredRow],
    build: Build,
    *,
    to_spec: ToSpec,
    engine: Engine | None = None,
    threads: int | None = None,
    measure: MeasureLike | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Fit `parameters` to the rows with role `calibrate` and return the values with what they rest on.

    `measure` gives replications and warm-up of an evaluation (default: two replications, the spec's own
    warm-up). On several rows, a draft with a fifth of the duration comes first, unless most of a run is warm-up;
    the full duration refines it, from the slopes that the draft has found. Raises CalibrationError for more
    parameters than rows and rows that no point answers, and UnmetRowsError for a fit that ends at a bound.
    """
    used = tuple(r for r in rows if r.role == "calibrate")
    _refuse_more(parameters, used)
    runner = Runner(engine, threads, measure or Runs(replications=2), progress)
    draft = Objective(parameters, used, build, _shortened(to_spec, DRAFT), runner, DRAFT_TOLERANCE)
    full = Objective(parameters, used, build, to_spec, runner, TOLERANCE)
    start = first = np.array([p.start or math.sqrt(p.low * p.high) for p in parameters])
    slopes = np.array([[-1 / start[0]]]) if len(used) == 1 and _is_time(used[0]) else None
    if len(used) > 1 and _saves_half(draft, start):
        start, slopes = search(draft, start)
    values, found = search(full, start, slopes)
    if (ended := _at_bounds(parameters, values)).any() and not holds(full, values):
        values, found = _from_the_other_side(full, first, values, found, ended)
    values = _into_sources(full, values, found if (values != start).any() else 0 * found)
    _refuse_bounds(parameters, values)
    return Fit(
        # As they were simulated, so that a prediction at the fitted rows is the run that has been made for the fit.
        values=dict(zip((p.name for p in parameters), simulated(values), strict=True)),
        units={p.name: p.unit for p in parameters},
        bounds={p.name: (p.low, p.high) for p in parameters},
        rows=used,
        objective=float(np.sqrt(np.mean(full(values) ** 2))),
        evaluations=len(draft.known) + len(full.known),
    )


def _from_the_other_side(
    objective: Objective, start: Vector, values: Vector, slopes: Vector, ended: NDArray[np.bool_]
) -> tuple[Vector, Vector]:
    """Search once more from between the start and the other bound; return what meets the rows better.

    Where a parameter changes nothing at the start, noise decides to which bound a search goes.
    """
    low, high = np.array([(p.low, p.high) for p in objective.parameters]).T
    other = np.where(values > start, low, high)
    again = search(objective, np.where(ended, np.sqrt(start * other), start))
    return min((values, slopes), again, key=lambda found: size(objective(found[0])))


def _into_sources(objective: Objective, values: Vector, slopes: Vector) -> Vector:
    """Return the values in the ranges of their sources that are nearest, unless the rows refute those.

    With the slopes that were found there, of which unknown ones are 0, most are refuted without a run.
    """
    ends = np.array([p.sourced or (p.low, p.high) for p in objective.parameters])
    nearest = np.clip(values, *ends.T)
    allowed = all(p.low < value < p.high for p, value in zip(objective.parameters, nearest, strict=True))
    moved = allowed and not np.array_equal(nearest, values)
    told = size(objective(values) + slopes @ (nearest - values))
    if not moved or told > SURE * HELD * objective.resolution:
        return values
    return nearest if holds(objective, nearest) else values


def _refuse_more(parameters: Sequence[Parameter], rows: Sequence[MeasuredRow]) -> None:
    """Refuse more parameters than rows."""
    if len(parameters) > len(rows):
        raise CalibrationError(
            f"{len(parameters)} parameters cannot be fitted on {len(rows)} rows with role 'calibrate'"
            f" ({', '.join(p.name for p in parameters)}): fit fewer parameters or name more rows"
        )


@dataclass(frozen=True)
class Runner:
    """How the points of an evaluation are run."""

    engine: Engine | None
    threads: int | None
    measure: MeasureLike
    progress: Progress | None

    def __call__(
        self, points: Sequence[PointLike], to_spec: ToSpec, metrics: Iterable[str]
    ) -> tuple[PointResult, ...]:
        """Run the points with the same random streams every time; the results have these metrics."""
        return run_scenario(
            points,
            self.measure,
            threads=self.threads,
            engine=self.engine,
            to_spec=to_spec,
            progress=self.progress,
            metrics=metrics,
        ).points


Known = tuple[float, float]
"""A residual and its standard error."""


@dataclass
class Objective:
    """Residuals of the rows as a function of the parameter values; each row is simulated once with each."""

    parameters: Sequence[Parameter]
    rows: Sequence[MeasuredRow]
    build: Build
    to_spec: ToSpec
    run: Runner
    tolerance: float
    known: dict[tuple[float, ...], dict[int, Known]] = field(default_factory=dict)
    """By values, as they are simulated, and number of the row."""

    def __call__(self, values: Vector) -> Vector:
        """Return the residuals at these parameter values."""
        return self.of_rows(values, range(len(self.rows)))

    def of_rows(self, values: Vector, numbers: Sequence[int]) -> Vector:
        """Return the residuals of the rows with these numbers."""
        key = simulated(values)
        known = self.known.setdefault(key, {})
        if new := [number for number in numbers if number not in known]:
            for number, c in zip(new, self.compared(key, new), strict=True):
                known[number] = residual(c), standard_error(c)
        return np.array([known[number][0] for number in numbers])

    @property
    def resolution(self) -> float:
        """The residual that cannot be told from none; the tolerance at least."""
        return self.resolution_of(range(len(self.rows)))

    def resolution_of(self, numbers: Sequence[int]) -> float:
        """The same of some rows.

        It is the standard error of a row's mean over replications, pooled over all that was simulated so far.
        """
        errors = [known[n][1] for known in self.known.values() for n in numbers if n in known]
        return max(self.tolerance, float(np.sqrt(np.mean(np.square(errors)))))

    def part(self, rows: Sequence[int], parameters: Sequence[int], at: Vector) -> Part:
        """The same for some rows and parameters alone; the other parameters are as in `at`."""
        return Part(self, tuple(rows), tuple(parameters), at.copy())

    def compared(self, values: tuple[float, ...], numbers: Sequence[int] | None = None) -> list[Comparison]:
        """Simulate the rows with these parameter values, all or those with these numbers; in their order."""
        rows = self.rows if numbers is None else [self.rows[number] for number in numbers]
        points = self.build(dict(zip((p.name for p in self.parameters), values, strict=True)))
        results = self.run(_needed(points, rows), self.to_spec, [row.metric for row in rows])
        answered, unmatched = compare(results, rows)
        if unmatched:
            raise CalibrationError(f"no point of the scenario answers row '{unmatched[0].label}'")
        return [c for row in rows for p in answered for c in p.measured if c.row == row]


@dataclass(frozen=True)
class Part:
    """Some rows of an objective as a function of some of its parameters."""

    whole: Objective
    row_numbers: tuple[int, ...]
    open: tuple[int, ...]
    at: Vector

    @property
    def parameters(self) -> list[Parameter]:
        """What is searched for."""
        return [self.whole.parameters[p] for p in self.open]

    @property
    def rows(self) -> list[MeasuredRow]:
        """What has residuals."""
        return [self.whole.rows[number] for number in self.row_numbers]

    @property
    def resolution(self) -> float:
        """The residual that cannot be told from none."""
        return self.whole.resolution_of(self.row_numbers)

    def __call__(self, values: Vector) -> Vector:
        """Return the residuals."""
        return self.whole.of_rows(self._all(values), self.row_numbers)

    def part(self, rows: Sequence[int], parameters: Sequence[int], at: Vector) -> Part:
        """A part of the part."""
        numbers = tuple(self.row_numbers[row] for row in rows)
        return Part(self.whole, numbers, tuple(self.open[p] for p in parameters), self._all(at))

    def _all(self, values: Vector) -> Vector:
        whole = self.at.copy()
        whole[list(self.open)] = values
        return whole


def simulated(values: Vector) -> tuple[float, ...]:
    """Parameter values as they are simulated: no fit is known to more digits."""
    return tuple(float(f"{v:.9g}") for v in values)


def _needed(points: Sequence[PointLike], rows: Sequence[MeasuredRow]) -> list[PointLike]:
    """The points of variants with rows, narrowed by sweep value where rows and points share keys."""

    def wanted(point: PointLike, row: MeasuredRow) -> bool:
        known = dict(point.values) | {k.rsplit(".", 1)[-1]: v for k, v in point.values.items()}
        return point.variant == row.variant and all(known.get(k, v) == v for k, v in row.values.items())

    return [p for p in points if any(wanted(p, row) for row in rows)]


NONE_SEEN = 1e3
"""The residual of context switches where nobody sleeps: a search may pass through such values."""


def residual(comparison: Comparison) -> float:
    """How far a row is from its simulation, in a form that is nearly linear in CPU times."""
    if comparison.row.metric.endswith("_percent"):
        return comparison.error / 100
    if comparison.simulated.mean == 0 and comparison.row.metric.startswith("context_switches"):
        return NONE_SEEN
    if comparison.simulated.mean == 0:
        what = f"the simulation of row '{comparison.row.label}' finishes no operation"
        raise CalibrationError(f"calibrate: {what}; measure longer (measure.duration)")
    return comparison.row.value / comparison.simulated.mean - 1


def standard_error(comparison: Comparison, measured: float = 0.0, level: float = LEVEL) -> float:
    """The standard error of a residual: that of the simulated mean, and `measured`, that of the row's value.

    A single replication tells none, and has 0.
    """
    row, simulated = comparison.row, comparison.simulated
    error = (stddev(simulated, level) or 0.0) / math.sqrt(simulated.n)
    if row.metric.endswith("_percent"):
        return math.hypot(error, measured) / 100
    if simulated.mean == 0:
        return 0.0
    ratio = row.value / simulated.mean
    return math.hypot(ratio * error / simulated.mean, measured / simulated.mean)


def _at_bounds(parameters: Sequence[Parameter], values: Vector) -> NDArray[np.bool_]:
    low, high = np.array([(p.low, p.high) for p in parameters]).T
    ended: NDArray[np.bool_] = (values <= low * 1.001) | (values >= high / 1.001)
    return ended


def _refuse_bounds(parameters: Sequence[Parameter], values: Vector) -> None:
    for p, value, ended in zip(parameters, values, _at_bounds(parameters, values), strict=True):
        if ended:
            raise UnmetRowsError(
                f"{p.name} ends at its bound {quantity(value, p.unit)}: the rows cannot be met within"
                f" {quantity(p.low, p.unit)} to {quantity(p.high, p.unit)}; widen the bounds if their source allows it"
            )


def _is_time(row: MeasuredRow) -> bool:
    """Whether the row is longer, and its residual so smaller, where rates are lower."""
    return metric(row.metric).quantity == "latency"


def _saves_half(draft: Objective, values: Vector) -> bool:
    """Whether a run of the draft simulates no more than half of what a run of the full duration does."""
    points = draft.build(dict(zip((p.name for p in draft.parameters), values.tolist(), strict=True)))
    spec = draft.to_spec(points[0], 0)
    warmup, duration = spec.get("warmup_ns", 0.0), spec["duration_ns"]
    return bool(2 * (warmup + duration) <= warmup + duration / DRAFT)


def _shortened(to_spec: ToSpec, part: float) -> ToSpec:
    def shorter(point: object, replication: int) -> dict[str, Any]:
        spec = dict(to_spec(point, replication))
        return {**spec, "duration_ns": spec["duration_ns"] * part}

    return shorter
