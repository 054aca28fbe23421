"""What the charts of a report draw, as data for `report.js`: lines over each varied key, latency, what-ifs.

Times are nanoseconds. A line's numbers are lists over its x; whiskers are the ends of intervals, None where there
are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from simfs.experiments.conclusion import OUTCOMES
from simfs.experiments.whatif import WhatIf
from simfs.reports.axis import axis_of, levels, varied
from simfs.reports.figures.drawing import WIDE
from simfs.reports.figures.lines import line_name, rates_while_running
from simfs.reports.numbers import plural
from simfs.results.focus import focus
from simfs.results.model import MeasuredRow, PointResult, ScenarioResult, short
from simfs.results.scaling import Ideal
from simfs.results.statistics import Estimate, paired_difference
from simfs.results.summaries import CURVE

MOST_LINES = 60
"""Lines of a chart; a design with more is shown as points of its variants."""
TOGETHER = 6
"""Lines that can be told apart in one panel."""
ALIKE = 0.02
"""Lines that differ by less everywhere are drawn on each other."""

Line = dict[str, Any]
Triple = tuple[float | None, float | None, float | None]

STATES = {"idle": "idle", "spin": "spinning", "system": "in the kernel", "user": "in user mode"}


def throughput(result: ScenarioResult) -> list[dict[str, Any]]:
    """A chart for each varied key that has an axis: rates, what is lost against the best, CPU time."""
    return [chart for key in varied(result) if (chart := _over(result, key))]


def _over(result: ScenarioResult, key: str) -> dict[str, Any] | None:
    values = [point.values.get(key) for point in result.points]
    axis = axis_of(key, values)
    place = {str(value): at for value, at in zip(values, axis.at, strict=True)}
    lines = _lines(result, key, place)
    if not any(len(line["x"]) > 1 for line in lines):
        return None
    measured = _measured(result, key, place)
    rates = [y for line in lines for y in line["numbers"]["rate"][0] if y]
    return {
        "key": key,
        "label": axis.label if short(key) != "tasks" else "tasks",
        "words": list(axis.words),
        "quantities": _quantities(result),
        "lines": lines,
        "measured": measured,
        "log": bool(rates) and max(rates) > WIDE * min(rates),
        "apart": len(lines) > TOGETHER or _coincide(lines),
        "joined": _grid(result) and all(len(set(line["x"])) == len(line["x"]) for line in lines),
    }


def _quantities(result: ScenarioResult) -> list[list[str]]:
    rate = f"{plural(result.operation)} per second"
    shares = [[state, f"CPU time {name} (%)"] for state, name in STATES.items()]
    return [["rate", rate], ["loss", f"{rate}: lost against the best (%)"], *shares]


def _grid(result: ScenarioResult) -> bool:
    """Whether points make lines: nearly all combinations of values were run; points of a drawn design stand alone."""
    combinations = prod(len(levels(result, key)) for key in varied(result)) * len(result.variants)
    return combinations <= 2 * len(result.points)


def _lines(result: ScenarioResult, key: str, place: Mapping[str, float]) -> list[Line]:
    grouped = _grouped(result, lambda point: _name(result, point, key))
    if not _grid(result) or len(grouped) > MOST_LINES:
        grouped = _grouped(result, lambda point: result.title(point.variant))
    best = _best(result, key)
    return [_line(result, name, points, key, place, best) for name, points in grouped.items()]


def _grouped(result: ScenarioResult, name: Callable[[PointResult], str]) -> dict[str, list[PointResult]]:
    grouped: dict[str, list[PointResult]] = {}
    for point in result.points:
        grouped.setdefault(name(point), []).append(point)
    return grouped


def _name(result: ScenarioResult, point: PointResult, key: str) -> str:
    others = [f"{short(k)} {v}" for k, v in point.values.items() if k != key]
    return ", ".join([result.title(point.variant), *others])


def _best(result: ScenarioResult, key: str) -> dict[str, PointResult]:
    """The fastest point at each value of a key, among those that do the same and are alike in all other keys."""
    found: dict[str, PointResult] = {}
    for point in result.points:
        at = _alike(point)
        if at not in found or point.throughput.mean > found[at].throughput.mean:
            found[at] = point
    return found


def _alike(point: PointResult) -> str:
    return repr((sorted(point.values.items()), sorted(operations(point))))


def operations(point: PointResult) -> frozenset[str]:
    """What tasks do at a point: rates of other operations cannot be compared with its own."""
    return frozenset(point.latency) - OUTCOMES


def _line(
    result: ScenarioResult,
    name: str,
    points: Sequence[PointResult],
    key: str,
    place: Mapping[str, float],
    best: Mapping[str, PointResult],
) -> Line:
    points = sorted(points, key=lambda point: place[str(point.values.get(key))])
    losses = [loss(point, best[_alike(point)]) for point in points]
    numbers = {"rate": _columns([ends(point.throughput) for point in points]), "loss": _columns(losses)}
    for state in STATES:
        numbers[state] = _columns([ends(getattr(point.shares, state)) for point in points])
    line = Ideal(result)
    ideal = [line.per_s(point) for point in points] if short(key) == "tasks" else []
    return {
        "name": name,
        "x": [place[str(point.values.get(key))] for point in points],
        "numbers": numbers,
        "ideal": ideal if all(ideal) else [],
    }


def ends(estimate: Estimate) -> Triple:
    """Mean and the ends of the interval."""
    return estimate.mean, estimate.low, estimate.high


def _columns(triples: Sequence[Triple]) -> list[list[float | None]]:
    return [[triple[at] for triple in triples] for at in range(3)]


def loss(point: PointResult, best: PointResult) -> Triple:
    """What a point loses against another, in per cent of that, replication by replication."""
    whole = best.throughput.mean
    if not whole or point is best:
        return (0.0, None, None) if whole else (None, None, None)
    mine, theirs = point.replication_throughputs, best.replication_throughputs
    n = min(len(mine), len(theirs))
    if n < 2:
        return 100 * (1 - point.throughput.mean / whole), None, None
    return ends(paired_difference([100 * x / whole for x in theirs[:n]], [100 * x / whole for x in mine[:n]]))


def _coincide(lines: Sequence[Line]) -> bool:
    """Whether two lines are so near everywhere that one hides the other."""
    rates = [(line["x"], line["numbers"]["rate"][0]) for line in lines]
    return any(
        x == z and len(x) > 1 and all(abs(a - b) <= ALIKE * max(a, b) for a, b in zip(y, w, strict=True))
        for at, (x, y) in enumerate(rates)
        for z, w in rates[at + 1 :]
    )


def _measured(result: ScenarioResult, key: str, place: Mapping[str, float]) -> list[dict[str, Any]]:
    """Measured rates where they were measured, also those that no point answers."""
    found = []
    for point in result.points:
        for c in rates_while_running(point):
            scale = c.simulated.mean / point.throughput.mean if point.throughput.mean else 0.0
            found.append(_mark(c.row, _name(result, point, key), key, place, point, scale or 1.0))
    rates = {c.row.metric for point in result.points for c in rates_while_running(point)}
    for row in result.unmatched:
        if row.metric in rates:
            found.append(_mark(row, result.title(row.variant), key, place, None, 1.0))
    return [mark for mark in found if mark["x"] is not None]


def _mark(
    row: MeasuredRow, line: str, key: str, place: Mapping[str, float], point: PointResult | None, scale: float
) -> dict[str, Any]:
    value = row.values.get(key, point.values.get(key) if point else None)
    known = place.get(str(value))
    own = float(value) if known is None and isinstance(value, int | float) else known
    low, high = (None if end is None else end / scale for end in (row.low, row.high))
    about = f"{'about ' if row.approx else ''}{row.label} ({row.dataset}, {row.role})"
    return {"line": line, "x": own, "y": row.value / scale, "low": low, "high": high, "label": about}


def latency(result: ScenarioResult) -> dict[str, Any] | None:
    """A chart of the points of most interest: which part of operations takes how long; None without histograms."""
    points = [point for point in focus(result) if any(took.curve for took in point.latency.values())]
    names = list(dict.fromkeys(name for point in points for name in point.latency))
    charts = {
        name: [
            {"name": line_name(point, result), "y": [*point.latency[name].curve, point.latency[name].max_ns]}
            for point in points
            if name in point.latency and point.latency[name].curve
        ]
        for name in names
    }
    shown = {name: lines for name, lines in charts.items() if lines}
    return {"percent": [*CURVE, 100.0], "operations": shown} if shown else None


def ladder(answer: WhatIf) -> dict[str, Any] | None:
    """A chart of a causal profile: throughput gained over hold time removed."""
    lines = []
    for slope in answer.profile[:TOGETHER]:
        triples: list[Triple] = [(0.0, None, None), *(ends(gain) for gain in slope.gain_percent)]
        lines.append({"name": slope.lock, "x": [0.0, *slope.removed_percent], "gain": _columns(triples)})
    return {"label": f"{plural(answer.operation)} per second gained (%)", "lines": lines} if lines else None
