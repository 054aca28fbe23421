"""What is wrong with a scenario, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LONGEST = 2000
"""Characters of a message: the longest lists of known names fit. A name in a damaged file may have a million."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    `where` is `file:line:column`, the text of a `--set` option, or the name of a file.
    """

    where: str
    message: str
    suggestion: str | None = None

    def __str__(self) -> str:
        """Return `where: message (did you mean 'x'?)`, in one line."""
        hint = f" (did you mean '{self.suggestion}'?)" if self.suggestion else ""
        text = printable(f"{self.where}: {self.message}{hint}").replace("\n", r"\n")
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def printable(text: str) -> str:
    """Text without orders to the terminal, which names of files and values may hold; lines stay lines."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


class ScenarioError(Exception):
    """A scenario, profile or dataset that cannot be used; `problems` lists every reason."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keep the problems, each once, in the order given."""
        self.problems: tuple[Problem, ...] = _each_once(problems)
        super().__init__("\n".join(map(str, self.problems)))


def _each_once(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """One problem for each mistake: variants know different words, and so word the same refusal differently."""
    kept: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        mistake = (problem.where, problem.message.partition(";")[0])
        if mistake not in kept or (problem.suggestion and not kept[mistake].suggestion):
            kept[mistake] = problem
    return tuple(kept.values())
