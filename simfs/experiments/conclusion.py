"""The answer of a run in a sentence or two, made from its numbers and no surer than its intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simfs.experiments.bottleneck import bottleneck
from simfs.experiments.unused_groups import why_alike
from simfs.results.focus import focus
from simfs.results.model import PointResult, ScenarioResult
from simfs.results.statistics import Estimate, paired_difference
from simfs.results.tournament import is_tournament
from simfs.scenario import Point

RECOVERED = 0.5
"""Part of a loss that has to come back before a variant is named for it."""

GROUPS = 3
"""Operations whose losses are told, the largest first."""

ALIKE = 0.5
"""Per cent that a variant has to lose for that to be told."""

SEEMS = 5
"""Per cent that a variant seems to lose from which on that is told although the runs are too few to be sure."""

BACK = 2
"""Per cent of the best that may be lost still where a loss is said to be back."""


AMOUNT = re.compile(r"workload\.(hold|think|readers|outstanding|user_cpu|size|params\.user_ns)\b")
"""How much work an operation is: variants that differ in it do something else. So do those on other machines."""

NO_EFFECT = "what they differ in has no effect here"

OUTCOMES = {"restart"}
"""Names among the operations of a point that are outcomes of one of them."""


@dataclass(frozen=True)
class Side:
    """A variant's point of interest."""

    name: str
    point: PointResult
    settings: Mapping[str, Any]
    curve: Sequence[PointResult]
    """All points of the variant."""

    @property
    def why(self) -> str:
        """What keeps its tasks from being faster."""
        return bottleneck(self.point, self.curve)


def conclusion(result: ScenarioResult, points: Sequence[Point] = ()) -> str:
    """What the variants of a result are worth against each other, why, and what helps; empty where nobody can say.

    `points` are those that were run: they tell by how many settings variants differ.
    """
    settings = {point.variant: dict(leaves(point.scenario.model_dump(mode="json"))) for point in points}
    if is_tournament(result):  # its table is the answer
        return ""
    stalled = {finding.point for finding in result.findings if finding.kind == "stall"}
    broken = {finding.point for finding in result.findings if finding.kind == "law"}
    faulty = {point.variant for point in result.points if point.id in broken}
    sides = [
        Side(_quoted(result.title(p.variant)), p, settings.get(p.variant, {}), result.of(p.variant))
        for p in focus(result)
    ]
    counts = [side for side in sides if side.point.variant not in faulty]
    sound = [side for side in counts if side.point.operations and side.point.id not in stalled]
    groups = _comparable(sound)
    groups = [group for group in groups if len(group) > 1] or groups[:1]
    found = [said for group in groups if (said := _of_group(group))]
    found.sort(key=lambda said: -said[0])
    lines = [line for _, line in found[:GROUPS]]
    if sides and all("no round" in side.point.marks for side in sides):
        lines.append("no whole operation ended in the window: set a longer measure.duration")
    if stopped := [side.name for side in sides if side.point.id in stalled]:
        lines.append(f"{', '.join(stopped)} comes to a halt")
    if wrong := [result.title(variant) for variant in result.variants if variant in faulty]:
        lines.insert(0, f"{', '.join(wrong)} breaks a law of the simulation, so its numbers mean nothing")
    return ". ".join(f"At{line[2:]}" if line.startswith("at ") else line for line in lines) + (
        "." if lines else ""
    )


def leaves(data: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    """The values of nested mappings by dotted key, as they are written."""
    for key, value in data.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", repr(value)


def _comparable(sides: Iterable[Side]) -> list[list[Side]]:
    """Variants that do the same operations with as many tasks on the same machine."""
    groups: dict[tuple[object, ...], list[Side]] = {}
    for side in sides:
        fixed = (
            (key, value)
            for key, value in side.settings.items()
            if AMOUNT.match(key) or key == "machine.profile"
        )
        point = side.point
        same = (frozenset(point.latency) - OUTCOMES, point.tasks, point.cpus, point.setting, frozenset(fixed))
        groups.setdefault(same, []).append(side)
    return list(groups.values())


def _of_group(sides: Sequence[Side]) -> tuple[float, str] | None:
    """The loss of the worst in per cent, and what to say."""
    best = max(sides, key=lambda side: side.point.throughput.mean)
    if len(sides) == 1:
        return (0.0, f"{best.name}: {why}") if (why := best.why) else None
    losses = {side.name: loss for side in sides if side is not best and (loss := _loss(side, best))}
    certain = [
        side
        for side in sides
        if (loss := losses.get(side.name)) and (loss.low or 0) > 0 and loss.mean >= ALIKE
    ]
    at = f"at {best.point.tasks} task{'' if best.point.tasks == 1 else 's'}"
    if not certain:
        return 0.0, f"{at} {_no_difference(sides, best, losses)}"
    worst = max(certain, key=lambda side: losses[side.name].mean)
    loss = losses[worst.name]
    said = f"{worst.name} loses {loss.mean:.0f} % (± {loss.half_width:.1f}) against {best.name} {at}"
    said += _idles(worst.point)
    parts = [
        said,
        worst.why,
        _what_helps(worst, best, sides, losses),
        _the_same(worst, sides),
    ]
    if larger := [side for side in sides if side.name in losses and losses[side.name].mean > loss.mean]:
        parts.append(_perhaps(larger, losses))
    return loss.mean, "; ".join(part for part in parts if part)


def _quoted(title: str) -> str:
    """A title in a sentence: with marks where its own commas or its first word would be read as the sentence's."""
    return f"'{title}'" if re.search(r"[,;:]|^(as|than)\b", title) else title


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _idles(point: PointResult) -> str:
    """How much the CPUs idle, where tasks could use all of them."""
    idle = point.shares.idle.mean
    return f" and idles {idle:.0f} %" if idle >= 1 and point.tasks >= point.cpus else ""


def _the_same(worst: Side, sides: Sequence[Side]) -> str:
    """Variants that run as the worst does to the last event: what they change is never used."""
    runs = [(side.point.events, side.point.replication_throughputs) for side in (worst, *sides)]
    alike = [side for side, run in zip(sides, runs[1:], strict=True) if run == runs[0] and side is not worst]
    if not alike:
        return ""
    names, reason = [side.name for side in alike], _why_alike([worst, *alike])
    said = f"{_listed(names)} {'does' if len(names) == 1 else 'do'} exactly the same as {worst.name}"
    return f"{said}: {reason}" if reason else said


def _why_alike(sides: Sequence[Side]) -> str:
    return why_alike((side.point for side in sides), [side.settings for side in sides])


def _no_difference(sides: Sequence[Side], best: Side, losses: Mapping[str, Estimate]) -> str:
    """How alike the variants are, and what keeps them from being faster."""
    runs = {(side.point.events, side.point.replication_throughputs) for side in sides}
    if len(runs) == 1:
        said = f"all variants do exactly the same: {_why_alike(sides) or NO_EFFECT}"
    elif not losses or all(loss.low is None for loss in losses.values()):
        return _by_one_replication(sides, best)
    elif max(loss.mean for loss in losses.values()) >= SEEMS:
        said = f"{_perhaps([side for side in sides if side.name in losses], losses)}: measure longer"
    else:
        most = max(loss.high or 0 for loss in losses.values())
        said = f"there is no difference that the runs can tell: no variant loses more than {most:.1f} %"
    return f"{said}; with {best.name}, {best.why}" if best.why else said


def _by_one_replication(sides: Sequence[Side], best: Side) -> str:
    """How far the worst is behind, which may be chance."""
    worst = min(sides, key=lambda side: side.point.throughput.mean)
    lost = 100 * (1 - worst.point.throughput.mean / best.point.throughput.mean)
    if lost < 1:
        return "one replication shows no difference of 1 % or more"
    said = f"{worst.name} does {lost:.0f} % less than {best.name}"
    return f"{said}, but one replication cannot tell whether that is chance"


def _perhaps(sides: Sequence[Side], losses: Mapping[str, Estimate]) -> str:
    """Losses that would be larger, if they are any."""
    worst = max(sides, key=lambda side: losses[side.name].mean)
    loss, groups = losses[worst.name], worst.point.groups
    bistable = f" (bistable: {groups})" if groups else ""
    return f"{worst.name} loses {loss.mean:.0f} % (± {loss.half_width:.0f}), which {loss.n} runs cannot tell{bistable}"


def _loss(side: Side, best: Side) -> Estimate | None:
    """What a variant loses against the best, in per cent of it, replication by replication."""
    mine, theirs = side.point.replication_throughputs, best.point.replication_throughputs
    n = min(len(mine), len(theirs))
    if not n:
        return None
    scale = 100 / best.point.throughput.mean
    return paired_difference([scale * x for x in theirs[:n]], [scale * x for x in mine[:n]])


def _what_helps(worst: Side, best: Side, sides: Sequence[Side], losses: Mapping[str, Estimate]) -> str:
    """The variants on the same filesystem that bring the worst's loss back, the nearest first; else most of it."""
    lost = losses[worst.name].mean
    found = []
    for side in sides:
        gained = _loss(worst, side)
        alike = all(
            side.settings.get(key) == worst.settings.get(key)
            for key in ("filesystem.kind", "machine.profile")
        )
        if side not in (worst, best) and alike and gained and (gained.low or 0) > 0:
            left = losses[side.name].mean
            if left <= (1 - RECOVERED) * lost:
                found.append((_changed(side, worst), left, side))
    if not found:
        return ""
    found.sort(key=lambda one: one[:2])
    if whole := [side.name for _, left, side in found if left <= BACK]:
        return f"{_listed(whole[:GROUPS])} {'brings' if len(whole) == 1 else 'bring'} it back"
    _, left, side = found[0]
    return f"{side.name} brings {100 * (1 - left / lost):.0f} % of it back"


def _changed(side: Side, other: Side) -> int:
    keys = side.settings.keys() | other.settings.keys()
    return sum(side.settings.get(key) != other.settings.get(key) for key in keys)
