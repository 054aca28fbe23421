"""How well a fit is determined: intervals by profile likelihood, and which parameters trade off.

The residuals of all rows are simulated at the fit and at both sides of it, with the same random streams, and
taken as linear in the logarithms of the parameters in between. The likelihood is normal, with the standard
errors of the simulated means and of the measured values (half of `low` to `high` of a row counts as one, which
is conservative; a row without them counts as exact, and is named in the notes). The profile of a linear model
is its Wald interval, widened where the rows are missed by more than their noise. Condition numbers are those
of D. A. Belsley, E. Kuh, R. E. Welsch, *Regression Diagnostics*, 1980: above 30 the data do not tell parameters
apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from simfs.experiments.calibrate import Objective, Parameter, Runner, residual, standard_error
from simfs.experiments.calibrate import calibrate as fit_to_rows
from simfs.experiments.fitted import problem
from simfs.results.manifest import sha256, software
from simfs.results.model import Comparison, Fit, MeasuredRow
from simfs.results.run import Engine, Progress, Runs
from simfs.results.run_result import Strict
from simfs.results.statistics import student_t
from simfs.scenario import Scenario, to_run_spec
from simfs.scenario.schema import Fit as Wanted

STEP = 0.05
"""Relative step of the differences: large beside the noise of another interleaving, small beside curvature."""

CONDITION = 30.0
CORRELATION = 0.95

Vector = NDArray[np.float64]


class Fitted(Strict):
    """One fitted parameter."""

    parameter: str
    value: float
    low: float
    high: float
    unit: str
    bounds: tuple[float, float]
    prior: float = Field(description="where the search began")
    source: str = Field(description="where bounds and prior come from")


class Residual(Strict):
    """One row at the fit."""

    row: MeasuredRow
    simulated: float
    error_percent: float | None


class Calibration(Strict):
    """A fit with all it rests on: what `simfs calibrate` writes down."""

    scenario: str
    scenario_sha256: str = Field(description="of the scenario as resolved, JSON")
    confidence: float
    method: str = "profile likelihood, residuals linear in the logarithms of the parameters"
    parameters: tuple[Fitted, ...]
    rows: tuple[Residual, ...]
    correlation: tuple[tuple[float, ...], ...]
    condition: float | None = Field(description="scaled condition number of the Jacobian; None if singular")
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    seed: int
    replications: int
    evaluations: int
    software: dict[str, Any]


def calibration(
    scenario: Scenario,
    rows: Sequence[MeasuredRow],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Calibration:
    """Fit what `scenario` declares and say how well that is known.

    `rows` are all rows of its data set. Raises CalibrationError for a scenario without a fit, more parameters
    than rows, and a fit that ends at a bound.
    """
    parameters, used, build = problem(scenario, rows)
    runs = Runs(max(2, scenario.measure.replications), confidence=scenario.measure.confidence)
    options: dict[str, Any] = {"engine": engine, "threads": threads, "progress": progress}
    fit = fit_to_rows(parameters, used, build, to_spec=to_run_spec, measure=runs, **options)
    runner = Runner(engine, threads, runs, progress)
    objective = Objective(parameters, used, build, to_run_spec, runner, tolerance=0)
    at = np.array([fit.values[p.name] for p in parameters])
    known = _known_at(at, objective, runs)
    each = zip(parameters, at, known.half, scenario.calibrate, strict=True)
    return Calibration(
        scenario=scenario.name,
        scenario_sha256=sha256(scenario.model_dump_json(exclude_unset=True)),
        confidence=runs.confidence,
        parameters=tuple(_fitted(p, v, h, wanted) for p, v, h, wanted in each),
        rows=known.rows,
        correlation=tuple(tuple(float(x) for x in row) for row in known.correlation),
        condition=known.condition if math.isfinite(known.condition) else None,
        warnings=tuple(_warnings(fit, parameters, known)),
        notes=known.notes,
        seed=scenario.measure.seed,
        replications=runs.replications,
        evaluations=fit.evaluations + 1 + 2 * len(parameters),
        software=software(),
    )


@dataclass(frozen=True)
class _Known:
    """How well parameters are known, with residuals linear in their logarithms."""

    compared: Sequence[Comparison]
    jacobian: Vector
    half: Vector
    """Half widths of the intervals of the logarithms."""
    correlation: Vector
    condition: float

    @property
    def rows(self) -> tuple[Residual, ...]:
        """What is left of each row."""
        return tuple(
            Residual(row=c.row, simulated=c.simulated.mean, error_percent=c.error_percent)
            for c in self.compared
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Of rows whose own error is not known."""
        unknown = [c.row.label for c in self.compared if c.row.low is None]
        return tuple(
            f"'{label}' has no low and high: its own error is not in the intervals" for label in unknown
        )


def _known_at(at: Vector, objective: Objective, runs: Runs) -> _Known:
    compared = objective.compared(tuple(at.tolist()))
    errors = np.array([_row_error(c, runs.confidence) for c in compared])
    jacobian = _jacobian(objective, at) / errors[:, None]
    missed = np.array([residual(c) for c in compared]) / errors
    covariance = _covariance(jacobian, missed)
    half = student_t(runs.confidence, runs.replications - 1) * np.sqrt(np.diag(covariance))
    return _Known(compared, jacobian, half, _correlation(covariance), _condition(jacobian))


def _row_error(c: Comparison, level: float) -> float:
    """Standard error of a row's residual: that of its simulated mean, and of the measured value."""
    measured = 0.0 if c.row.low is None or c.row.high is None else (c.row.high - c.row.low) / 2
    # Exact rows of a deterministic run: as sure as the fit is fine.
    return max(standard_error(c, measured, level), 1e-4)


def _jacobian(objective: Objective, at: Vector) -> Vector:
    """Derivatives of all residuals by the logarithm of each parameter, by central differences."""
    columns = []
    for i in range(at.size):
        up, down = at.copy(), at.copy()
        up[i] *= math.exp(STEP)
        down[i] *= math.exp(-STEP)
        columns.append((objective(up) - objective(down)) / (2 * STEP))
    return np.column_stack(columns)


def _covariance(jacobian: Vector, missed: Vector) -> Vector:
    """Of the logarithms; infinite variances where the rows do not determine the parameters."""
    rows, parameters = jacobian.shape
    normal = jacobian.T @ jacobian
    if np.linalg.matrix_rank(normal, hermitian=True) < parameters:
        return np.diag(np.full(parameters, np.inf))
    misfit = float(missed @ missed) / (rows - parameters) if rows > parameters else 1.0
    return np.asarray(np.linalg.inv(normal) * max(1.0, misfit))


def _condition(jacobian: Vector) -> float:
    lengths = np.linalg.norm(jacobian, axis=0)
    return math.inf if not lengths.all() else float(np.linalg.cond(jacobian / lengths))


def _correlation(covariance: Vector) -> Vector:
    spread = np.sqrt(np.diag(covariance))
    if not np.isfinite(spread).all():
        return np.eye(spread.size)
    return np.asarray(covariance / np.outer(spread, spread))


def _warnings(fit: Fit, parameters: Sequence[Parameter], known: _Known) -> list[str]:
    names = [p.name for p in parameters]
    found = [
        f"{name}: no row answers to it beyond noise"
        for name, column in zip(names, known.jacobian.T, strict=True)
        if np.linalg.norm(column) * math.log(fit.bounds[name][1] / fit.bounds[name][0]) < 2
    ]
    for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
        if abs(known.correlation[i, j]) > CORRELATION:
            found.append(
                f"{names[i]} and {names[j]} trade off (correlation {known.correlation[i, j]:+.3f}): these rows hardly"
                " tell them apart"
            )
    if known.condition > CONDITION:
        found.append(
            f"the rows do not determine all parameters (condition number {known.condition:.3g} > {CONDITION:g})"
        )
    return found


def _fitted(p: Parameter, value: float, half: float, wanted: Wanted) -> Fitted:
    factor = math.exp(min(half, math.log(p.high / p.low)))  # beyond that the bounds decide
    return Fitted(
        parameter=p.name,
        value=float(value),
        low=max(p.low, value / factor),
        high=min(p.high, value * factor),
        unit=p.unit,
        bounds=(p.low, p.high),
        prior=p.start or math.sqrt(p.low * p.high),
        source=wanted.source
        or ("the scenario's own value" if wanted.prior is None else "the scenario's prior"),
    )
