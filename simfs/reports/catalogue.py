"""What comes with simfs: scenarios, measured data and models, with their titles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.table import Table

from simfs.reports.layout import report_console
from simfs.scenario import paths
from simfs.scenario.document import Document
from simfs.scenario.models import TIMELINE, available, load_kernel, load_timeline
from simfs.scenario.timeline import linux


def print_catalogue() -> None:
    """Print a table a kind."""
    _print_titles("Scenarios", paths.SCENARIOS, paths.names(paths.SCENARIOS))
    _print_titles("Measured data", paths.MEASURED, paths.names(paths.MEASURED))
    _print_titles("Machines", paths.MODELS / "machines", available("machines"))
    _print_kernels()
    for kind in ("filesystems", "devices"):
        _print_titles(kind.capitalize(), paths.MODELS / kind, available(kind))


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
