"""`simfs trace`: everything that happens at one point of a scenario, in order."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simfs.commands.common import (
    Quick,
    ScenarioName,
    Seed,
    Settings,
    emit,
    loaded,
    notes,
    overrides,
    patience,
    refuse_unknown_variants,
)
from simfs.commands.errors import BROKEN, complain, plain_errors, refusals_of_runs, refused

if TYPE_CHECKING:
    from simfs.experiments.watching import Watched
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
    FTRACE = "ftrace"
    PERFETTO = "perfetto"
    TRACE_DAT = "trace-dat"


BINARY = {TraceFormat.PERFETTO: "trace.pftrace", TraceFormat.TRACE_DAT: "trace.dat"}
"""Formats that are no text, with names for their files."""


def trace(
    scenario: ScenarioName,
    settings: Settings = None,
    variant: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variant to use; the first by default.")
    ] = None,
    start: Annotated[str, typer.Option(metavar="TIME", help="Begin at this time, for example '2 ms'.")] = "0",
    length: Annotated[str, typer.Option(metavar="TIME", help="Length of the window.")] = "100 us",
    engine: Annotated[
        Machine | None,
        typer.Option(
            help="The machine that runs the programs; 'both' compares the two. "
            "Native by default, unless the point has locks of its own.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        TraceFormat,
        typer.Option(
            "--format",
            help="Format of the output; 'perfetto', 'ftrace' and 'chrome' are for ui.perfetto.dev, 'trace-dat' for "
            "KernelShark.",
        ),
    ] = TraceFormat.TEXT,
    quick: Quick = False,
    seed: Seed = None,
) -> None:
    """Print every event at one point of a scenario: who runs, waits, takes a lock, wakes another, and where."""
    equal = True
    with plain_errors():
        from simfs.scenario import to_run_spec

        begin, span = duration_of(start, "--start"), length_of(length)
        _check(output)
        point = _point(scenario, overrides(settings, seed), variant, quick=quick)
        refuse_late([point], start, "--start")
        chosen = engine or (Machine.SIMPY if point.scenario.used_own_locks else Machine.NATIVE)
        text = json.dumps(to_run_spec(point, 0) | {"warmup_ns": 0.0, "duration_ns": begin + span})
        with refusals_of_runs(), patience(f"{point.id}: running"):
            watched, equal = _watched(text, chosen, start=round(begin * 1000))
        window = (round(begin * 1000), round((begin + span) * 1000))
        _print(watched, output, window)
    raise typer.Exit(0 if equal else BROKEN)


def _check(output: TraceFormat) -> None:
    """Refuse what cannot be printed before anything runs."""
    if output is TraceFormat.PERFETTO and find_spec("perfetto") is None:
        raise refused("--format perfetto: needs the package perfetto: pip install 'simfs[perfetto]'")
    if output in BINARY and sys.stdout.isatty():
        raise refused(f"--format {output}: is binary; send it to a file: > {BINARY[output]}")


def duration_of(text: str, option: str) -> float:
    """A duration on the command line (ns)."""
    from simfs.scenario.sections.units import checked_duration

    try:
        return checked_duration(0 if text == "0" else text)
    except ValueError as error:
        raise refused(f"{option}: {error}") from None


def length_of(text: str) -> float:
    """The length of a window on the command line (ns)."""
    span = duration_of(text, "--length")
    if span <= 0:
        raise refused("--length: must be more than nothing")
    return span


def refuse_late(points: Iterable[Point], moment: str | None, option: str) -> None:
    """Refuse a time at which the runs of the points are over: all before it would be simulated for it."""
    from simfs.reports.numbers import duration
    from simfs.scenario import to_run_spec

    if moment is None:
        return
    for point in points:
        spec = to_run_spec(point, 0)
        end = spec["warmup_ns"] + spec["duration_ns"]
        if duration_of(moment, option) > end:
            over = f"the run of {point.id} ends at {duration(end)} (warm-up and measure.duration)"
            longer = f"--set 'measure.duration={moment}' makes it last as long"
            raise refused(f"{option} {moment}: {over}; {longer}")


def _point(name: str, given: list[str], variant: str | None, *, quick: bool) -> Point:
    """The point of a variant that reports show too: with as many tasks as CPUs, else with the most."""
    from simfs.experiments.points import the_point
    from simfs.scenario import expand

    asked = loaded(name, given, quick=quick)
    points = expand(asked)
    known = list(dict.fromkeys(point.variant for point in points))
    refuse_unknown_variants([variant] if variant else (), known)
    chosen = the_point(asked, variant or known[0])
    if len(points) > 1:
        notes().print(f"traced: {chosen.id}, one of {len(points)} points")
    return chosen


def _watched(spec: str, engine: Machine, start: int) -> tuple[Watched, bool]:
    from simfs import machine
    from simfs.experiments.watching import native_watch
    from simfs.machine.agreement import first_difference
    from simfs.reports.traces.trace import line
    from simfs.scenario.program import program_of

    program = program_of(spec) or ()
    if engine is Machine.SIMPY:
        return machine.watch(spec, *program, start=start), True
    watched = native_watch(spec, *program, start=start)
    if engine is Machine.NATIVE:
        return watched, True
    native, reference = watched[2], machine.watch(spec, *program, start=start)[2]
    at = first_difference(native, reference)
    if at is None:
        notes().print(f"both machines give the same {len(native)} events")
        return watched, True
    complain(f"the machines differ from event {at} on")
    for name, events in (("native", native), ("simpy", reference)):
        complain(f"{name}: {line(events[at]) if at < len(events) else 'nothing more'}")
    return (*watched[:2], native[max(at - CONTEXT, 0) : at], watched[3]), False


def _print(watched: Watched, output: TraceFormat, window: tuple[int, int]) -> None:
    from simfs.reports.numbers import duration
    from simfs.reports.traces.trace import line, record

    events = watched[2]
    if not events:
        notes().print(f"nothing happens from {duration(window[0] / 1000)} to {duration(window[1] / 1000)}")
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
        case _:
            _show(watched, output, window)


def _show(watched: Watched, output: TraceFormat, window: tuple[int, int]) -> None:
    """Print what viewers of kernel traces open."""
    from simfs.reports.traces.ftrace import ftrace
    from simfs.reports.traces.perfetto import perfetto
    from simfs.reports.traces.trace import chrome
    from simfs.reports.traces.trace_dat import trace_dat
    from simfs.results.timeline import follow

    result, in_force, events, _ = watched
    types = {lock["name"]: lock["type"] for lock in json.loads(result)["locks"]}
    line = follow(in_force, events, *window)
    if output is TraceFormat.FTRACE:
        emit(ftrace(line, types))
    elif output is TraceFormat.CHROME:
        emit(f"{json.dumps(chrome(line))}\n")
    else:
        typer.echo(perfetto(line) if output is TraceFormat.PERFETTO else trace_dat(line, types), nl=False)
