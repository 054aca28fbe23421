"""What a change is worth, as a block to quote in a cover letter: 72 columns, nothing said beyond the intervals."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from simfs.experiments.bottleneck import bottleneck
from simfs.experiments.compare import (
    Side,
    are_paired,
    common_points,
    difference_of_rates,
    point_of,
    why_the_same,
)
from simfs.experiments.conclusion import NO_EFFECT, leaves
from simfs.experiments.decide import EQUAL, verdict
from simfs.reports.accuracy import directions
from simfs.reports.explain import words
from simfs.reports.numbers import TOGETHER, counted, folded, plain, plural
from simfs.reports.text import sentences
from simfs.results.model import PointResult, ScenarioResult, short
from simfs.results.statistics import Estimate
from simfs.results.store import engine_version
from simfs.scenario import Point, to_run_spec

WIDTH = 72
"""Of a line in a commit message or a mail."""

SHOWN = 6
"""Points and differences that a sentence names."""

RULES = 12
"""Rules and locks of another release that are named."""

RELEASE = "kernel.profile"
OF_RELEASE = ("kernel.rules.", "locks.")
"""What differs with the release, and would be a list of a hundred rules."""

SAID = {"better": "b is faster", "worse": "b is slower", "equal": f"a and b are equal within {EQUAL:g} %"}
"""Verdicts on a change of the throughput, in the order in which they are told."""


@dataclass(frozen=True)
class Row:
    """A point of both sides, and what `b` does more, in per cent of `a`."""

    at: str
    a: PointResult
    b: PointResult
    change: Estimate | None


def to_letter(a: Side, b: Side, command: Sequence[str]) -> str:
    """Return the block: answer, table, bottlenecks, what was simulated, how sure it is, how to have it again.

    `command` is the command line that asks for it. Raises ValueError where a side is measured, or the sides have no
    point in common or do different operations.
    """
    both = common_points(a, b)  # of the same operations
    rows = [_row(p, q, difference_of_rates(p, q, a, b, len(both))) for p, q in both]
    wrong = [finding.sentence for side in (a, b) for finding in _shown(side).findings]
    parts = [
        [f"Not fit to be quoted: {sentence}" for sentence in wrong[:SHOWN]],
        [f"Predicted by simulation, not measured: {_gains(rows, a, b)}"] if not wrong else [],
        [f"  {name}: {_title(side)}" for name, side in (("a", a), ("b", b))],
        list(_table(rows, a)),
        list(_bottlenecks(rows)),
        list(_simulated(rows, a, b)),
        list(_trust(rows, a, b)),
        list(_repeat(a, b, command)),
    ]
    return "\n\n".join("\n".join(map(_fit, part)) for part in parts if part) + "\n"


def _fit(line: str) -> str:
    """A sentence in lines of the block's width; what is indented stays as it is."""
    if line.startswith(" "):
        return line
    return folded(line.replace(" %", f"{TOGETHER}%"), WIDTH).replace(TOGETHER, " ")


# ── The answer ──


def _row(p: PointResult, q: PointResult, more: Estimate) -> Row:
    at = ", ".join(f"{short(key)} {value}" for key, value in p.values.items()) or counted(p.tasks, "task")
    return Row(at if len(p.values) != 1 else str(*p.values.values()), p, q, _scaled(more, p.throughput.mean))


def _scaled(found: Estimate, base: float) -> Estimate | None:
    """A difference in per cent of `base`."""
    if not base:
        return None
    low, high = (None if end is None else 100 * end / base for end in (found.low, found.high))
    return Estimate(mean=100 * found.mean / base, low=low, high=high, n=found.n)


def _table(rows: Sequence[Row], a: Side) -> Iterator[str]:
    keys = list(rows[0].a.values)
    rate = f"a, {plural(a.result.operation)}/s" if a.result else "a"
    cells = [
        (short(keys[0]) if len(keys) == 1 else "at", rate, "b", "change", f"{100 * a.level:g} % interval")
    ]
    cells += [
        (row.at, _rate(row.a), _rate(row.b), _percent(row.change), _interval(row.change)) for row in rows
    ]
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(["", *(cell.rjust(width) for cell, width in zip(row, wide, strict=True))])


def _rate(point: PointResult) -> str:
    return plain(point.throughput.mean)


def _percent(change: Estimate | None) -> str:
    return "-" if change is None else f"{change.mean:+.1f} %"


def _interval(change: Estimate | None) -> str:
    if change is None or change.low is None or change.high is None:
        return "none"
    return f"[{change.low:+.1f}, {change.high:+.1f}]"


def _gains(rows: Sequence[Row], a: Side, b: Side) -> str:
    """Where `b` is faster or slower and by how much, and where that cannot be told."""
    if all(row.a.events == row.b.events and row.change and row.change.mean == 0 for row in rows):
        reason = why_the_same([(row.a, row.b) for row in rows], a, b) or NO_EFFECT
        return f"a and b do exactly the same: {reason}."
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(verdict(row.change).split()[0], []).append(row)
    said = [
        f"{SAID[name]}{_where(found[name], rows)}{_by(found[name], name)}" for name in SAID if name in found
    ]
    if unsure := found.get("undecided"):
        said.append(f"the runs cannot tell a from b{_where(unsure, rows)}")
    return "; ".join(said) + "."


def _where(some: Sequence[Row], rows: Sequence[Row]) -> str:
    if len(some) == len(rows) > 1:
        return " at every point"
    first, last = rows.index(some[0]), rows.index(some[-1])
    if len(some) > 2 and last - first == len(some) - 1:
        return f" at {_key(rows)}{some[0].at} to {some[-1].at}"
    more = f" and {counted(len(some) - SHOWN, 'more point')}" if len(some) > SHOWN else ""
    return f" at {_key(rows)}{', '.join(row.at for row in some[:SHOWN])}{more}"


def _key(rows: Sequence[Row]) -> str:
    keys = list(rows[0].a.values)
    return f"{short(keys[0])} " if len(keys) == 1 else ""


def _by(some: Sequence[Row], name: str) -> str:
    if name == "equal":
        return ""
    changes = sorted(abs(row.change.mean) for row in some if row.change)
    ends = dict.fromkeys(f"{change:.1f}" for change in (changes[0], changes[-1]))
    return f", by {' to '.join(ends)} %"


# ── The next bottleneck ──


def _focus(rows: Sequence[Row]) -> int:
    """The row that is looked at closely: with as many tasks as CPUs if there is one, else with the most tasks."""
    full = [i for i, row in enumerate(rows) if row.b.tasks == row.b.cpus]
    return max(full or range(len(rows)), key=lambda i: rows[i].b.tasks)


def _bottlenecks(rows: Sequence[Row]) -> Iterator[str]:
    row = rows[_focus(rows)]
    yield f"With {counted(row.b.tasks, 'task')} on {row.b.cpus} CPUs:"
    for name, point, curve in (("a", row.a, [r.a for r in rows]), ("b", row.b, [r.b for r in rows])):
        waits = bottleneck(point, curve) or "tasks wait for locks less than 1 % of their time"
        shares = point.shares
        yield f"{name}: {waits}; CPUs idle {shares.idle.mean:.0f} % and spin {shares.spin.mean:.0f} % of the time."


# ── What was simulated, and how sure that is ──


def _simulated(rows: Sequence[Row], a: Side, b: Side) -> Iterator[str]:
    row = rows[_focus(rows)]
    mine, other = point_of(a, row.a), point_of(b, row.b)
    if a.asked is None or b.asked is None or mine is None or other is None:
        return
    told, theirs = words(a.asked, mine), words(b.asked, other)
    for name in ("machine", "kernel", "filesystem", "device", "load", "measured"):
        if name in told and told[name] == theirs.get(name):
            yield f"{'runs' if name == 'measured' else name}: {told[name]}"
    yield from _differences(mine, other)


def _differences(a: Point, b: Point) -> Iterator[str]:
    """The settings in which two points differ."""
    mine, other = (dict(leaves(_settings(point))) for point in (a, b))
    keys = [key for key in dict.fromkeys((*mine, *other)) if mine.get(key) != other.get(key)]
    own = [key for key in keys if RELEASE not in keys or not key.startswith(OF_RELEASE)]
    for key in own[:SHOWN]:
        here, there = (side.get(key, "not set").strip("'") for side in (mine, other))
        yield f"b differs: {key} is {there} (a: {here})"
    if len(own) > SHOWN:
        yield f"and in {counted(len(own) - SHOWN, 'more setting')}"
    if ruled := [key.removeprefix("kernel.rules.") for key in keys if key not in own]:
        named = f": {', '.join(ruled)}" if len(ruled) <= RULES else ""
        yield f"and in {len(ruled)} rules and locks of these kernels{named}"


def _settings(point: Point) -> dict[str, Any]:
    """What the scenario of a point sets, with all rules and locks of its kernel."""
    left_out = {
        "name",
        "title",
        "question",
        "measure",
        "measured",
        "calibrate",
        "expect",
        "variants",
        "sweep",
    }
    found: dict[str, Any] = point.scenario.model_dump(mode="json", exclude=left_out)
    kernel = to_run_spec(point, 0)["kernel"]
    return found | {"kernel": found["kernel"] | {"rules": kernel["rules"]}, "locks": kernel["locks"]}


def _trust(rows: Sequence[Row], a: Side, b: Side) -> Iterator[str]:
    paired = all(are_paired(row.a, row.b, a, b) for row in rows)
    how = (
        "replication by replication, with the same random numbers"
        if paired
        else "as of independent runs (Welch)"
    )
    together = " hold at all points together and" if len(rows) > 1 else ""
    yield f"Intervals{together} are made {how}. They do not tell how far the model is from the machine."
    yield directions()
    notes = [line for side in (a, b) for line in sentences(_shown(side))]
    yield from (f"{line[0].upper()}{line[1:]}." for line in dict.fromkeys(notes))


def _shown(side: Side) -> ScenarioResult:
    """The result of a side without the points that are not asked about."""
    if side.result is None:
        raise ValueError(f"{side.label}: is not simulated")
    ids = {point.id for point in side.points}
    findings = tuple(finding for finding in side.result.findings if finding.point in ids)
    return side.result.model_copy(update={"points": tuple(side.points), "findings": findings})


def _repeat(a: Side, b: Side, command: Sequence[str]) -> Iterator[str]:
    yield f"{engine_version()}; to repeat:"
    made = [side.made_by for side in (a, b) if side.made_by]
    for words_ in dict.fromkeys((*made, tuple(command))):
        yield f"  {shlex.join(['simfs', *words_])}"


def _title(side: Side) -> str:
    names = {point.variant for point in side.points}
    titles = {side.result.title(name) for name in names} if side.result else set()
    return f"{side.label}, {titles.pop()}" if len(names) == 1 and not titles & names else side.label
