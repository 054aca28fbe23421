"""Read a guest's console: rows as lines RESULT, single costs as lines MICRO."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

_PAIR = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True)
class Result:
    """A window of a row: what was run (words), and what was measured (numbers)."""

    guest: str
    words: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.numbers[name]


@dataclass(frozen=True)
class Console:
    """What a guest printed."""

    guest: str
    info: dict[str, str]
    results: tuple[Result, ...]
    micro: dict[str, float]
    complete: bool
    """Whether it came to its end, and no part of it failed."""
    trace: Path | None = None
    """Where its trace is."""


def read_console(path: Path) -> Console:
    """Return what the log of a guest says."""
    console = parse_console(path.stem, path.read_text(errors="replace").splitlines())
    return replace(console, trace=path.with_suffix(".trace"))


def parse_console(guest: str, lines: Iterable[str]) -> Console:
    """Return what the lines of a console say; lines that are nothing of ours are passed over."""
    info: dict[str, str] = {}
    row: dict[str, str] = {}
    micro: dict[str, float] = {}
    results: list[Result] = []
    ended = failed = False
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        pairs = dict(_PAIR.findall(rest))
        if word == "INFO":
            info = pairs
        elif word == "ROW":
            row = pairs
        elif word == "RESULT":
            results.append(_result(guest, {**row, **pairs}))
        elif word == "MICRO":
            micro |= {name: float(value) for name, value in pairs.items()}
        ended |= word == "END"
        failed |= word == "FAILED" or "Kernel panic" in line
    return Console(guest, info, tuple(results), micro, ended and not failed)


def _result(guest: str, pairs: dict[str, str]) -> Result:
    words: dict[str, str] = {}
    numbers: dict[str, float] = {}
    for name, value in pairs.items():
        try:
            numbers[name] = float(value)
        except ValueError:
            words[name] = value
    return Result(guest, words, numbers)


def table(consoles: Iterable[Console]) -> str:
    """Return the rows of several guests as text."""
    lines = [f"{'guest':36} {'row':34} {'1/s':>10} {'idle %':>7} {'switches':>9} {'late %':>7}"]
    for console in consoles:
        for result in console.results:
            lines.append(_line(console.guest, result))
        lines += [f"{console.guest:36} {name:34} {value:10.1f} ns" for name, value in console.micro.items()]
        if not console.complete:
            lines.append(f"{console.guest:36} did not come to its end")
    return "\n".join(lines)


def _line(guest: str, result: Result) -> str:
    number = result.numbers
    filesystem = result.words.get("filesystem", "")
    parts = [filesystem] if filesystem != "none" else []
    if filesystem == "xfs":
        parts = [f"xfs {number['agcount']:.0f}"]
    parts += [result.words["kind"]]
    parts += [
        f"{name} {number[name]:g}" for name in ("tasks", "tokens", "percent", "groups") if name in number
    ]
    parts += [name for name in ("own", "pin") if number.get(name)]
    cells = [(number.get("rate"), 10, 1), (number.get("idle"), 7, 2), (number.get("switches"), 9, 3)]
    cells.append((number.get("late_percent"), 7, 2))
    shown = " ".join(f"{'' if v is None else f'{v:.{d}f}':>{w}}" for v, w, d in cells)
    return f"{guest:36} {' '.join(parts):34} {shown}"
