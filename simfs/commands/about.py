"""`simfs list`, `schema`, `doctor`: what there is, and whether it works."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from simfs.commands.common import Wide, emit
from simfs.commands.errors import FAILED, plain_errors, refused
from simfs.commands.experiment import Output, TextOrJson, print_json


def list_(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD",
            help="List, with titles, what has this word in its name or title, or a whole kind: scenarios, kernels.",
            show_default=False,
        ),
    ] = None,
    wide: Wide = False,
) -> None:
    """List the scenarios, measured data and models that come with simfs."""
    with plain_errors():
        from simfs.reports.catalogue import print_about, print_catalogue
        from simfs.reports.layout import report_console

        console = report_console(wide=wide)
        if word is None:
            print_catalogue(console)
        elif not print_about(word, console):
            raise refused(f"{word}: nothing that comes with simfs has this in its name or title")


def schema() -> None:
    """Print the JSON Schema of the scenario language, for editors and as a reference."""
    from simfs.scenario.json_schema import json_schema

    with plain_errors():
        emit(f"{json.dumps(json_schema(), indent=2)}\n")


def doctor(
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Compare this profile from `simfs measure` with the nearest shipped one."
        ),
    ] = None,
    output: Output = TextOrJson.TEXT,
) -> None:
    """Check this installation. If something is missing, say what to do."""
    with plain_errors():
        if machine is not None:
            _beside(machine, output)
            return
        if output is TextOrJson.JSON:
            raise refused("--format json: goes with --machine")
    from simfs.doctor import examine

    healthy = True
    with plain_errors():
        for finding in examine():
            mark = "ok" if finding.ok else "missing" if finding.required else "absent"
            typer.echo(f"{mark:8} {finding.name}: {finding.seen}")
            if not finding.ok and finding.advice:
                typer.echo(f"{'':8} -> {finding.advice}")
            healthy &= finding.ok or not finding.required
    raise typer.Exit(0 if healthy else FAILED)


def _beside(machine: str, output: TextOrJson) -> None:
    from simfs.scenario.models import load_machine

    try:
        profile = load_machine(machine)
    except ValueError as error:
        raise refused(f"--machine {machine}: {error}") from None
    from simfs.measuring.beside import beside

    found = beside(profile)
    if output is TextOrJson.JSON:
        print_json(found)
    else:
        from simfs.reports.measured import beside_text

        typer.echo(beside_text(found), nl=False)
