"""What comes with simfs: scenarios, measured data and models, with their titles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from simfs.reports.layout import Sheet, report_console
from simfs.scenario import paths
from simfs.scenario.models import TIMELINE, available, load_kernel, load_timeline
from simfs.scenario.models.timeline import linux
from simfs.scenario.reading.document import Document

START = "compile-24"
"""The question that simfs was made for; it stands beside data, too."""

KERNELS = "Kernels"
SCENARIOS, MEASURED = "Scenarios", "Measured data"
TITLE = re.compile(r"^title:.*(?:\n[ \t].*)*", re.MULTILINE)
"""In the text of a file, with the lines on which it goes on."""

BESIDE_DATA = re.compile(r"^(measured|extends):", re.MULTILINE)
"""In the text of a scenario that stands beside measured data, or builds on one that does."""


def print_catalogue(console: Console | None = None) -> None:
    """Print a table a kind; of scenarios those to start from, of data sets their number, of kernels first and last."""
    console = console or report_console()
    for kind, (folder, names) in _files().items():
        if kind == SCENARIOS:
            _print(
                kind,
                _titles(folder, [name for name in names if _is_example(folder / f"{name}.yaml")]),
                console,
            )
        elif kind == MEASURED:
            more = (
                f"{len(names)} sets of measured data come with scenarios: `simfs list WORD` finds them, as in"
            )
            words = "`simfs list fsync`, `simfs list robot`; `simfs list scenarios` lists all"
            console.print(Padding(Text(f"{more} {words}"), (0, 1, 1, 1)))
        else:
            _print(kind, _titles(folder, names), console)
        if kind == "Machines":
            _print(KERNELS, dict([next(iter(_kernels().items()))]), console)


def _is_example(file: Path) -> bool:
    return file.stem == START or not BESIDE_DATA.search(file.read_text("utf-8"))


class Entry(NamedTuple):
    """One thing that comes with simfs: its kind, the name by which scenarios and commands know it, and its title."""

    kind: str
    name: str
    title: str


def entries(word: str | None = None) -> list[Entry]:
    """All that comes with simfs, or what `print_about` prints of a word, for programs: every release by its name."""
    timeline = load_timeline()
    releases = {linux(v): ", ".join(timeline.changes(v)) for v in timeline.versions()}
    shown = dict(_tables()) if word is None else _about(word)
    named = [
        Entry(kind.lower(), name, title)
        for kind, rows in shown.items()
        if kind != KERNELS
        for name, title in rows.items()
    ]
    if KERNELS not in shown:
        return named
    every = word is None or word.lower() in KERNELS.lower()
    known = (releases if every else {}) | {n: t for n, t in shown[KERNELS].items() if " to " not in n}
    return [*named, *(Entry(KERNELS.lower(), name, title) for name, title in known.items())]


def print_about(word: str, console: Console | None = None) -> bool:
    """Print, with their titles, a kind, or what has a word in its name or title; return whether anything is there.

    What is called like a kind is that kind alone: `kernels` are no scenarios that compare two of them.
    """
    console = console or report_console()
    found = _about(word)
    for kind, rows in found.items():
        _print(kind, rows, console)
    return bool(found)


def _about(word: str) -> dict[str, dict[str, str]]:
    """What has the word in it, by kind."""
    found: dict[str, dict[str, str]] = {}
    tables = list(_tables())
    for kind, rows in [table for table in tables if table[0].lower() == word.lower()] or tables:
        if word.lower() not in kind.lower():
            rows = {name: text for name, text in rows.items() if word.lower() in f"{name} {text}".lower()}
        if rows:
            found[kind] = rows
    return found


def _files() -> dict[str, tuple[Path, list[str]]]:
    """The kinds that are a file each, the folder of each, and the names in it."""
    return {
        SCENARIOS: (paths.SCENARIOS, paths.names(paths.SCENARIOS)),
        MEASURED: (paths.MEASURED, paths.names(paths.MEASURED)),
        **{
            kind.capitalize(): (paths.MODELS / kind, available(kind))
            for kind in ("machines", "filesystems", "devices")
        },
    }


def _tables() -> Iterator[tuple[str, dict[str, str]]]:
    for kind, (folder, names) in _files().items():
        yield kind, _titles(folder, names)
    yield KERNELS, _kernels()


def _titles(folder: Path, names: list[str]) -> dict[str, str]:
    return {name: _title((folder / f"{name}.yaml").read_text("utf-8")) for name in names}


def _title(text: str) -> str:
    """Of the lines of the title alone: to read all of four hundred files takes seconds."""
    lines = TITLE.search(text)
    return str(Document.parse(lines[0], "title").data["title"]) if lines else ""


def _kernels() -> dict[str, str]:
    timeline = load_timeline()
    first, *_, last = (linux(version) for version in timeline.versions())
    rows = {
        f"{first} to {last}": "any release by its name (`simfs list kernels`: those that change something)"
    }
    rows |= {linux(v): ", ".join(names) for v in timeline.versions() if (names := timeline.changes(v))}
    own = {
        name: load_kernel(name).title for name in paths.names(paths.MODELS / "kernels") if name != TIMELINE
    }
    return rows | own


def _print(heading: str, rows: Mapping[str, str], console: Console) -> None:
    table = Sheet()
    table.add_column(heading)
    table.add_column("")
    for name, text in rows.items():
        table.add_row(name, text)
    console.print(table)
