"""Lessons on locks: a question with numbers drawn from a seed, a score for a guess, and the answer by simulation.

>>> from simfs.lessons import lesson
>>> asked = lesson("knee", seed=1)
>>> asked.mark({1: 9_000, 4: 30_000})

`simfs lesson` is the same on the command line, `notebooks/lessons` has a notebook for each.
"""

from simfs.lessons.asked import Asked
from simfs.lessons.catalogue import LESSONS, Lesson, find
from simfs.lessons.fits import fitted
from simfs.lessons.marks import Mark, Marks


def lesson(name: str, seed: int = 1) -> Asked:
    """The lesson of this name with numbers drawn from `seed`; `ScenarioError` where there is none."""
    return Asked(find(name), seed)


__all__ = ["LESSONS", "Asked", "Lesson", "Mark", "Marks", "fitted", "lesson"]
