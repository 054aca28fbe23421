"""`simfs list`, `schema`, `doctor`: what there is, and whether it works."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import typer
from rich.table import Table

from simfs.commands.common import FAILED, emit, plain_errors
from simfs.reports.layout import report_console
from simfs.scenario import paths
from simfs.scenario.document import Document
from simfs.scenario.models import TIMELINE, available, load_kernel, load_timeline
from simfs.scenario.timeline import linux


def list_() -> None:
    """List the scenarios, measured data and models that come with simfs."""
    with plain_errors():
        _print_titles("Scenarios", paths.SCENARIOS, paths.names(paths.SCENARIOS))
        _print_titles("Measured data", paths.MEASURED, paths.names(paths.MEASURED))
        _print_titles("Machines", paths.MODELS / "machines", available("machines"))
        _print_kernels()
        for kind in ("filesystems", "devices"):
            _print_titles(kind.capitalize(), paths.MODELS / kind, available(kind))


def schema() -> None:
    """Print the JSON Schema of the scenario language, for editors and for reference."""
    from simfs.scenario.json_schema import json_schema

    with plain_errors():
        emit(f"{json.dumps(json_schema(), indent=2)}\n")


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
    raise typer.Exit(0 if healthy else FAILED)


def _print_titles(heading: str, folder: Path, names: list[str]) -> None:
    titles = {name: Document.read(folder / f"{name}.yaml").data.get("title", "") for name in names}
    _print(heading, {name: str(title) for name, title in titles.items()})


def _print_kernels() -> None:
    timeline = load_timeline()
    first, *_, last = (linux(version) for version in timeline.versions())
    rows = {f"{first} to {last}": "any release by its name; those that change something:"}
    rows |= {linux(v): ", ".join(names) for v in timeline.versions() if (names := timeline.changes(v))}
    own = {
        name: load_kernel(name).title for name in paths.names(paths.MODELS / "kernels") if name != TIMELINE
    }
    _print("Kernels", rows | own)


def _print(heading: str, rows: Mapping[str, str]) -> None:
    table = Table(heading, "", box=None, pad_edge=False, show_header=True, title=None)
    for name, text in rows.items():
        table.add_row(f"  {name}", text)
    report_console().print(table)
