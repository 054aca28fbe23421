"""What commands share: options, loading with notes on it, where notes and documents go.

Commands import what they run with inside their functions, so that help and completion come at once.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.errors import refused, unwritable
from simfs.results.store import DISK_FAILURES, write_whole
from simfs.scenario.settings import keys_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pydantic import BaseModel
    from rich.console import Console

    from simfs.results.run import Progress
    from simfs.scenario.schema import Scenario


class Format(StrEnum):
    """How results and rows are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class TextOrJson(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


Rows = Annotated[Format, typer.Option("--format", help="Format of the output.")]
"""The option of commands that print rows."""

Output = Annotated[TextOrJson, typer.Option("--format", help="Format of the output.")]
"""The option of commands that print an answer."""


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
Seed = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Seed of all random streams (measure.seed).")
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1, max=1024, metavar="N", help="Number of runs at the same time; as many as CPUs by default."
    ),
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


MOST_SEED = 2**64 - 1


def patience(what: str) -> AbstractContextManager[None]:
    """Says on standard error that one long thing goes on, which tells nothing itself."""
    from simfs.reports.progress import patience as shown

    return shown(notes(), what)


def overrides(settings: list[str] | None, seed: int | None) -> list[str]:
    """The settings of the command line, `--seed` among them."""
    if seed is not None and seed > MOST_SEED:
        raise refused(f"--seed {seed}: at most {MOST_SEED}")
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
    if _vain_filesystem(found):
        notes().print(f"filesystem has no effect: workload {found.workload.kind} uses none")
    for unused in _unused_locks(found):
        notes().print(unused)
    for key in without_effect(found, sorted(keys_of(given))):
        own = f"variants.{found.variants[0].name}.{key}"
        notes().print(
            f"--set {key} has no effect: each variant or point sets it itself (a variant's is {own})"
        )
    return found.quick(keys_of(given)) if quick else found


def _vain_filesystem(asked: Scenario) -> bool:
    """Whether there is a filesystem, and nothing but locks of a load that uses none."""
    from simfs.scenario.sections.lock_tasks import LockTasks

    changes = bool(asked.groups) or any(
        {"workload", "filesystem"} & each.model_fields_set for each in asked.variants
    )
    return isinstance(asked.workload, LockTasks) and asked.filesystem.kind != "none" and not changes


def _unused_locks(asked: Scenario) -> list[str]:
    """What is said of locks in Python that no point uses."""
    from simfs.scenario import expand
    from simfs.scenario.checks.locks import unused_own_locks

    kinds = [kind for holder in (asked, *asked.variants) for kind in getattr(holder, "locks", {}).values()]
    if not any(".py:" in str(kind) for kind in kinds):
        return []
    return list(unused_own_locks(point.scenario for point in expand(asked)))


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
    """Refuse a folder `--out` that is not a result's or could not be written, before anything is run for it."""
    if out is None:
        return
    from simfs.reports.export import refuse_foreign

    try:
        refuse_foreign(out)
    except OSError as error:
        raise refused(f"--out {out}: {error.strerror}") from None
    refuse_folder(out, f"--out {out}")


def refuse_folder(folder: Path, named: str) -> None:
    """Refuse a folder that could not be made or written, before anything is run for it; `named` by the user so."""
    try:
        around = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    except OSError as error:
        raise refused(f"{named}: {error.strerror}") from None
    if not around.is_dir():
        raise refused(f"{named}: {around} is a file, not a directory")
    _try(around, named)


def refuse_file(out: Path | None, option: str = "--out") -> None:
    """Refuse a file that could not be written, before anything is run for it; missing folders are made for it later."""
    if out is None:
        return
    named = f"{option} {out}".strip()
    try:
        there = out.exists()
    except OSError as error:
        raise refused(f"{named}: {error.strerror}") from None
    if out.is_dir():
        raise refused(f"{named}: is a directory, not a file")
    if not there:
        refuse_folder(out.parent, named)
    elif not os.access(out, os.W_OK):
        raise refused(f"{named}: cannot be written: permission denied")


def _try(folder: Path, option: str) -> None:
    """Refuse a folder that takes no file: neither its mode nor who asks says what a filesystem allows."""
    from tempfile import TemporaryFile

    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        if error.errno in DISK_FAILURES:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        raise refused(f"{option}: nothing may be written to {folder}") from None


def write_file(out: Path, data: bytes) -> None:
    """Write what was asked for; where that fails, what stood there before still does."""
    try:
        if out.exists() and not (out.is_file() and os.access(out.parent, os.W_OK)):
            out.write_bytes(data)  # a device, or a file in a folder that takes no other
        else:
            write_whole(out.resolve(), data)
    except OSError as error:
        raise unwritable(out, error) from None


def emit(text: str) -> None:
    """Print a document for other programs, in UTF-8 whatever the terminal's encoding is."""
    typer.echo(text.encode(), nl=False)


def print_answer(answer: BaseModel, output: TextOrJson, as_text: Callable[[], None]) -> None:
    """Print an answer as one JSON document, or have it printed as text."""
    if output is TextOrJson.JSON:
        print_json(answer)
    else:
        as_text()


def print_json(answer: BaseModel) -> None:
    """Print an answer as one JSON document."""
    emit(f"{as_json(answer)}\n")


def as_json(answer: BaseModel) -> str:
    """An answer as JSON; the same bytes for the same inputs."""
    return answer.model_dump_json(indent=2)


def print_rows(rows: Sequence[Mapping[str, object]], output: Format) -> None:
    """Print rows of equal keys as one JSON list or as CSV."""
    if output is Format.JSON:
        emit(f"{json.dumps(rows, indent=2)}\n")
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    emit(text.getvalue())
