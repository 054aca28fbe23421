"""What was read from the output of a real tool: rates with what they belong to, and waits for locks by call chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One number that a benchmark printed, in the unit of its metric (`simfs.scenario.measured.metrics`)."""

    series: str
    metric: str
    value: float
    tasks: int | None = None
    """Processes or threads; None where the tool does not say it."""
    low: float | None = None
    high: float | None = None
    role: str = ""
    """What the row is for (`simfs.scenario.measured.dataset.Role`), where the file says it."""
    approx: bool = False


@dataclass(frozen=True)
class Waits:
    """Waits for a lock as one line of a tool gives them; times in nanoseconds, None where it does not say them."""

    where: tuple[str, ...]
    """Functions, the innermost first; or the name of a lock class of lockdep, alone."""
    count: int = 0
    kind: str = ""
    """`rwsem:W`, `mutex`, ...: the word of perf."""
    total_ns: float | None = None
    max_ns: float | None = None
    acquired: int | None = None
    held_ns: float | None = None

    @property
    def place(self) -> str:
        """The line as a person would name it."""
        return " ".join(filter(None, (self.kind, " < ".join(self.where))))


@dataclass(frozen=True)
class Reading:
    """What a file has: every line of it was used (`matched`), or is counted in `skipped`."""

    format: str
    matched: int
    skipped: int
    figures: tuple[Figure, ...] = ()
    waits: tuple[Waits, ...] = ()
    seconds: float | None = None
    """How long was measured, where the file says it."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Anything else worth a line: version of the tool, keys of a scenario."""
    section: str = ""
    """A part of a scenario in YAML, where the file says no rates and waits but what was run, or on what."""


def flow(values: Mapping[str, str]) -> str:
    """A mapping in YAML, in one line."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"


class UnreadableError(ValueError):
    """A text that cannot be used, or not without more being said; the message says why."""


@dataclass(frozen=True)
class BadCell:
    """A place in a table, line and column from 1 on, and what is wrong there."""

    line: int
    column: int
    message: str
    suggestion: str | None = None


class BadCellsError(UnreadableError):
    """A table with cells that cannot be read."""

    def __init__(self, cells: Sequence[BadCell]) -> None:
        """Keep them in the order of the table."""
        self.cells = tuple(cells)
        super().__init__("; ".join(f"line {each.line}: {each.message}" for each in self.cells))


class Lines:
    """The lines of a text, each taken or skipped; blank ones and those of dashes count for nothing."""

    def __init__(self, text: str) -> None:
        self._lines = [line for line in text.splitlines() if line.strip(" \t-.=#|")]
        self.matched = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def take(self, count: int = 1) -> None:
        """Count lines as used."""
        self.matched += count

    @property
    def skipped(self) -> int:
        """Lines that nobody took."""
        return max(0, len(self._lines) - self.matched)


LARGEST = 1e15

SCALE = {
    "ns": 1.0,
    "us": 1e3,
    "usec": 1e3,
    "msec": 1e6,
    "ms": 1e6,
    "s": 1e9,
    "sec": 1e9,
    "m": 60e9,
    "min": 60e9,
    "h": 3600e9,
}
"""Nanoseconds in units of time as the tools spell them."""


def number(text: str) -> float | None:
    """A number, or None: tools print `nan`, `-` and `inf` where they have none, and no real one has 16 digits."""
    try:
        value = float(text.strip().rstrip("%"))
    except ValueError:
        return None
    return value if abs(value) < LARGEST else None


def count(text: str) -> int | None:
    """A number of things, not negative and not absurd, or None."""
    value = number(text)
    return int(value) if value is not None and value >= 0 and value == int(value) else None


def duration(text: str, unit: str) -> float | None:
    """Nanoseconds of a number and its unit, or None."""
    value, scale = number(text), SCALE.get(unit)
    return None if value is None or scale is None or not 0 <= value < LARGEST / scale else value * scale


def symbol(text: str) -> str:
    """A function without its offset, module and address: `xfs_buf_lock+0x3f/0x80 [xfs]` -> `xfs_buf_lock`."""
    words = text.split()
    bare = [w for w in words if not w.startswith(("[<", "0x", "(["))]
    return (bare[0] if bare else text.strip()).partition("+")[0]


def total(values: Iterable[float | None]) -> float | None:
    """Their sum; None if nobody knows any."""
    known = [v for v in values if v is not None]
    return sum(known) if known else None
