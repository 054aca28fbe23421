"""`simfs trace`: everything that happens at one point of a scenario, in order."""

from __future__ import annotations

import csv
import io
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simfs.commands.common import (
    BROKEN,
    ScenarioName,
    Seed,
    Settings,
    complain,
    emit,
    notes,
    overrides,
    plain_errors,
    refusals_of_runs,
    refused,
)
from simfs.scenario.suggest import nearest

if TYPE_CHECKING:
    from simfs.machine import Event
    from simfs.scenario import Point

CONTEXT = 12
"""Events shown before the first one in which the machines differ."""


class Machine(StrEnum):
    """Whose events."""

    NATIVE = "native"
    SIMPY = "simpy"
    BOTH = "both"


class TraceFormat(StrEnum):
    """How events are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    CHROME = "chrome"


def trace(
    scenario: ScenarioName,
    settings: Settings = None,
    variant: Annotated[str | None, typer.Option(help="Of this variant; else of the first.")] = None,
    start: Annotated[str, typer.Option(help="From here on, for example '2 ms'.")] = "0",
    length: Annotated[str, typer.Option(help="For so long.")] = "100 us",
    engine: Annotated[
        Machine, typer.Option(help="Whose events; 'both' compares the machines.")
    ] = Machine.NATIVE,
    output: Annotated[
        TraceFormat, typer.Option("--format", help="'chrome' is for ui.perfetto.dev.")
    ] = TraceFormat.TEXT,
    seed: Seed = None,
) -> None:
    """Print everything that happens at one point of a scenario: who runs, waits, takes, wakes, and where."""
    equal = True
    with plain_errors():
        from simfs.scenario import to_run_spec

        begin, span = duration_of(start, "--start"), duration_of(length, "--length")
        point = _point(scenario, overrides(settings, seed), variant)
        text = json.dumps(to_run_spec(point, 0) | {"warmup_ns": 0.0, "duration_ns": max(begin + span, 1.0)})
        with refusals_of_runs():
            events, equal = _events(text, engine, start=round(begin * 1000))
        _print(events, output)
    raise typer.Exit(0 if equal else BROKEN)


def duration_of(text: str, option: str) -> float:
    """A duration on the command line (ns)."""
    from simfs.scenario.units import checked_duration

    try:
        return checked_duration(0 if text == "0" else text)
    except ValueError as error:
        raise refused(f"{option}: {error}") from None


def _point(name: str, given: list[str], variant: str | None) -> Point:
    from simfs.scenario import expand, load

    points = expand(load(name, given))
    chosen = [point for point in points if variant in (None, point.variant)]
    if not chosen:
        known = list(dict.fromkeys(point.variant for point in points))
        near = nearest(variant, known)
        meant = f"; did you mean {near!r}?" if near else f"; there are {', '.join(known)}"
        raise refused(f"--variant {variant}: there is no such variant{meant}")
    if len(chosen) > 1:
        notes().print(f"the first of {len(chosen)} points: {chosen[0].id}")
    return chosen[0]


def _events(spec: str, engine: Machine, start: int) -> tuple[list[Event], bool]:
    from simfs import _engine, machine
    from simfs.machine.agreement import first_difference
    from simfs.reports.trace import line
    from simfs.scenario.program import program_of

    program = program_of(spec) or ()
    native = _engine.trace(spec, *program, start=start)[1] if engine is not Machine.SIMPY else []
    reference = machine.trace(spec, *program, start=start)[1] if engine is not Machine.NATIVE else []
    if engine is not Machine.BOTH:
        return native or reference, True
    at = first_difference(native, reference)
    if at is None:
        notes().print(f"both machines give the same {len(native)} events")
        return native, True
    complain(f"the machines differ from event {at} on")
    for name, events in (("native", native), ("simpy", reference)):
        complain(f"{name}: {line(events[at]) if at < len(events) else 'nothing more'}")
    return native[max(at - CONTEXT, 0) : at], False


def _print(events: list[Event], output: TraceFormat) -> None:
    from simfs.reports.trace import chrome, line, record

    match output:
        case TraceFormat.TEXT:
            emit("".join(f"{line(event)}\n" for event in events))
        case TraceFormat.CSV:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(["time_ns", "task", "cpu", "what", "about"])
            writer.writerows(record(event).values() for event in events)
            emit(text.getvalue())
        case TraceFormat.JSON:
            document: list[dict[str, Any]] = [record(event) for event in events]
            emit(f"{json.dumps(document)}\n")
        case TraceFormat.CHROME:
            emit(f"{json.dumps(chrome(events))}\n")
