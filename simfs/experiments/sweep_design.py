"""Which points a sweep runs: factors (`KEY=A,B,C` or `KEY=LOW..HIGH`) and the designs over them.

Random, Latin hypercube and Sobol designs are SciPy's (`scipy.stats.qmc`); the design's seed is the
scenario's, so the same command makes the same points.
"""

from __future__ import annotations

import csv as python_csv
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pyarrow import ArrowInvalid, csv
from scipy.stats import qmc

from simfs.scenario import ScenarioError
from simfs.scenario.reading.document import parse_value
from simfs.scenario.sections.units import (
    duration,
    format_duration,
    format_percentage,
    format_size,
    percentage,
    size,
)

Kind = Literal["grid", "zip", "random", "lhs", "sobol"]
Row = Mapping[str, object]
"""A value for each varied key, written as in a scenario."""


class Listed(dict[str, object]):
    """A row of a table, which knows its line there."""

    def __init__(self, values: Mapping[str, object], line: int) -> None:
        """Lines are counted from 1, that of the heading."""
        super().__init__(values)
        self.line = line

    def told(self, key: str) -> str:
        """A cell of it, as messages name it behind the name of the file."""
        return f":{self.line}: column {key}"


MAX_ROWS = 100_000

LEVELS = 5
"""Values a range takes in a grid unless told otherwise."""

DIGITS = 5
"""Significant digits of a drawn value: finer than any cost is known, and short enough to read."""


class DesignError(ValueError):
    """A factor or a design that cannot be made; the message begins with the option."""


@dataclass(frozen=True)
class Scale:
    """How values of a key are read as numbers (ns, bytes, fractions) and written back."""

    read: Callable[[object], float]
    write: Callable[[float], object]
    whole: bool = False


def _plain(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("not a number")
    return float(value)


SCALES = (
    Scale(_plain, round, whole=True),
    Scale(_plain, lambda x: float(f"{x:.{DIGITS}g}")),
    Scale(duration, lambda x: format_duration(float(f"{x:.{DIGITS}g}"))),
    Scale(lambda value: float(size(value)), lambda x: format_size(round(x)), whole=True),
    Scale(percentage, lambda x: format_percentage(float(f"{x:.{DIGITS}g}"))),
)
"""Counts, numbers, durations, sizes, percentages."""


def scale_of(values: Sequence[object]) -> Scale | None:
    """The scale that all of `values` are on, or None."""
    return next((s for s in SCALES if all(_fits(s, value) for value in values)), None)


def _fits(scale: Scale, value: object) -> bool:
    if scale is SCALES[0] and not isinstance(value, int):
        return False
    try:
        return math.isfinite(scale.read(value))
    except ValueError:
        return False


@dataclass(frozen=True)
class Factor:
    """One varied key: the values of a list, or everything between the two `ends` of a range."""

    key: str
    values: tuple[object, ...] = ()
    ends: tuple[float, float] | None = None
    scale: Scale | None = None
    log: bool = False

    def levels(self, count: int) -> Sequence[object]:
        """The values of the list, or `count` evenly spaced ones of the range with both its ends."""
        if self.ends is None or self.scale is None:
            return self.values
        return tuple(dict.fromkeys(self.scale.write(x) for x in self._spaced(np.linspace(0, 1, count))))

    def at(self, u: float) -> object:
        """The value at `u` in [0, 1): equal shares for the values of a list and the whole numbers of a range."""
        if self.ends is None or self.scale is None:
            return self.values[int(u * len(self.values))]
        if self.scale.whole:
            low, high = self.ends
            return self.scale.write(min(high, math.floor(self._between(low, high + 1, u))))
        return self.scale.write(self._between(*self.ends, u))

    def _spaced(self, shares: NDArray[np.float64]) -> list[float]:
        assert self.ends is not None
        low, high = self.ends
        return [low, *(self._between(low, high, float(u)) for u in shares[1:-1]), high][: len(shares)]

    def _between(self, low: float, high: float, u: float) -> float:
        return low * (high / low) ** u if self.log else low + u * (high - low)


def factor(option: str) -> Factor:
    """Read `KEY=A,B,C`, `KEY=LOW..HIGH` or `KEY=LOW..HIGH:log`; raise DesignError."""
    key, equals, text = (part.strip() for part in option.partition("="))
    where = f"--vary {option}"
    if not equals or not key or not text:
        raise DesignError(
            f"{where}: write it as KEY=A,B,C or KEY=LOW..HIGH, for example workload.tasks=1..48"
        )
    if ".." not in text:
        return Factor(key, tuple(_values(text, where)))
    text, colon, spacing = text.partition(":")
    if colon and spacing.strip() != "log":
        raise DesignError(
            f"{where}: '{spacing.strip()}' is no spacing; write :log, or nothing for even spacing"
        )
    ends = [value for end in text.split("..") for value in _values(end, where)]
    scale = scale_of(ends) if len(ends) == 2 else None
    if scale is None:
        raise DesignError(f"{where}: a range has two ends of one unit, for example 5 ms..30 ms")
    low, high = map(scale.read, ends)
    if low >= high:
        raise DesignError(f"{where}: the low end must be below the high end")
    if colon and low <= 0:
        raise DesignError(f"{where}: logarithmic spacing needs a low end above 0")
    return Factor(key, ends=(low, high), scale=scale, log=bool(colon))


def _values(text: str, where: str) -> list[object]:
    try:
        values, _ = parse_value(f"[{text.strip()}]", where)
    except ScenarioError as error:
        raise DesignError(f"{where}: {error.problems[0].message}") from None
    if not isinstance(values, list) or not values:
        raise DesignError(f"{where}: a value is missing")
    return values


def rows_of(factors: Sequence[Factor], kind: Kind, points: int | None, seed: int) -> tuple[Row, ...]:
    """The rows of a design, each once; `points` is their number, or the levels of each range of a grid.

    Raises DesignError.
    """
    keys = [f.key for f in factors]
    if repeated := next((key for key in keys if keys.count(key) > 1), None):
        raise DesignError(f"--vary {repeated}: is varied twice; give all its values at once")
    size_ = math.prod(len(f.values) or points or LEVELS for f in factors) if kind == "grid" else points or 0
    if size_ > MAX_ROWS:
        raise DesignError(f"--design {kind}: {size_} points; at most {MAX_ROWS} are possible")
    if kind == "grid":
        choices: Iterable[Sequence[object]] = itertools.product(
            *(f.levels(points or LEVELS) for f in factors)
        )
    elif kind == "zip":
        choices = zip(*_zipped(factors, points), strict=True)
    else:
        if points is None:
            raise DesignError(f"--design {kind}: say how many points with --points")
        cube = _unit(kind, len(factors), points, seed)
        choices = ([f.at(u) for f, u in zip(factors, us, strict=True)] for us in cube.tolist())
    return distinct(dict(zip(keys, choice, strict=True)) for choice in choices)


def rows_from(path: Path) -> tuple[Row, ...]:
    """The rows of a CSV file with a column for each key; raise DesignError."""
    try:
        table = csv.read_csv(path)
        names = table.column_names
    except FileNotFoundError:
        raise DesignError(f"--list {path}: no such file") from None
    except UnicodeDecodeError:  # in a heading
        raise DesignError(f"--list {path}: is not UTF-8 text") from None
    except OSError as error:
        raise DesignError(f"--list {path}: cannot be read: {error.strerror or error}") from None
    except ArrowInvalid:
        raise DesignError(_not_a_table(path)) from None
    if table.num_rows == 0:
        raise DesignError(f"--list {path}: has no rows")
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise DesignError(f"--list {path}: has two columns '{repeated}'")
    lines = [line for line, _ in _lines(path)][1:]
    return distinct(
        Listed({key: _cell(value, f"--list {path}:{line}: column {key}") for key, value in row.items()}, line)
        for row, line in zip(table.to_pylist(), lines, strict=False)
    )


def _lines(path: Path) -> Iterator[tuple[int, int]]:
    """Of the heading and each row the line in which it begins, and how many cells it has."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader, begin = python_csv.reader(file), 1
        for cells in reader:
            if cells:
                yield begin, len(cells)
            begin = reader.line_num + 1


def _not_a_table(path: Path) -> str:
    """What is wrong with a file that is no table."""
    (_, wanted), *rows = list(_lines(path)) or [(1, 0)]
    if not wanted:
        return f"--list {path}: is empty; it needs a heading of keys and a row for each point"
    line, cells = next(((line, cells) for line, cells in rows if cells != wanted), (1, wanted))
    have = "1 cell" if cells == 1 else f"{cells} cells"
    return f"--list {path}:{line}: has {have}, where the heading has {wanted}"


def _cell(value: object, where: str) -> object:
    """A value as it is in a scenario: in a column with texts, numbers are read as texts, too."""
    if isinstance(value, bytes):  # what pyarrow makes of cells that are no text
        raise DesignError(f"{where}: is not UTF-8 text")
    if not isinstance(value, str):
        return value
    return next(iter(_values(value, where)))


def distinct(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows without repetitions, in their order."""
    found: dict[tuple[tuple[str, object], ...], Row] = {}
    for row in rows:
        found.setdefault(tuple((key, repr(value)) for key, value in row.items()), row)
    return tuple(found.values())


def _zipped(factors: Sequence[Factor], points: int | None) -> list[Sequence[object]]:
    lists = {f.key: len(f.values) for f in factors if f.ends is None}
    count = points or next(iter(lists.values()), LEVELS)
    for key, length in lists.items():
        if length != count:
            raise DesignError(f"--design zip: {key} has {length} values where {count} are needed")
    levels = [f.levels(count) for f in factors]
    for f, values in zip(factors, levels, strict=True):
        if len(values) != count:
            raise DesignError(
                f"--design zip: the range of {f.key} has only {len(values)} values, not {count}"
            )
    return levels


def _unit(kind: Kind, dimensions: int, points: int, seed: int) -> NDArray[np.float64]:
    """Points of the unit cube."""
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.random((points, dimensions))
    if kind == "lhs":
        sample: NDArray[np.float64] = qmc.LatinHypercube(dimensions, seed=rng).random(points)
        return sample
    with warnings.catch_warnings(action="ignore"):  # that only powers of two are balanced is said in the help
        sobol: NDArray[np.float64] = qmc.Sobol(dimensions, seed=rng).random(points)
    return sobol
