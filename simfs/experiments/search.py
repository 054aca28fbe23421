"""Searches for the parameter values at which a scenario meets its rows, in few evaluations of a rough function.

What a search learns of the slopes it gives to the next one, and it takes no difference for a slope that the noise
of the runs could have made. That is why it is not SciPy's: on the functions of
`tests/experiments/test_rough_fits.py`, with equal errors, `brentq` evaluates 3 times on one row instead of 2,
`least_squares` 10 times on two instead of 6; MINPACK's `hybr` 5 to 7 times as well, but it has no bounds, needs as
many parameters as rows, and begins without slopes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MOST_CORRECTED = 2
"""With more parameters than that, no step tells what each of them does: differences are taken at each."""

STEPS = 12
"""Steps of a search, at most."""

HELD = 2.0
"""Standard errors within which rows do not refute values: an interval of 95 %."""

FLAT = 0.5
"""What is left of a slope when a step has changed nothing: the next one is longer."""


class Bounded(Protocol):
    """A parameter with bounds."""

    @property
    def low(self) -> float:
        """The lowest value that may be tried."""

    @property
    def high(self) -> float:
        """The highest."""


class Rough(Protocol):
    """Residuals as a function of parameter values, each evaluated once, and which cannot be told from none."""

    @property
    def parameters(self) -> Sequence[Bounded]:
        """What is searched for."""

    @property
    def rows(self) -> Sequence[object]:
        """What has residuals."""

    @property
    def resolution(self) -> float:
        """The residual that cannot be told from none, as far as is known."""

    def __call__(self, values: Vector) -> Vector:
        """Return the residuals."""

    def part(self, rows: Sequence[int], parameters: Sequence[int], at: Vector) -> Rough:
        """The same for some rows and parameters alone, by number; the other parameters are as in `at`."""


def search(objective: Rough, start: Vector, slopes: Vector | None = None) -> tuple[Vector, Vector]:
    """Return where the residuals are smallest, and their slopes there: of rows by parameters.

    `slopes` are those that an earlier search came back with. A start that the rows do not refute is the answer.
    """
    begin = np.clip(start, *np.array([(p.low, p.high) for p in objective.parameters]).T)
    if holds(objective, begin):
        return begin, np.zeros((len(objective.rows), start.size)) if slopes is None else slopes
    if slopes is not None and not slopes.any():  # that search did not need them
        slopes = None
    if len(objective.rows) == 1:
        return _root(objective, start, slopes)
    if len(objective.parameters) > MOST_CORRECTED:
        return _apart(objective, start, slopes)
    return _correcting(objective, start, slopes)


def _apart(objective: Rough, start: Vector, slopes: Vector | None) -> tuple[Vector, Vector]:
    """Find parameters that alone move a row of their own on that row, after all others on all other rows.

    Such a row can be met whatever the others are, so the residuals of all rows are smallest where those of the other
    rows are. The others are found without its runs, and it without theirs.
    """
    known = _first_slopes(objective, start) if slopes is None else slopes.copy()
    own = _own_rows(known)
    if not own:
        return _differing(objective, start)
    values = start.copy()
    others = [p for p in range(start.size) if p not in own]
    parts = [([r for r in range(len(objective.rows)) if r not in own.values()], others)] if others else []
    for rows, parameters in [*parts, *(([row], [p]) for p, row in own.items())]:
        at = np.ix_(rows, parameters)
        found, known[at] = search(objective.part(rows, parameters, values), values[parameters], known[at])
        values[parameters] = found
    return values, known


def _own_rows(slopes: Vector) -> dict[int, int]:
    """The row of each parameter that moves no other row, if it is the only such one on it."""
    moved = [np.flatnonzero(column).tolist() for column in slopes.T]
    lone = [rows[0] for rows in moved if len(rows) == 1]
    return {p: rows[0] for p, rows in enumerate(moved) if len(rows) == 1 and lone.count(rows[0]) == 1}


def _root(objective: Rough, start: Vector, slopes: Vector | None) -> tuple[Vector, Vector]:
    """One parameter, one row: a secant on logarithms, where powers are straight; outside the bounds, Brent's method."""
    low, high = (math.log(bound) for bound in (objective.parameters[0].low, objective.parameters[0].high))

    def residual(place: float) -> float:
        """The residual, and an exact zero where it does not refute the value."""
        value = min(max(math.exp(place), objective.parameters[0].low), objective.parameters[0].high)
        found = float(objective(np.array([value]))[0])
        return 0.0 if abs(found) <= HELD * objective.resolution else math.log1p(max(found, -0.999))

    def result(place: float, slope: float) -> tuple[Vector, Vector]:
        value = math.exp(place)
        return np.array([value]), np.array([[slope / value]])

    place = min(max(math.log(float(start[0])), low), high)
    # For an operation that is nothing but this parameter, the first guess is exact.
    slope = 1.0 if slopes is None else float(slopes[0, 0]) * math.exp(place)
    here = residual(place)
    other: dict[bool, float] = {}
    """The last place of each sign."""
    for _ in range(STEPS):
        if here == 0:
            return result(place, slope)
        other[here > 0] = place
        wanted = min(max(place - here / slope, low), high)
        if len(other) == 2 and not min(other.values()) < wanted < max(other.values()):
            wanted = sum(other.values()) / 2
        if wanted == place:
            break
        there = residual(wanted)
        change = there - here
        slope = change / (wanted - place) if abs(change) > objective.resolution else slope * FLAT
        place, here = wanted, there
    return result(_bracketed(residual, low, high), slope)


def _bracketed(residual: Callable[[float], float], low: float, high: float) -> float:
    from scipy import optimize

    at_low, at_high = residual(low), residual(high)
    if at_low * at_high > 0:
        return low if abs(at_low) < abs(at_high) else high
    return float(optimize.brentq(residual, low, high, xtol=1e-3))


def _correcting(objective: Rough, start: Vector, slopes: Vector | None) -> tuple[Vector, Vector]:
    """Gauss and Newton's method in units of `start`; each step corrects the slopes by what it found (Broyden).

    Before it ends, differences of two parameters are taken once more. A step that ends higher than it began
    corrects the slopes too, and the next is half as long.
    """
    low, high, x = _box(objective, start)

    def residuals(x: Vector) -> Vector:
        return objective(x * start)

    here = residuals(x)
    reach, fresh = 1.0, slopes is None
    known = _differences(residuals, x, here, objective, (low, high)) if slopes is None else slopes * start
    for _ in range(STEPS):
        if size(here) <= objective.resolution:
            break
        step = _step(known, here, np.maximum(low - x, -reach), np.minimum(high - x, reach))
        if np.max(np.abs(known @ step)) <= objective.resolution:  # no row would be seen to change
            if fresh or x.size == 1:
                break
            known, fresh = _differences(residuals, x, here, objective, (low, high)), True
            continue
        there = residuals(x + step)
        if size(there - here - known @ step) > objective.resolution:
            known = known + np.outer(there - here - known @ step, step) / (step @ step)
        if size(there) < size(here):
            x, here, fresh = x + step, there, False
        else:
            reach = float(np.max(np.abs(step))) / 2
    return x * start, known / start


class _Settled(Exception):  # noqa: N818 - a result and no error
    """The search is at values whose residuals cannot be told from none."""


def _differing(objective: Rough, start: Vector) -> tuple[Vector, Vector]:
    """Least squares in a region of trust, with differences at each step."""
    from scipy import optimize

    def residuals(x: Vector) -> Vector:
        found = objective(x * start)
        if size(found) <= objective.resolution:
            raise _Settled(x * start)
        return found

    low, high, first = _box(objective, start)
    unknown = np.zeros((len(objective.rows), start.size))
    try:
        residuals(first)
        found = optimize.least_squares(
            residuals,
            first,
            bounds=(low, high),
            diff_step=[max(0.1, 3 * objective.resolution)] * start.size,
            xtol=objective.resolution,
            ftol=objective.resolution,
            max_nfev=15,
        )
    except _Settled as settled:
        return np.asarray(settled.args[0]), unknown
    return np.asarray(found.x * start), unknown


def holds(objective: Rough, values: Vector) -> bool:
    """Whether the rows do not refute these values."""
    return size(objective(values)) <= HELD * objective.resolution


def size(residuals: Vector) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(residuals**2)))


def _box(objective: Rough, start: Vector) -> tuple[Vector, Vector, Vector]:
    """Bounds in units of `start`, and where a search between them begins."""
    low = np.array([p.low for p in objective.parameters]) / start
    high = np.array([p.high for p in objective.parameters]) / start
    return low, high, np.clip(np.ones_like(start), low * (1 + 1e-6), high * (1 - 1e-6))


def _first_slopes(objective: Rough, start: Vector) -> Vector:
    """Slopes where a search begins, by differences."""
    low, high, x = _box(objective, start)

    def residuals(x: Vector) -> Vector:
        return objective(x * start)

    return _differences(residuals, x, residuals(x), objective, (low, high)) / start


def _differences(
    residuals: Callable[[Vector], Vector],
    x: Vector,
    here: Vector,
    objective: Rough,
    box: tuple[Vector, Vector],
) -> Vector:
    """Slopes by differences, wide enough that they are the parameter's and not the noise of another interleaving."""
    columns = []
    for number in range(x.size):
        (low, high), width = (bound[number] for bound in box), max(0.1, 3 * objective.resolution) * x[number]
        aside = x.copy()
        aside[number] = x[number] + width if x[number] + width <= high else max(x[number] - width, low)
        columns.append((residuals(aside) - here) / (aside[number] - x[number]))
    return np.column_stack(columns)


def _step(slopes: Vector, here: Vector, low: Vector, high: Vector) -> Vector:
    """The step to where residuals with these slopes are smallest, of those in a box."""
    from scipy import optimize

    return np.asarray(optimize.lsq_linear(slopes, -here, bounds=(low - 1e-12, high + 1e-12)).x)
