"""How commands end where something goes wrong: one line that says what, and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import typer

from simfs.results.defect import EngineError
from simfs.results.store import DISK_FAILURES
from simfs.scenario.problems import Problem, ScenarioError, printable

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
    from simfs.scenario.sections.section import shorten

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


def unwritable(out: Path, error: OSError) -> Exception:
    """What to raise where `out` cannot be written: a full or broken disk is not the user's mistake."""
    if error.errno in DISK_FAILURES:
        return OSError(error.errno, f"cannot be written: {error.strerror}", str(out))
    return refused(f"{out}: cannot be written: {error.strerror}")


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
