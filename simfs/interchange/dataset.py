"""A reading as a data set of the project (`scenarios/measured`), in text."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any

from pydantic import ValidationError

from simfs.interchange.reading import Figure, Reading, UnreadableError, Waits
from simfs.interchange.symbols import Sorted, candidates, sort
from simfs.results.by_run import plain
from simfs.scenario.measured.dataset import Dataset
from simfs.scenario.measured.metrics import metric
from simfs.scenario.problems import ScenarioError
from simfs.scenario.reading.document import Document
from simfs.scenario.reading.refusals import problems_of

UNMAPPED_SHOWN = 20


@dataclass(frozen=True)
class About:
    """What a tool's output does not say."""

    name: str
    file: str
    tasks: int | None = None
    operations: int | None = None
    variant: str | None = None
    machine: str = "not said"
    kernel: str = "not said"


def to_yaml(reading: Reading, about: About) -> str:
    """Return the data set, or the section of a scenario where the file is no result.

    Rates that a file has several times become their median with the lowest and the highest. Raises UnreadableError
    where nobody says how many tasks ran, and where nothing of the file has a metric.
    """
    if reading.section:
        return reading.section
    found = sort(reading.waits)
    rows = [*_rates(reading.figures, about), *_waits(reading.format, found, about)]
    if not rows:
        raise UnreadableError(
            f"nothing of it is a metric of simfs, and no wait is for a lock it has{_first(found)}"
        )
    text = _document(reading, about, rows, found)
    _check(text, about.file)
    return text


def _first(found: Sorted) -> str:
    names = ", ".join(w.place for w in found.unmapped[:3])
    return f": {names}" if names else ""


def _rates(figures: tuple[Figure, ...], about: About) -> Iterator[dict[str, Any]]:
    groups = defaultdict[tuple[str, str, int], list[Figure]](list)
    for figure in figures:
        groups[figure.series, figure.metric, _tasks(figure.tasks, about)].append(figure)
    for (series, name, tasks), same in groups.items():
        values = [figure.value for figure in same]
        row = _row(series, tasks, name, median(values))
        if len(values) > 1:
            row |= {"low": min(values), "high": max(values), "note": f"{len(values)} runs"}
        yield row | _said(same[0], alone=len(values) == 1)


def _said(figure: Figure, *, alone: bool) -> dict[str, Any]:
    """What a table says of a row besides its value."""
    sides = {"low": figure.low, "high": figure.high} if alone else {}
    said = {side: value for side, value in sides.items() if value is not None}
    return said | ({"role": figure.role} if figure.role else {}) | ({"approx": True} if figure.approx else {})


def _tasks(said: int | None, about: About) -> int:
    tasks = said or about.tasks
    if tasks is None:
        raise UnreadableError("does not say how many tasks ran: give --tasks N")
    return tasks


def _row(series: str, tasks: int, name: str, value: float) -> dict[str, Any]:
    return {"series": series, "x": tasks, "metric": name, "unit": metric(name).unit, "value": value}


def _waits(series: str, found: Sorted, about: About) -> Iterator[dict[str, Any]]:
    """Rows of the lock classes; one that stands for several levels has no metric."""
    for lock, waits in found.by_lock.items():
        if not lock.endswith(" tree"):
            for name, value in _metrics(waits, about):
                yield _row(series, _tasks(None, about), f"{plain(lock)}_{name}", value)


def _metrics(waits: Waits, about: About) -> Iterator[tuple[str, float]]:
    if waits.count and waits.total_ns is not None:
        yield "avg_wait_us", waits.total_ns / waits.count / 1e3
    if waits.count and waits.max_ns is not None:
        yield "max_wait_us", waits.max_ns / 1e3
    if waits.count and about.operations:
        yield "waits_per_operation", waits.count / about.operations
    if waits.acquired and waits.held_ns is not None and about.operations:
        yield "acquired_per_operation", waits.acquired / about.operations
    if waits.acquired and waits.count < waits.acquired:
        yield "contended_percent", 100 * waits.count / waits.acquired


def _document(reading: Reading, about: About, rows: list[dict[str, Any]], found: Sorted) -> str:
    series: dict[str, dict[str, Any]] = {str(row["series"]): {} for row in rows}
    for settings in series.values():
        if about.variant:
            settings["variant"] = about.variant
        if about.operations:
            settings["operations"] = float(about.operations)
    today = datetime.now(UTC).date().isoformat()
    parts = [
        f"name: {_quoted(about.name)}",
        f"title: {_quoted(f'{reading.format} in {about.file}')}",
        "evidence: measured",
        "source:",
        "  author: not said",
        f"  date: {_quoted(today)}",
        f"  where: {_quoted(f'imported from {about.file}')}",
        f"machine: {_quoted(about.machine)}",
        f"kernel: {_quoted(about.kernel)}",
        "x: workload.tasks",
        "series:",
        *(f"  {_quoted(name)}: {_flow(settings)}" for name, settings in series.items()),
        "rows:",
        *(f"  - {_flow(row)}" for row in rows),
        "notes:",
        *(f"  - {_quoted(note)}" for note in notes(reading, found)),
    ]
    return "\n".join(parts) + "\n"


def notes(reading: Reading, found: Sorted) -> list[str]:
    """What was read and what was not, for a data set and for people."""
    lines = f"{reading.format}: {reading.matched} lines used, {reading.skipped} skipped"
    facts = [f"{key}: {value}" for key, value in reading.facts.items()][:10]
    levels = [f"{lock}: all levels together, no metric" for lock in found.by_lock if lock.endswith(" tree")]
    return [lines, *facts, *levels, *(f"of no lock of simfs: {line}" for line in unmapped(found))]


def unmapped(found: Sorted) -> list[str]:
    """Waits that belong to no lock, with how often and how long, and which locks they may be for."""
    shown = [_unmapped(w) for w in found.unmapped[:UNMAPPED_SHOWN]]
    more = len(found.unmapped) - len(shown)
    return [*shown, *([f"{more} more"] if more else [])]


def _unmapped(waits: Waits) -> str:
    times = {0: "", 1: "once"}.get(waits.count, f"{waits.count} times")
    took = "" if waits.total_ns is None else f"{waits.total_ns / 1e6:.3f} ms"
    perhaps = candidates(waits)
    hint = f"one of {', '.join(perhaps)}: record call chains" if perhaps else ""
    return ", ".join(filter(None, (waits.place, times, took, hint)))


def _flow(values: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {_quoted(value)}" for key, value in values.items()) + "}"


def _quoted(value: object) -> str:
    """JSON is YAML, but for what no terminal should print."""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.1f}"
    if isinstance(value, str):
        value = re.sub(r"[^\x20-\x7e\xa0-\ud7ff]", "?", value)[:400]
    return json.dumps(value, ensure_ascii=False)


def _check(text: str, name: str) -> None:
    document = Document.parse(text, name)
    try:
        Dataset.model_validate(document.data)
    except ValidationError as error:
        raise ScenarioError(problems_of(error, document)) from None
