"""Whether what a scenario expects came so."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from itertools import pairwise

from simfs.results.model import Case, Expected, PointResult, ScenarioResult, Value
from simfs.scenario.measured.metrics import metric
from simfs.scenario.sections.expectation import (
    Expectation,
    Number,
    Part,
    Term,
    coordinates,
    instances,
    terms_of,
    unit_of,
    value_of,
)
from simfs.scenario.sections.expectation_parser import parse

_HOLDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def metrics_of(texts: Iterable[str]) -> list[str]:
    """The metrics that have to be taken from each run, so that these expectations can be checked."""
    names = (term.metric for text in texts for term in parse(text).terms)
    return [name for name in dict.fromkeys(names) if metric(name).by_run]


def expected(texts: Iterable[str], result: ScenarioResult) -> tuple[Expected, ...]:
    """Check expectations against a result, in the order they are written."""
    return tuple(_expected(parse(text), result) for text in texts)


def _expected(wanted: Expectation, result: ScenarioResult) -> Expected:
    points = [coordinates(point.variant, point.values, point.tasks) for point in result.points]
    try:
        cases = [
            _case(wanted, {term: result.points[i] for term, i in at.items()}, here)
            for here, at in instances(wanted, points, result.sweep)
        ]
    except ValueError:  # a point that this run leaves out: loading refuses what no point can have
        cases = []
    return Expected(text=wanted.text, cases=tuple(cases))


def _case(wanted: Expectation, at: Mapping[Term, PointResult], here: Mapping[str, object]) -> Case:
    sides = [_value(side, at) for side in wanted.sides]
    holds, close = True, False
    for order, (left, right) in zip(wanted.orders, pairwise(sides), strict=True):
        if left is None or right is None:
            holds = False
            continue
        other = right.to(left.unit)
        left = left.to(other.unit)
        holds &= _HOLDS[order](left.mean, other.mean)
        close |= left.low <= other.high and other.low <= left.high
    shown: dict[str, Value] = {
        key: value for key, value in here.items() if isinstance(value, (str, int, float))
    }
    found = [side for part, side in zip(wanted.sides, sides, strict=True) if any(terms_of(part))]
    return Case(
        at=shown,
        values=tuple(None if side is None else side.mean for side in found),
        units=tuple("" if side is None else side.unit for side in found),
        holds=holds,
        close=close,
    )


def _value(side: Part, at: Mapping[Term, PointResult]) -> Number | None:
    """What a side is worth; None where a run has no such quantity, or divides by nothing."""

    def of(term: Term) -> Number:
        found = at[term].estimate(term.metric)
        if found is None or not math.isfinite(found.mean):
            raise LookupError(term.metric)
        low, high = (found.mean if end is None else end for end in (found.low, found.high))
        return Number(found.mean, low, high, unit_of(term.metric))

    try:
        return value_of(side, of)
    except (LookupError, ZeroDivisionError):
        return None
