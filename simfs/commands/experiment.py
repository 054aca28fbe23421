"""What the commands that experiment share: their options, and how an answer is written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simfs.commands.common import as_json, notes, progress
from simfs.commands.errors import refusals_of_runs, unwritable
from simfs.scenario.settings import keys_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pydantic import BaseModel

    from simfs.scenario import Point, Scenario
    from simfs.scenario.schema import Measure


Variant = Annotated[
    str | None, typer.Option(metavar="NAME", help="The variant to use; needed if there are several.")
]


QuickDecided = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="Run a fifth of the time. What is undecided is still repeated; fix measure.replications against that.",
    ),
]


def most_runs(measure: Measure, settings: Iterable[str]) -> int | None:
    """How often what is undecided is run at most; None where `settings` say how often everything is run."""
    by_hand = {"measure", "measure.replications"} & keys_of(settings)
    return None if by_hand else measure.max_replications


@dataclass(frozen=True)
class Question:
    """The point that an experiment asks about, of its fitted scenario."""

    asked: Scenario
    point: Point
    options: dict[str, Any]
    """What every experiment takes: `threads` and `progress`."""

    @property
    def titles(self) -> dict[str, Any]:
        """What answers are headed with: the scenario, and what one operation of the point is called."""
        from simfs.experiments.answer import operation_of

        return {"scenario": self.asked.name, "operation": operation_of([self.point])}


@contextmanager
def question(
    asked: Scenario, given: Iterable[str], variant: str | None, *, quick: bool, threads: int | None
) -> Iterator[Question]:
    """Fit what `asked` declares, except what is `given`, and ask about a point of it, with a bar of progress."""
    from simfs.experiments.answer import fit
    from simfs.experiments.points import the_point

    with progress() as report, refusals_of_runs():
        the_point(asked, variant)  # a variant that is not there is refused before anything is fitted
        asked, _ = fit(asked, given=keys_of(given), quick=quick, threads=threads, progress=report)
        yield Question(asked, the_point(asked, variant), {"threads": threads, "progress": report})


def write_answer(
    out: Path,
    name: str,
    answer: BaseModel,
    *,
    figures: Mapping[str, Figure] | None = None,
    texts: Mapping[str, str] | None = None,
) -> None:
    """Write `NAME.json`, figures and other files with a manifest into a directory of its own."""
    write_texts(out, name, {f"{name}.json": f"{as_json(answer)}\n", **(texts or {})}, figures)


def write_texts(
    out: Path, name: str, texts: Mapping[str, str], figures: Mapping[str, Figure] | None = None
) -> None:
    """Write the files of experiment `name` by their names, and its figures, as `write_answer` does."""
    from rich.progress import track

    from simfs.reports.export import write_files
    from simfs.reports.figures.drawing import pictures
    from simfs.results.manifest import software

    files = {file: text.encode() for file, text in texts.items()}
    drawn = track(
        (figures or {}).items(), "drawing", console=notes(), transient=True, disable=not notes().is_terminal
    )
    for file, figure in drawn:
        files |= pictures(file, figure)
    about = {"simfs": 1, "experiment": name, "command": sys.argv[1:], **software()}
    try:
        write_files(out, about, files)
    except OSError as error:
        raise unwritable(out, error) from None
    notes().print(f"written to {out}")
