"""The command line: `simfs run`, `list`, `schema`, `doctor`.

Exit codes: 0 well, 1 a law of the simulation is broken or the installation is incomplete, 2 bad input,
3 a run stalled, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from simfs import __version__
from simfs.scenario import Problem, Scenario, ScenarioError, expand, load, paths, placed_rows
from simfs.scenario.document import Document
from simfs.scenario.models import available

if TYPE_CHECKING:
    from simfs.results.model import ScenarioResult

BAD_INPUT = 2
INTERRUPTED = 130

app = typer.Typer(
    name="simfs",
    help="Predict how much filesystem throughput is lost to lock contention, and where.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
notes = Console(stderr=True, highlight=False, soft_wrap=True)


class Format(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class Engine(StrEnum):
    """Which machine runs the programs."""

    NATIVE = "native"


OPERATIONS = {
    "compile": "compile",
    "create": "create",
    "create_unlink": "create-unlink",
    "tmpfile": "temporary file",
    "lock_cycle": "lock cycle",
}


def main() -> None:
    """Start the command line."""
    app(prog_name="simfs")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what the user can cause into one line and an exit code."""
    try:
        yield
        sys.stdout.flush()
    except ScenarioError as error:
        _complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        _complain("interrupted: nothing was written")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader has gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simfs {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: simfs run compile-24 --set workload.tasks=24 --out results/compile-24")
def run(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="Name of a shipped scenario, or a file.")
    ],
    out: Annotated[Path | None, typer.Option(help="Write tables, figures and a manifest here.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key; may be repeated.")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="The machine that runs the programs.")] = Engine.NATIVE,
    output: Annotated[Format, typer.Option("--format", help="What is printed.")] = Format.TEXT,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of all random streams (measure.seed).")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Runs at the same time; all CPUs by default.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: a fifth of the time, two replications.")
    ] = False,
) -> None:
    """Run a scenario and print its predicted throughput, beside measured data where there is any."""
    overrides = [*(settings or []), *([] if seed is None else [f"measure.seed={seed}"])]
    with plain_errors():
        _refuse_file(out)
        asked = load(scenario, overrides)
        if quick:
            asked = asked.model_copy(update={"measure": asked.measure.quick()})
        given = {setting.split("=", 1)[0].strip() for setting in overrides}
        asked, result = _answer(asked, given, threads or os.cpu_count() or 1)
        _print(result, output)
        if out is not None:
            _write(result, out, asked, scenario)
        for finding in result.findings:
            _complain(f"{finding.point} #{finding.replication}: {finding.message}")
    raise typer.Exit(result.exit_code)


@app.command("list", epilog="Example: simfs list")
def list_() -> None:
    """List the scenarios and models that come with simfs."""
    with plain_errors():
        _print_titles("Scenarios", paths.SCENARIOS, paths.names(paths.SCENARIOS))
        for kind in ("machines", "kernels", "filesystems"):
            _print_titles(kind.capitalize(), paths.MODELS / kind, available(kind))


@app.command(epilog="Example: simfs schema > scenario.schema.json")
def schema() -> None:
    """Print the JSON Schema of the scenario language, for editors and for reference."""
    from simfs.scenario.json_schema import json_schema

    with plain_errors():
        typer.echo(json.dumps(json_schema(), indent=2))


@app.command(epilog="Example: simfs doctor")
def doctor() -> None:
    """Check this installation, and say what to do where something is missing."""
    from simfs.doctor import examine

    healthy = True
    with plain_errors():
        for finding in examine():
            mark = "ok" if finding.ok else "missing" if finding.required else "absent"
            typer.echo(f"{mark:8} {finding.name}: {finding.seen}")
            if not finding.ok and finding.advice:
                typer.echo(f"{'':8} -> {finding.advice}")
            healthy &= finding.ok or not finding.required
    raise typer.Exit(0 if healthy else 1)


def _answer(asked: Scenario, given: set[str], threads: int) -> tuple[Scenario, ScenarioResult]:
    """Fit what the scenario declares, except what was `given` on the command line, and run it."""
    from simfs.results.fitted import fitted
    from simfs.results.model import MeasuredRow
    from simfs.results.run import run_scenario

    rows = [MeasuredRow(**vars(row)) for row in placed_rows(asked.measured)]
    open_ = tuple(wanted for wanted in asked.calibrate if wanted.parameter not in given)
    asked = asked.model_copy(update={"calibrate": open_})
    with _progress() as report:
        try:
            asked, fits = fitted(asked, rows, threads=threads, progress=report)
            points = expand(asked)
            kinds = {point.scenario.workload.kind for point in points}
            result = run_scenario(
                points,
                asked.measure,
                threads=threads,
                progress=report,
                measured=rows,
                name=asked.name,
                operation=OPERATIONS.get(kinds.pop(), "operation") if len(kinds) == 1 else "operation",
                sweep=tuple(asked.sweep),
                titles={variant.name: variant.title for variant in asked.variants if variant.title},
            )
            return asked, result.with_fits(fits)
        except ImportError as error:
            raise _refused(
                f"the native engine cannot be loaded ({error}); `simfs doctor` tells what to do"
            ) from None
        except ValueError as error:
            raise _refused(str(error)) from None


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task("running", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)


def _print(result: ScenarioResult, output: Format) -> None:
    if output is Format.TEXT:
        from simfs.reports.text import print_report

        print_report(result)
        return
    from simfs.reports.export import to_csv, to_json

    typer.echo(to_json(result) if output is Format.JSON else to_csv(result), nl=False)


def _write(result: ScenarioResult, out: Path, asked: Scenario, name: str) -> None:
    from simfs.reports.export import write

    source = paths.find(name, paths.SCENARIOS)
    text = source.read_text("utf-8") if source else ""
    try:
        write(
            result,
            out,
            scenario=text,
            seed=asked.measure.seed,
            command=sys.argv[1:],
            resolved=asked.model_dump(mode="json", exclude_unset=True),
        )
    except OSError as error:
        raise _refused(f"{out}: cannot be written: {error.strerror}") from None
    notes.print(f"written to {out}")


def _refuse_file(out: Path | None) -> None:
    if out is not None and out.exists() and not out.is_dir():
        raise _refused(f"--out {out}: is a file, not a directory")


def _print_titles(heading: str, folder: Path, names: list[str]) -> None:
    table = Table(heading, "", box=None, pad_edge=False, show_header=True, title=None)
    for name in names:
        title = Document.read(folder / f"{name}.yaml").data.get("title", "")
        table.add_row(f"  {name}", str(title))
    Console(highlight=False, soft_wrap=False).print(table)


def _refused(message: str) -> ScenarioError:
    where, colon, rest = message.partition(": ")
    return ScenarioError([Problem(where, rest) if colon else Problem("simfs", message)])


def _complain(message: str) -> None:
    notes.print(message, markup=False)
