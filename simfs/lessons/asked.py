"""A lesson with its numbers drawn: the question, the answer by simulation, the score of a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from simfs.lessons.catalogue import Lesson, filled
from simfs.lessons.marks import Marks, check, marked
from simfs.reports.numbers import plural
from simfs.scenario.reading.document import Document
from simfs.scenario.schema import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simfs.api import Answer, Question
    from simfs.results.model import ScenarioResult
    from simfs.results.statistics import Estimate


@dataclass(frozen=True)
class Asked:
    """A lesson and a seed."""

    lesson: Lesson
    seed: int

    @cached_property
    def drawn(self) -> dict[str, str]:
        """What the seed drew."""
        return self.lesson.drawn(self.seed)

    @property
    def text(self) -> str:
        """What is asked."""
        return filled(self.lesson.question, self.drawn)

    @property
    def because(self) -> str:
        """Why the answer is what it is."""
        return filled(self.lesson.because, self.drawn)

    @cached_property
    def scenario(self) -> Scenario:
        """What is simulated for the answer."""
        return self.changed().scenario

    def changed(self, *settings: str) -> Question:
        """What is simulated, with `KEY=VALUE` settings laid over it, to run, sweep or draw it."""
        from simfs.api import Question
        from simfs.scenario import paths
        from simfs.scenario.reading.loader import made

        # Named as if it were shipped with the scenarios, so that it may name their files.
        name = str(paths.SCENARIOS / f"{self.lesson.name}.yaml")
        text = filled(self.lesson.scenario, self.drawn)
        return Question(made(Document.parse(text, name), settings), settings)

    @property
    def places(self) -> list[str]:
        """Where the curve is asked for."""
        (values,) = self.scenario.sweep.values()
        return [written(value) for value in values]

    @cached_property
    def answer(self) -> Answer:
        """The run; one time."""
        return self.changed().run(progress=False)

    @property
    def result(self) -> ScenarioResult:
        """What came out of the run."""
        return self.answer.result

    @property
    def operations(self) -> str:
        """What the curve counts, per second."""
        return plural(self.result.operation)

    @cached_property
    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """Operations per second by variant and place."""
        return {
            variant: dict(zip(self.places, (p.throughput for p in self.result.of(variant)), strict=True))
            for variant in self.result.variants
        }

    @property
    def curve(self) -> dict[str, float]:
        """What was asked for: operations per second by place."""
        return {at: found.mean for at, found in self.estimates[self.lesson.predict].items()}

    def mark(self, guess: Mapping[int, float] | Mapping[str, float]) -> Marks:
        """Score a guess, operations per second by place; `ScenarioError` for a place that was not asked for."""
        return marked(self._checked(guess), self.curve)

    def figure(self, guess: Mapping[int, float] | Mapping[str, float] | None = None) -> Figure:
        """All curves, with the guess if there is one."""
        from simfs.reports.figures.lesson import Line, lines

        values = self._checked(guess or {})
        titles = {variant: self.result.title(variant) for variant in self.result.variants}
        found = [
            Line(titles[name], {at: e.mean for at, e in curve.items()})
            for name, curve in self.estimates.items()
        ]
        if values:
            found.append(Line("your guess", values, "guess"))
        return lines(found, self.lesson.x, f"{self.operations} per second")

    def _checked(self, guess: Mapping[int, float] | Mapping[str, float]) -> dict[str, float]:
        """A guess by the places as they are written; refused before anything is run."""
        if not isinstance(guess, Mapping):
            raise TypeError(f"a guess has a value for each place, such as {{1: 10_000}}, not {guess!r}")
        values = {written(at): value for at, value in guess.items()}
        check(values, self.places)
        return values

    def _repr_markdown_(self) -> str:
        return f"**{self.lesson.title}** (seed {self.seed})\n\n{self.text}\n\nAt: {', '.join(self.places)}."


def written(place: object) -> str:
    """A place of the curve without spaces, as guesses name it."""
    return str(place).replace(" ", "")
