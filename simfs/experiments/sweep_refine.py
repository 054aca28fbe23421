"""Adaptive refinement: new points where a curve bends, or where two variants cross, and nowhere else.

The knee is the point farthest above the chord of the curve, both axes scaled to 1 (V. Satopaa et al., *Finding a
"Kneedle" in a haystack*, ICDCS workshops 2011). A crossing lies between neighbours where the sign of the
difference of two variants changes. Both are narrowed by halving the intervals around them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from simfs.experiments.sweep_design import DesignError, Row, Scale, scale_of
from simfs.results.model import PointResult
from simfs.scenario.reading.overlay import plain_value
from simfs.scenario.suggest import choices

FINENESS = 0.01
"""Part of a key's range below which an interval is not halved any more; counts are halved down to 1."""

Curve = Sequence[tuple[float, float]]
"""Throughput over the refined key, rising in it."""


@dataclass(frozen=True)
class Refinement:
    """What to look for along one key, and for how many rounds at most."""

    goal: Literal["knee", "crossover"]
    key: str
    variants: tuple[str, ...]
    scale: Scale
    rounds: int

    def wanted(self, rows: Sequence[Row], points: Sequence[PointResult]) -> dict[str, list[Row]]:
        """The rows to run next, by variant; none when everything looked for is known closely enough."""
        found: dict[str, list[Row]] = {}
        for setting, same in self._settings(rows).items():
            curves = self._curves(same, points)
            for variant, x in self._next(curves):
                row = {**dict(setting), self.key: self.scale.write(x)}
                if row not in found.setdefault(variant, []):
                    found[variant].append(row)
        return {variant: new for variant, new in found.items() if new}

    def places(
        self, rows: Sequence[Row], points: Sequence[PointResult]
    ) -> Iterator[tuple[str, Row, float, float]]:
        """What was found: the variants, the other settings, and the interval that holds the knee or crossing."""
        for setting, same in self._settings(rows).items():
            for who, low, high in self._found(self._curves(same, points)):
                yield who, dict(setting), low, high

    def _found(self, curves: Mapping[str, Curve]) -> Iterator[tuple[str, float, float]]:
        if self.goal == "crossover":
            for low, high in crossings(*(curves[v] for v in self.variants)):
                yield " and ".join(self.variants), low, high
            return
        for variant, curve in curves.items():
            if around := knee(curve):
                yield variant, around[0], around[-1]

    def _next(self, curves: Mapping[str, Curve]) -> Iterator[tuple[str, float]]:
        if self.goal == "crossover":
            gaps = list(crossings(*(curves[v] for v in self.variants)))
            yield from ((v, x) for gap in gaps for x in self._halves([gap], curves) for v in self.variants)
            return
        for variant, curve in curves.items():
            around = knee(curve)
            yield from ((variant, x) for x in self._halves(list(itertools.pairwise(around)), curves))

    def _halves(self, gaps: Sequence[tuple[float, float]], curves: Mapping[str, Curve]) -> Iterator[float]:
        every = [x for curve in curves.values() for x, _ in curve]
        finest = 1 if self.scale.whole else FINENESS * (max(every) - min(every))
        for low, high in gaps:
            if high - low > finest * (1 + 1e-9):
                yield (low + high) // 2 if self.scale.whole else (low + high) / 2

    def _settings(self, rows: Sequence[Row]) -> dict[tuple[tuple[str, object], ...], list[Row]]:
        settings: dict[tuple[tuple[str, object], ...], list[Row]] = {}
        for row in rows:
            rest = tuple((key, value) for key, value in row.items() if key != self.key)
            settings.setdefault(rest, []).append(row)
        return settings

    def _curves(self, rows: Sequence[Row], points: Sequence[PointResult]) -> dict[str, Curve]:
        rest = {key: plain_value(value) for key, value in rows[0].items() if key != self.key}
        curves: dict[str, list[tuple[float, float]]] = {variant: [] for variant in self.variants}
        for p in points:
            if p.variant in curves and all(p.values.get(key) == value for key, value in rest.items()):
                curves[p.variant].append((self.scale.read(p.values[self.key]), p.throughput.mean))
        return {variant: sorted(curve) for variant, curve in curves.items()}


def refinement(
    goal: Literal["knee", "crossover"],
    rows: Sequence[Row],
    variants: Sequence[str],
    between: Sequence[str] = (),
    rounds: int = 8,
) -> Refinement:
    """What to refine in a design: along the tasks if they vary, else the first key with numbers.

    Raises DesignError where nothing can be refined, or it is not clear which two variants should cross.
    """
    keys = sorted(rows[0], key=lambda key: key != "workload.tasks")
    for key in keys:
        values = list(dict.fromkeys(row[key] for row in rows))
        scale = scale_of(values)
        if scale is not None and len(values) >= 3:
            break
    else:
        raise DesignError(
            f"--refine {goal}: needs a key with at least three numbers, for example workload.tasks=1..48"
        )
    for name in between:
        if name not in variants:
            raise DesignError(f"--between {name}: there is no such variant; {choices(name, variants)}")
    chosen = tuple(between) or tuple(variants)
    if goal == "crossover" and len(chosen) != 2:
        raise DesignError(
            f"--refine crossover: say which two variants with --between A,B; there are {', '.join(variants)}"
        )
    return Refinement(goal, key, chosen, scale, rounds)


def knee(curve: Curve) -> list[float]:
    """The knee's place between its neighbours; empty for a curve that never rises above its chord."""
    if len(curve) < 3:
        return []
    (x0, y0), (x1, y1) = curve[0], curve[-1]
    tall = max(y for _, y in curve) - min(y for _, y in curve)
    if tall == 0:
        return []
    above = [(y - y0 - (y1 - y0) * (x - x0) / (x1 - x0)) / tall for x, y in curve]
    at = above.index(max(above))
    if at in (0, len(curve) - 1):
        return []
    return [curve[at - 1][0], curve[at][0], curve[at + 1][0]]


def crossings(one: Curve, other: Curve) -> Iterator[tuple[float, float]]:
    """The intervals between neighbours in which the difference of two curves changes its sign."""
    known = dict(other)
    apart = [(x, y - known[x]) for x, y in one if x in known]
    for (low, before), (high, after) in itertools.pairwise(apart):
        if before * after < 0:
            yield low, high
