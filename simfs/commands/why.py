"""`simfs why`: why tasks wait, chain by chain, from the waiter to whoever does not give its lock back."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.common import (
    Quick,
    ScenarioName,
    Seed,
    Settings,
    Threads,
    Wide,
    emit,
    loaded,
    notes,
    overrides,
    patience,
)
from simfs.commands.errors import complain, plain_errors, refusals_of_runs, refused

if TYPE_CHECKING:
    from simfs.results.chains import Why
    from simfs.results.model import Finding
    from simfs.scenario import Point, Scenario


class WhyFormat(StrEnum):
    """How chains are printed."""

    TEXT = "text"
    FOLDED = "folded"
    JSON = "json"
    CSV = "csv"
    DOT = "dot"


Variant = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The variant to use; needed if there are several."),
]
Owners = Annotated[
    bool,
    typer.Option("--owners", "-o", help="Show the owners that make others wait, instead of the waiters."),
]
At = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Show which task waits for which at this time, for example '120 ms'."),
]
OfTask = Annotated[
    int | None,
    typer.Option(metavar="N", help="With --at: show only the chain of this task; of 'kthread 3' N is -3."),
]
Output = Annotated[
    WhyFormat,
    typer.Option(
        "--format", help="Format of the output; 'folded' is for flame graphs, 'dot', with --at, for Graphviz."
    ),
]


def why(
    scenario: ScenarioName,
    settings: Settings = None,
    variant: Variant = None,
    owners: Owners = False,
    at: At = None,
    task: OfTask = None,
    output: Output = WhyFormat.TEXT,
    quick: Quick = False,
    seed: Seed = None,
    threads: Threads = None,
    wide: Wide = False,
) -> None:
    """Say why tasks wait: the lock, what its holder does, what the holder waits for, and so on to the reason.

    If the scenario has several points, the one with as many tasks as CPUs is used, else the one with the most tasks.
    """
    with plain_errors():
        _refuse(at, task, output)
        asked, point = _point(scenario, overrides(settings, seed), variant, quick=quick)
        if at is not None:
            _print_graph(point, at, task, output)
            return
        with refusals_of_runs():
            found, wrong = _found(asked, point, threads or os.cpu_count() or 1)
        _print(found, output, owners=owners, wide=wide)
        for finding in wrong:
            complain(finding.sentence)
    raise typer.Exit(_code(wrong))


def _refuse(at: str | None, task: int | None, output: WhyFormat) -> None:
    if at is None and task is not None:
        raise refused("--task: is for a moment; give one with --at, for example --at '120 ms'")
    if at is None and output is WhyFormat.DOT:
        raise refused("--format dot: is for a moment; give one with --at, or take --format folded")
    if at is not None and output in (WhyFormat.FOLDED, WhyFormat.CSV):
        raise refused(f"--format {output.value}: is not for a moment; with --at there are text, json and dot")


def _point(name: str, given: list[str], variant: str | None, *, quick: bool) -> tuple[Scenario, Point]:
    from simfs.experiments.points import the_point

    asked = loaded(name, given, quick=quick)
    with refusals_of_runs():
        return asked, the_point(asked, variant)


def _found(asked: Scenario, point: Point, threads: int) -> tuple[Why, list[Finding]]:
    from simfs.experiments.why import why as ask
    from simfs.results.run import native_engine, reference_engine

    notes().print(f"{point.id}: running")
    engine = reference_engine() if point.scenario.used_own_locks else native_engine()
    with patience(f"{point.id}: running"):
        return ask(point, asked.measure, threads=threads, engine=engine)


def _print(found: Why, output: WhyFormat, *, owners: bool, wide: bool) -> None:
    from simfs.reports.layout import report_console
    from simfs.reports.why import print_why, to_csv, to_json
    from simfs.results.chains import folded

    match output:
        case WhyFormat.FOLDED:
            emit(folded(found.waits))
        case WhyFormat.JSON:
            emit(to_json(found))
        case WhyFormat.CSV:
            emit(to_csv(found, owners=owners))
        case _:
            print_why(found, owners=owners, console=report_console(wide=wide))


def _code(wrong: list[Finding]) -> int:
    from simfs.results.model import FINDING_EXIT_CODES

    return max((FINDING_EXIT_CODES[finding.kind] for finding in wrong), default=0)


def _print_graph(point: Point, at: str, task: int | None, output: WhyFormat) -> None:
    from simfs.commands.trace import duration_of, refuse_late
    from simfs.experiments.waits_at import NoTaskError, waits_at
    from simfs.reports.numbers import duration
    from simfs.reports.wait_graph import dot, text, to_json

    moment = round(duration_of(at, "--at") * 1000)
    refuse_late([point], at, "--at")
    simulating = f"{point.id}: simulating {duration(moment / 1000)}, from the beginning to that moment"
    notes().print(simulating)
    with refusals_of_runs(), patience(simulating):
        graph = waits_at(point, moment)
    try:
        graph = graph if task is None else graph.chain_of(task)
    except NoTaskError as error:
        raise refused(f"--task {task}: {error}") from None
    emit({WhyFormat.DOT: dot, WhyFormat.JSON: to_json}.get(output, text)(graph))
