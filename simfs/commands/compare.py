"""`simfs compare`: two answers side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from simfs.commands.common import (
    Quick,
    Seed,
    Settings,
    Threads,
    overrides,
    plain_errors,
    progress,
    refusals_of_runs,
)
from simfs.commands.experiment import Output, TextOrJson, print_json

SIDE = (
    "A folder of `simfs run --out`, a data set, or a scenario to run; `:VARIANT` names one of its variants."
)


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=SIDE)],
    b: Annotated[str, typer.Argument(metavar="B", help="What A is compared with; the same.")],
    settings: Settings = None,
    output: Output = TextOrJson.TEXT,
    seed: Seed = None,
    threads: Threads = None,
    quick: Quick = False,
) -> None:
    """Print two answers side by side, with the change, its interval and a verdict, fit for a commit message.

    --set, --seed and --quick go to scenarios that are run; two runs with one seed are compared pair by pair.
    """
    with plain_errors():
        given = overrides(settings, seed)
        with progress() as report, refusals_of_runs():
            from simfs.experiments.compare import compare_sides, open_side

            sides = [open_side(x, given, quick=quick, threads=threads, progress=report) for x in (a, b)]
            comparison = compare_sides(*sides)
        if output is TextOrJson.JSON:
            print_json(comparison)
        else:
            from simfs.reports.compare import to_text

            typer.echo(to_text(comparison), nl=False)
    raise typer.Exit(max(side.result.exit_code if side.result else 0 for side in sides))
