"""What commands share: where notes go, plain errors and exit codes, progress, options.

Commands import what they run with inside their functions, so that help and completion come at once.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from simfs.results.defect import EngineError
from simfs.results.store import DISK_FAILURES
from simfs.scenario.problems import Problem, ScenarioError, printable
from simfs.scenario.settings import keys_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from simfs.results.run import Progress
    from simfs.scenario.schema import Scenario

BROKEN = 1
BAD_INPUT = 2
FAILED = 4
INTERRUPTED = 130

EXIT_CODES = """\
Exit codes: 0 success, 1 a law of the simulation was broken, a check failed or an expectation does not hold,
2 bad input, 3 a deadlock or stall was found, 4 simfs or its environment failed (a bug, a full disk, no engine),
130 interrupted.
"""

TRACEBACK = "SIMFS_TRACEBACK"
"""The environment variable that shows where in simfs something went wrong."""

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""click's or typer's own, by the version of typer."""


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


@contextmanager
def plain_errors(lost: str = "nothing was written") -> Iterator[None]:
    """Turn whatever goes wrong into one line and an exit code; `lost` says what an interrupt costs."""
    try:
        yield
        sys.stdout.flush()
    except (typer.Exit, typer.Abort, _UsageError):
        raise
    except SystemExit as ended:
        # The reader has gone: rich and click end with 1 then, which means something else here.
        if isinstance(ended.__context__, BrokenPipeError):
            _drop_output()
            raise typer.Exit(0) from None
        raise
    except ScenarioError as error:
        complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except BrokenPipeError:  # the reader has gone
        _drop_output()
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        complain(f"interrupted: {lost}")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        _drop_output()
        complain(_failure(error))
        if os.environ.get(TRACEBACK):
            traceback.print_exception(error)
        too_long = isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG
        raise typer.Exit(BAD_INPUT if too_long else FAILED) from None


def _failure(error: Exception) -> str:
    """What to say of a failure that is not the scenario's."""
    from simfs.scenario.section import shorten

    what = str(error) or type(error).__name__
    if isinstance(error, OSError):
        return f"{error.filename or 'standard output'}: {error.strerror or what}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if not isinstance(error, EngineError | ImportError):
        line = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {shorten(what)} (at {Path(line.filename).name}:{line.lineno})"
    if isinstance(error, ImportError):
        return f"the native engine or a package cannot be loaded ({what}); `simfs doctor` tells what to do"
    return f"{what}; this is never your fault: please report it with the scenario"


def _drop_output() -> None:
    _drop(sys.stdout)


def _drop(stream: TextIO) -> None:
    """Forget what could not be printed: Python would complain once more when it flushes at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def refusals_of_runs() -> Iterator[None]:
    """Turn what an experiment refuses into a `ScenarioError`."""
    from pydantic import ValidationError

    try:
        yield
    except (ValidationError, UnicodeError):  # never meant for the user
        raise
    except ValueError as error:
        raise refused(str(error)) from None


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


def loaded(scenario: str, given: list[str]) -> Scenario:
    """The scenario with settings laid over it; tells what of them, and of `points:`, has no effect."""
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
    return found


def refuse_unknown_variants(names: Iterable[str], known: Collection[str]) -> None:
    """Refuse the first of the names given to `--variant` that no variant has."""
    from simfs.scenario.suggest import choices

    for name in names:
        if name not in known:
            raise refused(f"--variant {name}: there is no such variant; {choices(name, known)}")


def known_metrics(names: list[str] | None) -> list[str]:
    """The names given to `--metric`; refuses one that means nothing."""
    from simfs.scenario.metrics import metric

    for name in names or []:
        try:
            metric(name)
        except ValueError as error:
            raise refused(f"--metric: {error}") from None
    return names or []


def refuse_out(out: Path | None) -> None:
    """Refuse an `--out` that could not be written, before anything is run for it."""
    if out is None or not out.exists():
        return
    from simfs.reports.export import refuse_foreign

    try:
        refuse_foreign(out)
    except OSError as error:
        raise refused(f"--out {out}: {error.strerror}") from None


def unwritable(out: Path, error: OSError) -> Exception:
    """What to raise where `out` cannot be written: a full or broken disk is not the user's mistake."""
    if error.errno in DISK_FAILURES:
        return OSError(error.errno, f"cannot be written: {error.strerror}", str(out))
    return refused(f"{out}: cannot be written: {error.strerror}")


def emit(text: str) -> None:
    """Print a document for other programs, in UTF-8 whatever the terminal's encoding is."""
    typer.echo(text.encode(), nl=False)


def refused(message: str) -> ScenarioError:
    """The error of one problem, given as `where: what`."""
    where, colon, rest = message.partition(": ")
    return ScenarioError([Problem(where, rest) if colon else Problem("simfs", message)])


def complain(message: str) -> None:
    """Print lines to standard error as they are, but no orders to the terminal, which a file's name may hold.

    Where standard error takes nothing either, the exit code has to tell.
    """
    try:
        typer.echo(printable(message), err=True)
    except OSError:
        _drop(sys.stderr)
