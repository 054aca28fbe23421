"""What commands share: options, loading with notes on it, where notes and documents go.

Commands import what they run with inside their functions, so that help and completion come at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.errors import refused
from simfs.scenario.settings import keys_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from simfs.results.run import Progress
    from simfs.scenario.schema import Scenario


class Format(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


def _scenarios(begun: str) -> list[str]:
    from simfs.scenario import paths

    return [name for name in paths.names(paths.SCENARIOS) if name.startswith(begun)]


ScenarioName = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="Name of a shipped scenario, or a file.", autocompletion=_scenarios
    ),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant", metavar="NAME", help="Run only this variant; may be repeated.", show_default=False
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the scenario; may be repeated."),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of all random streams (measure.seed).")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Number of runs at the same time; as many as CPUs by default."),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", metavar="NAME", help="Print this metric as well; may be repeated.", show_default=False
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Run a fifth of the time, in five replications, for a first look.")
]


Wide = Annotated[bool, typer.Option("--wide", help="Print full tables, however wide the terminal is.")]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B", help="Print only these columns, besides the names of the rows.", show_default=False
    ),
]


def names_of(columns: str | None) -> tuple[str, ...]:
    """The names given to `--columns`."""
    return tuple(name.strip() for name in (columns or "").split(",") if name.strip())


@cache
def notes() -> Console:
    """For people: progress, complaints. Standard output is for results."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def progress() -> AbstractContextManager[Progress]:
    """A bar on standard error: runs done, runs known to be needed, what is running, time left."""
    from simfs.reports.progress import bar

    return bar(notes())


def progresses() -> AbstractContextManager[Callable[[], AbstractContextManager[Progress]]]:
    """The same for several things that go on at the same time."""
    from simfs.reports.progress import bars

    return bars(notes())


def overrides(settings: list[str] | None, seed: int | None) -> list[str]:
    """The settings of the command line, `--seed` among them."""
    return [*(settings or []), *([] if seed is None else [f"measure.seed={seed}"])]


def loaded(scenario: str, given: list[str], *, quick: bool = False) -> Scenario:
    """The scenario with settings laid over it, `quick` for a first look.

    Tells what of the settings, and of `points:`, has no effect.
    """
    from simfs.scenario import load, selecting_none, swept_anyway, without_effect

    found = load(scenario, given)
    for key in swept_anyway(found):
        notes().print(f"{key} has no effect: {key.split('.', 2)[2]} is swept")
    if not given:  # a setting may end a sweep, and so what selects from it
        for number in selecting_none(found):
            notes().print(f"points.{number}: selects no point, so it changes nothing")
    for key in without_effect(found, sorted(keys_of(given))):
        own = f"variants.{found.variants[0].name}.{key}"
        notes().print(
            f"--set {key} has no effect: each variant or point sets it itself (a variant's is {own})"
        )
    return found.quick(keys_of(given)) if quick else found


def refuse_unknown_variants(names: Iterable[str], known: Collection[str]) -> None:
    """Refuse the first of the names given to `--variant` that no variant has."""
    from simfs.scenario.suggest import choices

    for name in names:
        if name not in known:
            raise refused(f"--variant {name}: there is no such variant; {choices(name, known)}")


def known_metrics(names: list[str] | None) -> list[str]:
    """The names given to `--metric`; refuses one that means nothing."""
    from simfs.scenario.measured.metrics import metric

    for name in names or []:
        try:
            metric(name)
        except ValueError as error:
            raise refused(f"--metric: {error}") from None
    return names or []


def refuse_out(out: Path | None) -> None:
    """Refuse an `--out` that could not be written, before anything is run for it."""
    if out is None:
        return
    from simfs.reports.export import refuse_foreign

    try:
        refuse_foreign(out)
        around = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    except OSError as error:
        raise refused(f"--out {out}: {error.strerror}") from None
    if not around.is_dir():
        raise refused(f"--out {out}: {around} is a file, not a directory")
    if not os.access(around, os.W_OK | os.X_OK):
        raise refused(f"--out {out}: nothing may be written to {around}")


def emit(text: str) -> None:
    """Print a document for other programs, in UTF-8 whatever the terminal's encoding is."""
    typer.echo(text.encode(), nl=False)
