"""`simfs list`, `schema`, `doctor`: what there is, and whether it works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from simfs.commands.common import Format, Output, Rows, TextOrJson, Wide, emit, print_json, print_rows
from simfs.commands.errors import FAILED, plain_errors, refused
from simfs.scenario.problems import ScenarioError


def list_(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD",
            help="List, with titles, what has this word in its name or title, or a whole kind: scenarios, kernels.",
            show_default=False,
        ),
    ] = None,
    output: Rows = Format.TEXT,
    wide: Wide = False,
) -> None:
    """List the scenarios, measured data and models that come with simfs."""
    with plain_errors():
        if output is Format.TEXT:
            _print_list(word, wide=wide)
            return
        from simfs.reports.catalogue import entries

        rows = [entry._asdict() for entry in entries(word)]
        if not rows:
            raise _nothing_about(word)
        print_rows(rows, output)


def _print_list(word: str | None, *, wide: bool) -> None:
    from simfs.reports.catalogue import print_about, print_catalogue
    from simfs.reports.layout import report_console

    console = report_console(wide=wide)
    if word is None:
        print_catalogue(console)
    elif not print_about(word, console):
        raise _nothing_about(word)


def _nothing_about(word: str | None) -> ScenarioError:
    return refused(f"{word}: nothing that comes with simfs has this in its name or title")


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
        healthy = _examined(output)
    raise typer.Exit(0 if healthy else FAILED)


def _examined(output: TextOrJson) -> bool:
    """Look at this installation, and print each thing as soon as it is known; whether all is well."""
    from simfs.doctor import Examined, examine

    found = []
    for finding in examine():
        found.append(finding)
        if output is TextOrJson.TEXT:
            typer.echo(f"{finding.mark:8} {finding.name}: {finding.seen}")
            if not finding.ok and finding.advice:
                typer.echo(f"{'':8} -> {finding.advice}")
    whole = Examined(healthy=all(each.ok or not each.required for each in found), findings=tuple(found))
    if output is TextOrJson.JSON:
        print_json(whole)
    return whole.healthy


def _is_scenario(path: Path) -> bool:
    try:
        return any(line.startswith(b"simfs:") for line in path.read_bytes()[:4096].splitlines())
    except OSError:
        return False


def _beside(machine: str, output: TextOrJson) -> None:
    from simfs.scenario.models import load_machine

    if _is_scenario(Path(machine)):
        raise refused(
            f"--machine {machine}: is a scenario, no profile of a machine; `simfs measure` writes one"
        )
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
