"""A comparison as plain text for commit messages, in the columns of the kernel test robot."""

from __future__ import annotations

from simfs.experiments.compare import Comparison, Line, Pair
from simfs.reports.numbers import plain
from simfs.results.model import short


def to_text(comparison: Comparison) -> str:
    """Return the comparison; each number has its relative standard deviation, `± 4%`, where that is 1 % or more.

    Percentages change by points, all else by per cent. The last column is the verdict with the interval of the
    difference.
    """
    level = f"{100 * comparison.confidence:g}"
    blocks = [f"a: {comparison.a}\nb: {comparison.b}\n"]
    blocks += [_block(pair, level) for pair in comparison.pairs]
    return "\n".join(blocks)


def _block(pair: Pair, level: str) -> str:
    where = ", ".join(f"{short(key)} {value}" for key, value in pair.values.items())
    named = pair.a if pair.a == pair.b else f"{pair.a} -> {pair.b}"
    lines = [
        f"{named}{', ' if where else ''}{where}",
        f"{'a':>16} {'b':>27}",
        f"{'-' * 16} {'-' * 27}",
        f"{'%stddev':>16}     %change         %stddev",
        "             \\          |                \\",
        *(_row(line, level) for line in pair.lines),
        *([f"a and b do exactly the same: {pair.alike}"] if pair.alike else []),
    ]
    return "\n".join(lines) + "\n"


def _row(line: Line, level: str) -> str:
    points = line.metric.endswith("_percent")
    change = line.b.mean - line.a.mean if points else line.change_percent
    shown = "-" if change is None else f"{change:+.1f}" + ("" if points else "%")
    first, second = _number(line.a.mean, line.a_stddev), _number(line.b.mean, line.b_stddev)
    return f"{first} {shown:>11} {second}  {line.metric:<31} {_verdict(line, level)}"


def _number(mean: float, stddev: float | None) -> str:
    relative = 100 * stddev / abs(mean) if stddev and mean else 0.0
    spread = f" ±{relative:3.0f}%" if relative >= 1 else ""
    return f"{_plain(mean):>10}{spread:<6}"


def _plain(value: float) -> str:
    return plain(value).replace(",", "")


def _verdict(line: Line, level: str) -> str:
    d = line.difference
    if d.low is None or d.high is None:
        return line.verdict
    how = ", paired" if line.paired else ""
    return f"{line.verdict} [{_signed(d.low)}, {_signed(d.high)}] {level}%{how}"


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{_plain(abs(value))}"
