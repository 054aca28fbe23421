"""What comes with simfs: scenarios, measured data and models, with their titles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from simfs.reports.layout import Sheet, report_console
from simfs.scenario import paths
from simfs.scenario.document import Document
from simfs.scenario.models import TIMELINE, available, load_kernel, load_timeline
from simfs.scenario.timeline import linux


def print_catalogue(console: Console | None = None) -> None:
    """Print a table a kind."""
    console = console or report_console()
    _print_titles("Scenarios", paths.SCENARIOS, paths.names(paths.SCENARIOS), console)
    _print_titles("Measured data", paths.MEASURED, paths.names(paths.MEASURED), console)
    _print_titles("Machines", paths.MODELS / "machines", available("machines"), console)
    _print_kernels(console)
    for kind in ("filesystems", "devices"):
        _print_titles(kind.capitalize(), paths.MODELS / kind, available(kind), console)


def _print_titles(heading: str, folder: Path, names: list[str], console: Console) -> None:
    titles = {name: Document.read(folder / f"{name}.yaml").data.get("title", "") for name in names}
    _print(heading, {name: str(title) for name, title in titles.items()}, console)


def _print_kernels(console: Console) -> None:
    timeline = load_timeline()
    first, *_, last = (linux(version) for version in timeline.versions())
    rows = {f"{first} to {last}": "any release by its name; those that change something:"}
    rows |= {linux(v): ", ".join(names) for v in timeline.versions() if (names := timeline.changes(v))}
    own = {
        name: load_kernel(name).title for name in paths.names(paths.MODELS / "kernels") if name != TIMELINE
    }
    _print("Kernels", rows | own, console)


def _print(heading: str, rows: Mapping[str, str], console: Console) -> None:
    table = Sheet()
    table.add_column(heading)
    table.add_column("")
    for name, text in rows.items():
        table.add_row(name, text)
    console.print(table)
