"""What commands share: where notes go, plain errors and exit codes, progress, options."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from simfs.results.defect import EngineError
from simfs.scenario import Problem, ScenarioError

DEFECT = 1
BAD_INPUT = 2
INTERRUPTED = 130

notes = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
"""For people: progress, complaints. Standard output is for results."""


class Format(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="Name of a shipped scenario, or a file.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key; may be repeated.")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of all random streams (measure.seed).")]
Threads = Annotated[
    int | None, typer.Option(min=1, max=1024, help="Runs at the same time; all CPUs by default.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A first look: a fifth of the time, two replications.")]


@contextmanager
def plain_errors(lost: str = "nothing was written") -> Iterator[None]:
    """Turn what the user can cause into one line and an exit code; `lost` says what an interrupt costs."""
    try:
        yield
        sys.stdout.flush()
    except ScenarioError as error:
        complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except EngineError as error:
        complain(f"{error}; this is never your fault: please report it with the scenario")
        raise typer.Exit(DEFECT) from None
    except KeyboardInterrupt:
        complain(f"interrupted: {lost}")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader has gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


@contextmanager
def refusals_of_runs() -> Iterator[None]:
    """Turn what an experiment refuses, and an engine that cannot be loaded, into a `ScenarioError`."""
    try:
        yield
    except ImportError as error:
        raise refused(
            f"the native engine cannot be loaded ({error}); `simfs doctor` tells what to do"
        ) from None
    except ValueError as error:
        raise refused(str(error)) from None


@contextmanager
def progress() -> Iterator[Callable[[int, int, str], None]]:
    """A bar on standard error: runs done, runs known to be needed, what is running, time left."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("running", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)


def overrides(settings: list[str] | None, seed: int | None) -> list[str]:
    """The settings of the command line, `--seed` among them."""
    return [*(settings or []), *([] if seed is None else [f"measure.seed={seed}"])]


def refuse_file(out: Path | None) -> None:
    """Refuse an `--out` that is a file, before anything is run for it."""
    if out is not None and out.exists() and not out.is_dir():
        raise refused(f"--out {out}: is a file, not a directory")


def refused(message: str) -> ScenarioError:
    """The error of one problem, given as `where: what`."""
    where, colon, rest = message.partition(": ")
    return ScenarioError([Problem(where, rest) if colon else Problem("simfs", message)])


def complain(message: str) -> None:
    """Print one line to standard error, as it is."""
    notes.print(message)
