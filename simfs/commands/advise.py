"""`simfs advise`: what to choose, where the gain ends, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simfs.commands.common import (
    Output,
    Seed,
    Settings,
    TextOrJson,
    Threads,
    Wide,
    loaded,
    overrides,
    print_answer,
    refuse_out,
)
from simfs.commands.errors import plain_errors, refusals_of_runs, refused
from simfs.commands.experiment import QuickDecided, Variant, most_runs, question, write_answer

if TYPE_CHECKING:
    from simfs.experiments.advise import Advice
    from simfs.scenario import Scenario

WORKLOADS = ("compile", "create", "create_unlink", "tmpfile")


ScenarioOrNot = Annotated[
    str | None, typer.Argument(metavar="SCENARIO", help="Name of a shipped scenario, or a file.")
]
XfsInfo = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The output of xfs_info, instead of a scenario; - is standard input."),
]
Cpus = Annotated[
    int | None,
    typer.Option(min=1, max=256, metavar="N", help="With --xfs-info: number of CPUs, and of tasks."),
]
Workload = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help=f"With --xfs-info: the workload: {', '.join(WORKLOADS)}; the first by default.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Write advise.json and a figure into this folder.",
        show_default=False,
    ),
]


def advise(
    scenario: ScenarioOrNot = None,
    variant: Variant = None,
    xfs_info: XfsInfo = None,
    cpus: Cpus = None,
    workload: Workload = None,
    out: Out = None,
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: QuickDecided = False,
    wide: Wide = False,
) -> None:
    """Find the best number of allocation groups, directory layout and lock, and say which lock decides.

    It also says where more groups bring no more. Give a scenario, or the output of xfs_info and a number of CPUs.
    """
    with plain_errors():
        refuse_out(out)
        given = overrides(settings, seed)
        if (scenario is None) == (xfs_info is None):
            raise refused("advise: give a scenario or --xfs-info, one of them")
        if scenario is not None and (cpus is not None or workload is not None):
            option, key = ("--cpus", "machine.cpus") if cpus is not None else ("--workload", "workload.kind")
            raise refused(f"{option}: goes with --xfs-info; a scenario says it itself: --set {key}=...")
        with refusals_of_runs():
            asked = (
                loaded(scenario, given)
                if scenario
                else _of_xfs_info(xfs_info, cpus, workload or WORKLOADS[0], given)
            )
        with question(asked, given, variant, quick=quick, threads=threads) as about:
            from simfs.experiments.advise import advise as ask

            measure = about.asked.measure
            most = most_runs(measure, given)
            advice = ask(about.point, measure, most=most, **about.titles, **about.options)
        print_answer(advice, output, lambda: _print(advice, wide=wide))
        if out is not None:
            _write(advice, out)
    raise typer.Exit(advice.exit_code)


def _print(advice: Advice, *, wide: bool) -> None:
    from simfs.reports.advise import print_advice
    from simfs.reports.layout import report_console

    print_advice(advice, report_console(wide=wide))


def _write(advice: Advice, out: Path) -> None:
    from simfs.reports.advise import figure

    drawn = {"allocation-groups": figure(advice)} if advice.as_it_is.agcount else {}
    write_answer(out, "advise", advice, figures=drawn)


def _of_xfs_info(path: Path | None, cpus: int | None, workload: str, given: list[str]) -> Scenario:
    from simfs.experiments.advise import from_xfs_info

    if cpus is None:
        raise refused("--cpus: is needed with --xfs-info")
    if workload not in WORKLOADS:
        raise refused(f"--workload: '{workload}' is not one of {', '.join(WORKLOADS)}")
    try:
        text = sys.stdin.read() if str(path) == "-" else Path(str(path)).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not UTF-8"
        raise refused(f"--xfs-info {path}: cannot be read: {why}") from None
    return from_xfs_info(text, cpus, workload, settings=given)
