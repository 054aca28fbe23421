"""Explore: the curve and the locks of a scenario for every choice of a few keys; runs are made when they are looked at.

The first key is the axis of the curve. A choice of the others is one sweep along it, run once and kept. This is what
sliders of a notebook and of `simfs lab` ask; how they draw it is in `explore.js`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from simfs.experiments.sweep_design import LEVELS, factor
from simfs.reports.numbers import plain, plural, plus_minus
from simfs.reports.web import curves, locks
from simfs.vocabulary import vocabulary

if TYPE_CHECKING:
    from simfs.api import Answer, Question
    from simfs.results.model import PointResult


@dataclass(frozen=True)
class Choices:
    """A key and the values that its slider has."""

    key: str
    values: tuple[object, ...]


def choices_of(question: Question, asked: str) -> Choices:
    """The choices of `KEY` or `KEY=VALUES`; without values those of the scenario's sweep, or all kinds of a lock.

    Raises ValueError for a key whose values nobody says, or one that has only one.
    """
    if "=" in asked:
        found = factor(asked)
        choices = Choices(found.key, tuple(found.levels(LEVELS)))
    elif asked in question.scenario.sweep:
        choices = Choices(asked, tuple(question.scenario.sweep[asked]))
    elif asked.startswith("locks.") or asked == "workload.lock":
        choices = Choices(asked, vocabulary().lock_kinds)
    else:
        raise ValueError(f"{asked}: which values? Say '{asked}=A,B,C' or '{asked}=LOW..HIGH'")
    if len(choices.values) < 2:
        raise ValueError(f"{asked}: a slider needs two values or more")
    return choices


@dataclass
class Explorer:
    """Sliders over runs. Raises ValueError for keys that cannot be explored."""

    question: Question
    keys: Sequence[str]
    quick: bool = True
    choices: tuple[Choices, ...] = field(init=False)
    _kept: dict[tuple[int, ...], Answer] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not self.keys:
            raise ValueError("explore what? Name a key, such as 'workload.tasks'")
        self.choices = tuple(choices_of(self.question, asked) for asked in self.keys)
        if len({each.key for each in self.choices}) < len(self.choices):
            raise ValueError("explore: a key is named twice")

    def factors(self) -> list[dict[str, Any]]:
        """The sliders: key, and values in words."""
        return [{"key": each.key, "values": [str(value) for value in each.values]} for each in self.choices]

    def start(self) -> list[int]:
        """Where the sliders stand first: the axis at its end, the others at their begin."""
        return [len(self.choices[0].values) - 1, *(0 for _ in self.choices[1:])]

    def look(self, at: Sequence[int]) -> dict[str, Any]:
        """What is to be seen where the sliders stand: a sentence a variant, the chart, the locks at that point.

        Raises ValueError for a place that no slider has, and for what the scenario or the engine refuses.
        """
        inside = len(at) == len(self.choices) and all(
            isinstance(n, int) and 0 <= n < len(each.values)
            for n, each in zip(at, self.choices, strict=False)
        )
        if not inside:
            raise ValueError(f"no place of the sliders: {list(at)}")
        found = self._answer(tuple(at[1:]))
        axis = self.choices[0]
        value = axis.values[at[0]]
        here = [point for point in found.result.points if str(point.values.get(axis.key)) == str(value)]
        charts = [chart for chart in curves.throughput(found.result) if chart["key"] == axis.key]
        return {
            "said": [self._said(found, point) for point in here],
            "chart": charts[0] if charts else None,
            "locks": "".join(_locks(found, point) for point in here),
        }

    def _answer(self, others: tuple[int, ...]) -> Answer:
        if others not in self._kept:
            axis, *fixed = self.choices
            vary = {axis.key: list(axis.values)}
            vary |= {each.key: [each.values[n]] for each, n in zip(fixed, others, strict=True)}
            self._kept[others] = self.question.sweep(vary, quick=self.quick, progress=False)
        return self._kept[others]

    def _said(self, answer: Answer, point: PointResult) -> str:
        rate = f"{plain(point.throughput.mean)} {plus_minus(point.throughput)}".strip()
        idle = f"{point.shares.idle.mean:.0f} % of CPU time idle, {point.shares.spin.mean:.0f} % spinning"
        title = answer.result.title(point.variant)
        return f"{title}: {rate} {plural(answer.result.operation)} per second; {idle}"


def _locks(answer: Answer, point: PointResult) -> str:
    views = locks.views(point)
    return (
        f"<h4>{escape(answer.result.title(point.variant))}</h4>{views['Waiters']}"
        if "Waiters" in views
        else ""
    )
