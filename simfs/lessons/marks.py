"""Scores of guessed curves.

A guess that is right has 100 points, one that is off by a factor of two or more none; between them the logarithm
counts, so that half as much is as far off as twice as much. The score is the mean over all that was asked; what is not
guessed has no points.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.suggest import nearest

RULE = "100 points where the guess is right, 0 where it is off by a factor of two or more, by the logarithm between"
SUFFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([kMG]?)")


@dataclass(frozen=True)
class Mark:
    """One point of a guessed curve."""

    at: str
    guess: float | None
    score: float


@dataclass(frozen=True)
class Marks:
    """A guessed curve; the score is from 0 to 100."""

    points: tuple[Mark, ...]

    @property
    def score(self) -> float:
        """The mean of the points' scores."""
        return sum(mark.score for mark in self.points) / len(self.points)

    def _repr_markdown_(self) -> str:
        rows = [
            f"| {m.at} | {'-' if m.guess is None else f'{m.guess:,.0f}'} | {m.score:.0f} |"
            for m in self.points
        ]
        return "\n".join(
            [
                "| at | your guess | points |",
                "| --- | --- | --- |",
                *rows,
                "",
                f"**Score: {self.score:.0f} of 100.**",
            ]
        )


def score(guess: float, true: float) -> float:
    """Points from 0 to 100 of one guess; both are positive."""
    return 100 * max(0.0, 1 - abs(math.log2(guess / true)))


def check(guess: Mapping[str, object], places: Iterable[str]) -> None:
    """Raise `ScenarioError` for a place that was not asked for, or a guess that is not positive."""
    known = list(places)
    for at, value in guess.items():
        if at not in known:
            raise _refused(at, f"was not asked for; there are {', '.join(known)}", nearest(at, known))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refused(at, f"a guess is a number, not {value!r}")
        if not (math.isfinite(value) and value > 0):
            raise _refused(at, f"a guess must be more than 0, not {value:g}")


def marked(guess: Mapping[str, float], curve: Mapping[str, float]) -> Marks:
    """Score a guess by the curve; `ScenarioError` as `check`."""
    check(guess, curve)
    return Marks(
        tuple(
            Mark(at, guess.get(at), score(guess[at], true) if at in guess else 0.0)
            for at, true in curve.items()
        )
    )


def parse(text: str) -> dict[str, float]:
    """Read `1:10k,8:60k`; `ScenarioError` for what is not a guess."""
    guess: dict[str, float] = {}
    for part in text.split(","):
        at, colon, value = part.rpartition(":")
        at, found = at.strip(), NUMBER.fullmatch(value.strip())
        if not (colon and at and found):
            raise _refused(
                part.strip() or "''", "is not a guess such as 8:60k (k, M and G are thousands, millions, ...)"
            )
        if at in guess:
            raise _refused(at, "is guessed twice")
        guess[at] = float(found[1]) * SUFFIXES[found[2]]
    return guess


def _refused(where: str, what: str, suggestion: str | None = None) -> ScenarioError:
    return ScenarioError([Problem(f"guess {where}", what, suggestion)])
