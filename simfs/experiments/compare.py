"""Two answers side by side: relative standard deviations, change, the interval of the difference, a verdict.

Throughputs of runs with the same seed are compared replication by replication (Law, *Simulation Modeling and
Analysis*, 10.2.1), everything else by Welch's interval (10.2.2). A measured number without repetitions is
taken as exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from simfs.experiments.answer import fit, run_points
from simfs.experiments.conclusion import NO_EFFECT, leaves
from simfs.experiments.unused_groups import why_alike
from simfs.results.aggregate import matches
from simfs.results.model import MeasuredRow, PointResult, ScenarioResult, Value
from simfs.results.run import Progress
from simfs.results.run_result import Strict
from simfs.results.statistics import LEVEL, Estimate, paired_difference, stddev, student_t
from simfs.scenario import Point, Scenario, expand, load, paths, placed_rows
from simfs.scenario.points import variants_of
from simfs.scenario.problems import ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.schema import SECTIONS, MeasuredUse
from simfs.scenario.settings import keys_of
from simfs.scenario.suggest import choices

BETTER = {"fairness": 1, "joules_per_operation": -1, "context_switches_per_operation": -1}
"""Which way is better; the throughput's is up, all else is only higher or lower."""


class Line(Strict):
    """One quantity on both sides."""

    metric: str
    a: Estimate
    b: Estimate
    a_stddev: float | None = Field(description="standard deviation over replications")
    b_stddev: float | None
    change_percent: float | None = Field(description="of b relative to a; None where a is 0")
    difference: Estimate = Field(description="b - a")
    paired: bool
    verdict: str = Field(description="better, worse, higher, lower, or no evidence")


class Pair(Strict):
    """One point of both sides."""

    a: str
    b: str
    values: dict[str, Value]
    lines: tuple[Line, ...]
    alike: str | None = Field(default=None, description="why both do exactly the same, where they do")


class Comparison(Strict):
    """Two answers side by side."""

    a: str
    b: str
    confidence: float
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Side:
    """What one argument of `simfs compare` stands for: a result, or measured rows."""

    label: str
    result: ScenarioResult | None = None
    rows: tuple[MeasuredRow, ...] = ()
    seed: int | None = None
    level: float = LEVEL
    variant: str | None = None
    asked: Scenario | None = None
    made_by: tuple[str, ...] = ()
    """The command that wrote the folder, if it is one."""

    @property
    def points(self) -> list[PointResult]:
        """The points asked about."""
        every = self.result.points if self.result else ()
        return [p for p in every if self.variant in (None, p.variant)]


@dataclass(frozen=True)
class _Runs:
    """How a side is run that is a scenario."""

    quick: bool
    threads: int | None
    progress: Progress | None


def open_sides(
    arguments: Iterable[str],
    settings: Sequence[str] = (),
    *,
    quick: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Side]:
    """Return what each argument stands for: a folder of `simfs run --out`, a data set, or a scenario to be run.

    Each may be followed by `:VARIANT` (of a data set: `:SERIES`). Raises ValueError where one is none of them,
    ScenarioError as `load` does, before the first is run.
    """
    runs = _Runs(quick, threads, progress)
    found = [_find_side(argument, settings, runs) for argument in arguments]
    return [opened() for opened in found]


def open_side(
    argument: str,
    settings: Sequence[str] = (),
    *,
    quick: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Side:
    """Return what one argument stands for, as `open_sides` does."""
    (side,) = open_sides([argument], settings, quick=quick, threads=threads, progress=progress)
    return side


def _find_side(argument: str, settings: Sequence[str], runs: _Runs) -> Callable[[], Side]:
    """What opens a side; all that the argument names is there."""
    name, variant = argument, None
    if ":" in argument and not Path(argument).exists():
        name, variant = argument.rsplit(":", 1)
    if Path(name).is_dir():
        side = _of_folder(Path(name), argument, variant)
        if side.result is not None and variant is not None:
            _refuse_unknown(name, variant, side.result.variants)
    elif _is_dataset(name):
        rows = [MeasuredRow(**vars(row)) for row in placed_rows(MeasuredUse(dataset=name))]
        side = Side(argument, rows=tuple(r for r in rows if variant in (None, r.series, r.variant)))
    else:
        asked = load(name, settings)
        if variant is not None:
            _refuse_unknown(name, variant, variants_of(asked))
        return lambda: _run_side(argument, variant, asked, keys_of(settings), runs)
    if not side.points and not side.rows:
        raise ValueError(f"{argument}: there is nothing to compare")
    return lambda: side


def _is_dataset(name: str) -> bool:
    scenario = paths.find(name, paths.SCENARIOS)
    if scenario is None:
        return paths.find(name, paths.MEASURED) is not None
    return not paths.is_name(name) and scenario.is_file() and Document.read(scenario).is_dataset


def _run_side(argument: str, variant: str | None, asked: Scenario, given: set[str], runs: _Runs) -> Side:
    options: dict[str, Any] = {"threads": runs.threads, "progress": runs.progress}
    asked, fits = fit(asked, given=given, quick=runs.quick, **options)
    points = [point for point in expand(asked) if variant in (None, point.variant)]
    result = run_points(asked, points, tuple(asked.sweep), **options).with_fits(fits)
    return Side(argument, result, (), asked.measure.seed, asked.measure.confidence, variant, asked)


def common_points(a: Side, b: Side) -> list[tuple[PointResult, PointResult]]:
    """The points that both simulated sides have. Raises ValueError where a side is measured, or there are none."""
    for side in (a, b):
        if side.result is None:
            raise ValueError(f"{side.label}: is a data set; here both sides have to be simulated")
    _refuse_other_operations(a, b)
    if not (found := _common(a, b)):
        raise ValueError(f"{a.label}, {b.label}: they have no point in common")
    return found


def difference_of_rates(p: PointResult, q: PointResult, a: Side, b: Side, together: int = 1) -> Estimate:
    """The interval of what `q` does more a second than `p`; paired where the runs have the same random numbers.

    At the confidence of `a` for as many differences `together` (Bonferroni).
    """
    level = 1 - (1 - a.level) / together
    if are_paired(p, q, a, b):
        return paired_difference(q.replication_throughputs, p.replication_throughputs, level)
    return welch(p.throughput, q.throughput, a.level, b.level, level)


def are_paired(p: PointResult, q: PointResult, a: Side, b: Side) -> bool:
    """Whether the replications of both points have the same random numbers."""
    return a.seed == b.seed and len(p.replication_throughputs) == len(q.replication_throughputs) > 1


def compare_sides(a: Side, b: Side) -> Comparison:
    """Compare all points that both sides have. Raises ValueError where there are none."""
    if a.result and b.result:
        _refuse_other_operations(a, b)
        pairs = [_pair(p, q, a, b) for p, q in _common(a, b)]
    elif a.result or b.result:
        pairs = _with_rows(a, b)
    else:
        raise ValueError(f"{a.label}, {b.label}: two data sets; one side has to be a result or a scenario")
    if not pairs:
        raise ValueError(f"{a.label}, {b.label}: they have no point in common")
    return Comparison(a=a.label, b=b.label, confidence=a.level if a.result else b.level, pairs=tuple(pairs))


def _refuse_other_operations(a: Side, b: Side) -> None:
    """Refuse sides whose tasks do different things: a rate, or what one operation takes, would be no comparison."""
    done = [side.result.operation for side in (a, b) if side.result]
    if len(set(done)) > 1:
        raise ValueError(f"{a.label}, {b.label}: operations {done[0]!r} and {done[1]!r} cannot be compared")


def _of_folder(folder: Path, label: str, variant: str | None) -> Side:
    try:
        result = ScenarioResult.model_validate_json((folder / "result.json").read_text("utf-8"))
        about = json.loads((folder / "manifest.json").read_text("utf-8"))
        asked, command = Scenario.model_validate(about["scenario"]["resolved"]), tuple(about["command"])
        seed = int(about["seeds"]["seed"])
        return Side(label, result, (), seed, asked.measure.confidence, variant, asked, command)
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        what = f"is a folder, but is no result of `simfs run --out`: there is no {missing} in it"
        raise ValueError(f"{folder}: {what}") from None
    except OSError as error:
        raise ValueError(f"{folder}: is no result of `simfs run --out`: {error.strerror}") from None
    except (ValidationError, ScenarioError, KeyError, TypeError, AttributeError, ValueError):
        raise ValueError(f"{folder}: result.json or manifest.json is not what this simfs writes") from None


def _refuse_unknown(name: str, variant: str, known: Sequence[str]) -> None:
    if variant not in known:
        raise ValueError(f"{name}: there is no variant '{variant}'; {choices(variant, known)}")


def _common(a: Side, b: Side) -> list[tuple[PointResult, PointResult]]:
    ours, theirs = a.points, b.points
    if len(ours) == len(theirs) == 1:
        return [(ours[0], theirs[0])]
    one_each = len({p.variant for p in ours}) == len({p.variant for p in theirs}) == 1
    return [
        (p, q) for p in ours for q in theirs if p.values == q.values and (one_each or p.variant == q.variant)
    ]


def _pair(p: PointResult, q: PointResult, a: Side, b: Side) -> Pair:
    paired = are_paired(p, q, a, b)
    mine, other = _quantities(p, a), _quantities(q, b)
    lines = []
    for metric, x in mine.items():
        y = other.get(metric)
        if x is None or y is None or x.mean == y.mean == 0:
            continue
        rate = metric.endswith("_per_s")
        difference = difference_of_rates(p, q, a, b) if rate else welch(x, y, a.level, b.level)
        lines.append(_line(metric, x, y, difference, (a.level, b.level), paired=rate and paired))
    return Pair(
        a=p.variant,
        b=q.variant,
        values=dict(p.values),
        lines=tuple(lines),
        alike=(why_the_same([(p, q)], a, b) or NO_EFFECT) if are_the_same(p, q) else None,
    )


def are_the_same(p: PointResult, q: PointResult) -> bool:
    """Whether two points ran alike to the last event."""
    return (p.events, p.replication_throughputs) == (q.events, q.replication_throughputs)


def why_the_same(both: Sequence[tuple[PointResult, PointResult]], a: Side, b: Side) -> str:
    """Why points that are the same are so, where their results tell."""
    found = [_why_the_same(p, q, a, b) for p, q in both]
    return found[0] if len(set(found)) == 1 else ""


def _why_the_same(p: PointResult, q: PointResult, a: Side, b: Side) -> str:
    settings = [
        dict(leaves(point.scenario.model_dump(mode="json", include=set(SECTIONS))))
        for side, found in ((a, p), (b, q))
        if (point := point_of(side, found))
    ]
    return why_alike((p, q), settings) if len(settings) == 2 else ""


def point_of(side: Side, found: PointResult) -> Point | None:
    """What was simulated for a point of the result."""
    points: tuple[Point, ...] = expand(side.asked) if side.asked else ()
    return next((p for p in points if p.variant == found.variant and dict(p.values) == found.values), None)


def _quantities(point: PointResult, side: Side) -> Mapping[str, Estimate | None]:
    operation = side.result.operation if side.result else "operation"
    name = operation.replace(" ", "_").replace("-", "_")
    shares = {f"{s}_percent": getattr(point.shares, s) for s in ("user", "system", "spin", "idle")}
    return {
        f"{name if name.endswith('s') else name + 's'}_per_s": point.throughput,
        "context_switches_per_operation": point.context_switches_per_operation,
        "joules_per_operation": point.joules_per_operation,
        "fairness": point.fairness,
        **shares,
    }


def _with_rows(a: Side, b: Side) -> list[Pair]:
    """Measured rows beside the simulated points they belong to, each row a pair of its own."""
    simulated, measured = (a, b) if a.result else (b, a)
    pairs = []
    for row in measured.rows:
        for p in simulated.points:
            known = any(c.row.dataset == row.dataset and c.row.label == row.label for c in p.measured)
            estimate = p.reported(row.metric, row.operations, row.pause_s)
            if estimate is None or not (known or matches(p, row)):
                continue
            exact = Estimate(mean=row.value, low=row.value, high=row.value, n=1)
            x, y = (estimate, exact) if simulated is a else (exact, estimate)
            difference = _from_exact(estimate, row.value, -1 if simulated is a else 1)
            line = _line(row.metric, x, y, difference, (a.level, b.level), paired=False)
            names = (p.variant, row.series) if simulated is a else (row.series, p.variant)
            pairs.append(Pair(a=names[0], b=names[1], values=dict(p.values), lines=(line,)))
    return pairs


def _from_exact(estimate: Estimate, value: float, sign: int) -> Estimate:
    """The interval of `estimate - value`, or with sign -1 of `value - estimate`."""
    ends = [None if end is None else sign * (end - value) for end in (estimate.low, estimate.high)][::sign]
    return Estimate(mean=sign * (estimate.mean - value), low=ends[0], high=ends[1], n=estimate.n)


def _line(
    metric: str, x: Estimate, y: Estimate, difference: Estimate, levels: tuple[float, float], *, paired: bool
) -> Line:
    return Line(
        metric=metric,
        a=x,
        b=y,
        a_stddev=stddev(x, levels[0]),
        b_stddev=stddev(y, levels[1]),
        change_percent=100 * (y.mean / x.mean - 1) if x.mean else None,
        difference=difference,
        paired=paired,
        verdict=_verdict(metric, difference),
    )


def _verdict(metric: str, difference: Estimate) -> str:
    if difference.low is None or difference.contains(0):
        return "no evidence"
    way = 1 if metric.endswith("_per_s") and not metric.startswith("context") else BETTER.get(metric, 0)
    if way == 0:
        return "higher" if difference.mean > 0 else "lower"
    return "better" if difference.mean * way > 0 else "worse"


def welch(
    a: Estimate, b: Estimate, a_level: float = LEVEL, b_level: float = LEVEL, level: float | None = None
) -> Estimate:
    """Interval of `b - a` for independent estimates with unequal variances (Welch), by default at the level of `a`."""
    sigma_a, sigma_b = stddev(a, a_level), stddev(b, b_level)
    mean, n = b.mean - a.mean, min(a.n, b.n)
    if sigma_a is None or sigma_b is None:
        return Estimate(mean=mean, low=None, high=None, n=n)
    va, vb = sigma_a**2 / a.n, sigma_b**2 / b.n
    if va + vb == 0:
        return Estimate(mean=mean, low=mean, high=mean, n=n)
    freedom = (va + vb) ** 2 / (va**2 / (a.n - 1) + vb**2 / (b.n - 1))
    half = math.sqrt(va + vb) * student_t(a_level if level is None else level, freedom)
    return Estimate(mean=mean, low=mean - half, high=mean + half, n=n)
