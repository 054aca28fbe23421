"""`simfs run`: one scenario, beside measured data where there is any."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simfs.commands.common import (
    Columns,
    Format,
    Metrics,
    Quick,
    Rows,
    ScenarioName,
    Seed,
    Settings,
    Threads,
    Variants,
    Wide,
    emit,
    known_metrics,
    loaded,
    names_of,
    notes,
    overrides,
    progress,
    refuse_out,
    refuse_unknown_variants,
)
from simfs.commands.errors import complain, plain_errors, refusals_of_runs, refused, unwritable
from simfs.commands.report import refuse_page, write_page
from simfs.scenario.settings import keys_of
from simfs.scenario.suggest import choices

if TYPE_CHECKING:
    from simfs.results.model import ScenarioResult
    from simfs.scenario import Scenario


class Engine(StrEnum):
    """Which machine runs the programs."""

    NATIVE = "native"
    SIMPY = "simpy"


Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Write tables, figures and a manifest into this folder.",
        show_default=False,
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write one page for a browser to this file, as `simfs report` does.",
        show_default=False,
    ),
]
Machine = Annotated[
    Engine | None,
    typer.Option(
        help="The machine that runs the programs: native, or the reference machine on SimPy, which is slow. "
        "Native by default, unless the scenario has locks of its own.",
        show_default=False,
    ),
]
Why = Annotated[
    bool, typer.Option("--why", help="Record why tasks wait, for --out and --format json; see `simfs why`.")
]
Details = Annotated[
    bool, typer.Option("--details", help="Print all tables of each variant, not only how variants compare.")
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="After each run, compare the filesystem's structures with the files that exist, "
        "as btrfs check and xfs_repair -n would.",
    ),
]
Tool = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="TOOL",
        help="Print what this tool would print: perf-lock, perf-lock-x, lock_stat, klockstat, fio, fs_mark, dbench, "
        "will-it-scale, fxmark, lkp.",
    ),
]


def run(
    scenario: ScenarioName,
    out: Out = None,
    variants: Variants = None,
    report: Page = None,
    settings: Settings = None,
    engine: Machine = None,
    output: Rows = Format.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
    metrics: Metrics = None,
    wide: Wide = False,
    columns: Columns = None,
    details: Details = False,
    why: Why = False,
    check: Check = False,
    as_tool: Tool = None,
) -> None:
    """Run a scenario and print its predicted throughput, beside measured data if there is any."""
    with plain_errors():
        _refuse_outputs(out, report)
        _refuse_printing(output, as_tool, columns)
        given = overrides(settings, seed)
        options = {"threads": threads or os.cpu_count() or 1, "quick": quick, "variants": variants or ()}
        options |= {"metrics": known_metrics(metrics), "why": why or report is not None}
        asked = loaded(scenario, given)
        from simfs.scenario.points import variants_of

        refuse_unknown_variants(variants or (), variants_of(asked))
        _refuse_columns(asked, names_of(columns), variants or ())
        if as_tool is not None:
            _refuse_tool(asked, as_tool, variants)
        chosen = _machine_for(asked, engine, check=check)
        asked, result = _answer(asked, given, chosen, options, check=check)
        try:
            # Before anything is printed: who reads that may go away.
            _write(result, asked, chosen, out, report)
        finally:  # a full disk does not cost what was run
            if as_tool is not None:
                _print_as(result, as_tool, variants[0] if variants else None)
            else:
                _print(result, output, wide=wide, columns=names_of(columns), details=details)
        _complain_of(result)
    raise typer.Exit(result.exit_code)


def _refuse_outputs(out: Path | None, page: Path | None) -> None:
    """Refuse what could not be written, before anything is run for it."""
    refuse_out(out)
    if page is not None:
        refuse_page(page, "--report")


def _refuse_printing(output: Format, as_tool: str | None, columns: str | None) -> None:
    """Refuse options of which one would be without effect."""
    if columns is not None and not names_of(columns):
        raise refused("--columns: names no column; write, for example, --columns 'tasks,idle %'")
    if output is Format.TEXT:
        return
    if as_tool is not None:
        raise refused(f"--as {as_tool}: prints what the tool would; it goes without --format {output}")
    if columns is not None:
        raise refused(f"--columns: is for tables; --format {output} has all columns")


def _write(
    result: ScenarioResult, asked: Scenario, engine: Engine, out: Path | None, page: Path | None
) -> None:
    if out is not None:
        _write_files(result, out, asked, engine)
    if page is not None:
        _report(result, page, asked, engine)


def _complain_of(result: ScenarioResult) -> None:
    from simfs.reports.text import missed
    from simfs.results.model import once_a_point

    for finding, more in once_a_point(result.findings):
        complain(finding.sentence + more)
    for sentence in missed(result):
        complain(sentence)


def _report(result: ScenarioResult, out: Path, asked: Scenario, engine: Engine) -> None:
    from simfs.experiments.briefing import Briefing, recorded, versions_of
    from simfs.results.manifest import software

    command = shlex.join(["simfs", *sys.argv[1:]])
    with refusals_of_runs():
        briefing = Briefing(result, asked, command, versions_of(software(engine.value)), why=recorded(result))
        write_page(briefing, out, [])


def _machine_for(asked: Scenario, wanted: Engine | None, *, check: bool) -> Engine:
    """The machine that was asked for; only the native one can `check`."""
    chosen = _machine_of_locks(asked, wanted)
    if check and chosen is Engine.SIMPY:
        raise refused("--check: only the native machine looks at structures")
    return chosen


def _machine_of_locks(asked: Scenario, wanted: Engine | None) -> Engine:
    """Locks of the user's own run on the reference machine alone."""
    from simfs.scenario import expand

    own = {name for point in expand(asked) for name in point.scenario.used_own_locks}
    if own and wanted is Engine.NATIVE:
        raise refused(f"--engine native: {', '.join(sorted(own))} is written in Python: use --engine simpy")
    if own and wanted is None:
        notes().print(
            f"{', '.join(sorted(own))} is written in Python: all runs are on the reference machine (simpy)"
        )
        return Engine.SIMPY
    return wanted or Engine.NATIVE


def _answer(
    asked: Scenario, given: list[str], engine: Engine, options: dict[str, Any], *, check: bool
) -> tuple[Scenario, ScenarioResult]:
    from simfs.experiments.answer import answer
    from simfs.results.run import native_engine, reference_engine

    with progress() as report, refusals_of_runs():
        run_one = reference_engine() if engine is Engine.SIMPY else native_engine(check=check)
        return answer(asked, given=keys_of(given), progress=report, engine=run_one, **options)


def _print(
    result: ScenarioResult, output: Format, *, wide: bool, columns: tuple[str, ...], details: bool
) -> None:
    if output is Format.TEXT:
        from simfs.reports.columns import columns_of
        from simfs.reports.layout import report_console
        from simfs.reports.text import print_report

        print_report(result, report_console(wide=wide, columns=columns), details=details or bool(columns))
        if columns and (empty := [name for name in columns if name not in columns_of(result)]):
            notes().print(f"--columns: in this result nothing stands in {', '.join(empty)}")
        return
    from simfs.reports.export import to_csv, to_json

    emit(to_json(result) if output is Format.JSON else to_csv(result))


def _refuse_columns(asked: Scenario, columns: tuple[str, ...], variants: Sequence[str]) -> None:
    """Refuse a column that no table can have, before anything is run for it."""
    if not columns:
        return
    from simfs.reports.columns import columns_to_come
    from simfs.scenario import expand

    points = [point for point in expand(asked) if not variants or point.variant in variants]
    known = columns_to_come(tuple(asked.sweep), points)
    for name in columns:
        if name not in known:
            raise refused(f"--columns {name}: there is no such column; {choices(name, known)}")


def _refuse_tool(asked: Scenario, name: str, variants: list[str] | None) -> None:
    """Refuse a tool that could not print what is asked, before anything is run for it."""
    from simfs.interchange import refuse

    with _refusals_of(name):
        refuse(asked, name, variants[0] if variants else None)


def _print_as(result: ScenarioResult, name: str, variant: str | None) -> None:
    from simfs.interchange import write

    with _refusals_of(name):
        emit(write(result, name, variant))


@contextmanager
def _refusals_of(tool: str) -> Iterator[None]:
    from simfs.interchange.reading import UnreadableError

    try:
        yield
    except UnreadableError as error:
        raise refused(f"--as {tool}: {error}") from None


def _write_files(result: ScenarioResult, out: Path, asked: Scenario, engine: Engine) -> None:
    from simfs.reports.export import write

    try:
        write(
            result,
            out,
            scenario=asked.text,
            seed=asked.measure.seed,
            command=sys.argv[1:],
            resolved=asked.model_dump(mode="json", exclude_unset=True),
            engine=engine.value,
        )
    except OSError as error:
        raise unwritable(out, error) from None
    notes().print(f"written to {out}")
