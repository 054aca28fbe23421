"""The lessons: data in `questions/`, a file each, in the order in which they are taught."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simfs.scenario.problems import Problem, ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.suggest import nearest

LESSONS = (
    "knee", "polling", "spin-or-sleep", "convoy", "stealing", "preempted", "readers", "numa", "btree", "groups",
    "whatif", "design",
)  # fmt: skip
"""Names of all lessons."""

QUESTIONS = Path(__file__).with_name("questions")
PLACE = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class Lesson:
    """A question whose numbers a seed draws; `<think>` in a text stands for what is drawn for `think`."""

    name: str
    number: int
    title: str
    draw: Mapping[str, tuple[str, ...]]
    """What each number may be."""
    question: str
    because: str
    """Why the answer is what it is, shown with it."""
    x: str
    """What the curve is over."""
    predict: str
    """The variant whose curve is asked for."""
    scenario: str
    """What is simulated: a scenario with one swept key."""

    @property
    def notebook(self) -> str:
        """The name of its notebook in `notebooks/lessons`."""
        return f"{self.number:02}_{self.name.replace('-', '_')}"

    def drawn(self, seed: int) -> dict[str, str]:
        """The numbers of a seed: the same on every computer."""
        stream = random.Random(f"{self.name} {seed}")
        return {key: stream.choice(values) for key, values in self.draw.items()}


def find(name: str) -> Lesson:
    """The lesson of a name or a number; `ScenarioError` with the nearest one where there is none."""
    name = {str(number): each for number, each in enumerate(LESSONS, 1)}.get(name, name)
    if name not in LESSONS:
        what = f"there is no such lesson; there are {', '.join(LESSONS)}"
        raise ScenarioError([Problem(name, what, nearest(name, LESSONS))])
    data: dict[str, Any] = Document.read(QUESTIONS / f"{name}.yaml").data
    draw = {key: tuple(map(str, values)) for key, values in data.pop("draw").items()}
    return Lesson(number=LESSONS.index(name) + 1, draw=draw, **data)


def filled(text: str, drawn: Mapping[str, str]) -> str:
    """The text with what was drawn in its places."""
    return PLACE.sub(lambda place: drawn[place[1]], text)
