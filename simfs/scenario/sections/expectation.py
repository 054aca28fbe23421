"""What a scenario expects of its results: comparisons of metrics at points, as text.

`throughput[xfs, 24] / throughput[xfs, 1] > 10` has sides, terms and their points (`expectation_parser` reads it); what
the numbers are is known after the run (`simfs.results.expected`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from simfs.scenario.measured.metrics import metric
from simfs.scenario.sections.units import BYTES_PER_UNIT, NS_PER_UNIT
from simfs.scenario.suggest import choices, nearest

TASKS = "tasks"
"""The number of all tasks, which points have also where no key of it is swept; swept keys go first."""

_RATES = {f"{unit}/s": size for unit, size in BYTES_PER_UNIT.items()}
_FAMILIES: tuple[Mapping[str, float], ...] = (NS_PER_UNIT, _RATES)
UNITS = (*NS_PER_UNIT, *_RATES, "%", "/s")

Coordinates = Mapping[str, object]
"""Where a point is: `variant`, the task count, and the value of each swept key."""


@dataclass(frozen=True)
class Number:
    """A number with its interval and its unit; a plain number has none."""

    mean: float
    low: float
    high: float
    unit: str = ""

    def to(self, unit: str) -> Number:
        """The same in another unit of its family; a plain number is taken as in that unit. Raises ValueError."""
        if unit in (self.unit, "") or not self.unit:
            return Number(self.mean, self.low, self.high, unit or self.unit)
        for family in _FAMILIES:
            if unit in family and self.unit in family:
                factor = family[self.unit] / family[unit]
                return Number(self.mean * factor, self.low * factor, self.high * factor, unit)
        raise ValueError(f"{self.unit} and {unit} are not the same sort of quantity")


@dataclass(frozen=True)
class Term:
    """A metric, at the points that `where` leaves open: words as they are written, with the key where one is given."""

    metric: str
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Join:
    """Two parts and what is done with them."""

    sign: str
    left: Part
    right: Part


Part = Number | Term | Join
Order = Literal["<", "<=", ">", ">="]
ORDERS: Mapping[str, Order] = {order: order for order in get_args(Order)}


@dataclass(frozen=True)
class Expectation:
    """Sides, and what must hold between each and the next."""

    text: str
    sides: tuple[Part, ...]
    orders: tuple[Order, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        """All metrics that it names, in the order they are written."""
        return tuple(term for side in self.sides for term in terms_of(side))


def coordinates(variant: str, values: Mapping[str, object], tasks: int) -> Coordinates:
    """Where the point of a variant with these swept values is."""
    swept = {"variant": variant, **values}
    return swept if f"workload.{TASKS}" in values else {**swept, TASKS: tasks}


def terms_of(part: Part) -> Iterator[Term]:
    """Yield the metrics in `part`."""
    if isinstance(part, Join):
        yield from terms_of(part.left)
        yield from terms_of(part.right)
    elif isinstance(part, Term):
        yield part


def value_of(part: Part, value: Callable[[Term], Number]) -> Number:
    """Return what `part` is worth; `value` knows the metrics. Raises ValueError for units that do not go together."""
    if isinstance(part, Number):
        return part
    if isinstance(part, Term):
        return value(part)
    left, right = value_of(part.left, value), value_of(part.right, value)
    if part.sign in "+-":
        unit = left.unit or right.unit
        return _joined(part.sign, left.to(unit), right.to(unit), unit)
    if part.sign == "*":
        if left.unit and right.unit:
            raise ValueError(f"a product of {left.unit} and {right.unit} means nothing")
        return _joined("*", left, right, left.unit or right.unit)
    if left.unit and right.unit:
        return _joined("/", left, right.to(left.unit), "")
    if right.unit:
        raise ValueError(f"a plain number divided by {right.unit} means nothing")
    return _joined("/", left, right, left.unit)


def _joined(sign: str, left: Number, right: Number, unit: str) -> Number:
    """Intervals by their corners: wide rather than narrow."""
    if sign == "/" and right.mean == 0:
        raise ZeroDivisionError("divides by 0")
    ends = [
        _done(sign, a, b)
        for a in (left.low, left.high)
        for b in (right.low, right.high)
        if sign != "/" or b != 0
    ]
    mean = _done(sign, left.mean, right.mean)
    return Number(mean, min([mean, *ends]), max([mean, *ends]), unit)


def _done(sign: str, a: float, b: float) -> float:
    match sign:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
    return a / b


def unit_of(name: str) -> str:
    """The unit in which a metric is compared; raises ValueError for a name that means nothing."""
    unit = metric(name).unit
    return {"1": "", "1/s": "/s"}.get(unit, unit)


def chosen(term: Term, points: Iterable[Coordinates]) -> dict[str, object]:
    """Return the coordinates that a term fixes; raises ValueError for a word that no point has."""
    there = [dict(point) for point in points]
    fixed: dict[str, object] = {}
    for key, word in term.where:
        axes = {axis for point in there for axis in point if key in ("", axis, axis.rsplit(".", 1)[-1])}
        if not axes:
            known = sorted({axis for point in there for axis in point})
            raise ValueError(f"'{key}' is not a key of the points; {choices(key, known)}")
        found = {
            (axis, value)
            for point in there
            for axis, value in point.items()
            if axis in axes and _is(value, word)
        }
        if len({axis for axis, _ in found}) > 1 and ("variant", word) in found:
            found = {("variant", word)}  # a variant's name goes first
        if len({axis for axis, _ in found}) > 1:
            found = {(axis, value) for axis, value in found if axis != TASKS}
        if len(found) != 1:
            raise ValueError(_not_one(word, axes, found, there))
        ((axis, value),) = found
        if axis in fixed:
            raise ValueError(f"{term.metric} has two values of {axis}")
        fixed[axis] = value
    return fixed


def _not_one(
    word: str, axes: set[str], found: set[tuple[str, object]], points: list[dict[str, object]]
) -> str:
    if found:
        keys = " or ".join(f"{axis}={word}" for axis, _ in sorted(found, key=str))
        return f"'{word}' is a value of several keys: write {keys}"
    known = sorted({str(point[axis]) for axis in axes for point in points if axis in point})
    near = nearest(word, known)
    return f"no point has '{word}'; there are {', '.join(known)}" + (
        f" (did you mean '{near}'?)" if near else ""
    )


def _is(value: object, word: str) -> bool:
    if str(value).lower() == word.lower():
        return True
    try:
        return not isinstance(value, (bool, str)) and float(word) == value
    except ValueError:
        return False


def instances(
    found: Expectation, points: Sequence[Coordinates], swept: Iterable[str]
) -> Iterator[tuple[dict[str, object], dict[Term, int]]]:
    """Yield each case that the expectation is about: what its terms leave open, and the point of each term by number.

    What a term does not fix, of the variant and the swept keys, is the same in all terms that do not fix it. Raises
    ValueError as `chosen` does.
    """
    fixed = {term: chosen(term, points) for term in dict.fromkeys(found.terms)}
    axes = [axis for axis in ("variant", *swept) if any(axis not in own for own in fixed.values())]
    seen = set()
    for point in points:
        here = {axis: point[axis] for axis in axes if axis in point}
        at: dict[Term, int] = {}
        for term, own in fixed.items():
            wanted = here | own
            number = next((i for i, p in enumerate(points) if wanted.items() <= dict(p).items()), None)
            if number is not None:
                at[term] = number
        if len(at) == len(fixed) and (case := tuple(at.values())) not in seen:
            seen.add(case)
            yield {axis: here[axis] for axis in here if len({p.get(axis) for p in points}) > 1}, at
