"""Running one spec on both machines and comparing everything that happened."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from engine import window
from simfs import _engine, machine
from simfs.machine.agreement import first_difference
from simfs.machine.recorder import Event
from simfs.reports.traces.trace import line
from simfs.scenario.program import program_of, with_programs

AUDIT = "structures fit the files"
"""The law that the native machine alone looks at: the programs are the same."""

EVENTS = 3_000
"""So many are compared of a run after its set-up: Python takes a fifth of a millisecond for each."""

ALL = sys.maxsize

CONTEXT = 12
"""Events shown before the first one that differs."""


def assert_same(spec: dict[str, Any], *own: Callable[..., Any], most: int = EVENTS) -> int:
    """Fail at the first event that differs between the machines, or on results that do. Returns how many events.

    What comes after the `most` first events is counted and not compared.
    A run of which no trace is kept, where the native machine needs fewer events, gives the same results.
    A python workload that names no file is given its program and setup. Chains are recorded.
    """
    text = json.dumps({"chains": True} | spec)
    program = own or program_of(text) or ()
    native_result, in_force, native, _ = _engine.watch(text, *program)
    events = len(native)
    if end := _after(most, native):
        text = json.dumps({"chains": True} | ended(spec, end))
        native_result, in_force, native, _ = _engine.watch(text, *program)
    reference_result, also_in_force, reference, _ = machine.watch(text, *program)
    assert in_force == also_in_force
    at = first_difference(native, reference)
    if at is not None:
        before = [line(event) for event in native[max(at - CONTEXT, 0) : at]]
        ours, theirs = (
            line(trace[at]) if at < len(trace) else "nothing more" for trace in (native, reference)
        )
        raise AssertionError(
            "\n           ".join([f"event {at} differs", *before])
            + f"\nnative     {ours}\nreference  {theirs}"
        )
    assert_same_results(_engine.run(text, *program), native_result, "without and with a trace")
    natively = json.loads(native_result)
    natively["laws"] = [law for law in natively["laws"] if law["law"] != AUDIT or not law["ok"]]
    assert_same_results(json.dumps(natively), reference_result, "native and reference")
    return events


def _after(most: int, events: list[Event]) -> int | None:
    """When so many events have happened since the clock started (ps); None where there are no more."""
    times = [time for time, *_ in events if time > 0]
    return times[most] if len(times) > most else None


def ended(spec: dict[str, Any], end: int) -> dict[str, Any]:
    """The same run with an early end (ps), and as much of it before the window."""
    part = end / 1000 / (spec["warmup_ns"] + spec["duration_ns"])
    return spec | {key: part * spec[key] for key in ("warmup_ns", "duration_ns")}


def assert_same_results(ours: str, theirs: str, which: str) -> None:
    """Fail on results (JSON text) that differ."""
    differing = [
        f"{where}: {one!r}, {other!r}"
        for (where, one), (_, other) in zip_longest(
            leaves(json.loads(ours)), leaves(json.loads(theirs)), fillvalue=("", None)
        )
        if one != other
    ]
    assert not differing, "\n".join(
        [f"the traces are equal, the results differ ({which})", *differing[:CONTEXT]]
    )


def short(spec: dict[str, Any], most: float = 8_000) -> dict[str, Any]:
    """Some milliseconds of a run, but not many more events than told; cycles without contention are none."""

    def events_in(duration: float) -> int:
        found = json.loads(with_programs(_engine.run)(json.dumps(spec | window(duration))))
        return int(max(found["events"], 4 * found["operations"]))

    set_up, span = events_in(1), 5e5
    span = min(5e6, span * most / max(events_in(span) - set_up, 1))
    while span < 5e6 and events_in(span) - set_up < most / 4:  # CPUs had yet to leave their idle states
        span *= 2
    while (events := events_in(span) - set_up) > 4 * most:  # it came in a burst, after the pilot
        span *= 2 * most / events
    return spec | {"warmup_ns": 0.2 * span, "duration_ns": 0.8 * span}


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """The numbers and words of a JSON document with their paths."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from leaves(value[key], f"{where}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, f"{where}[{number}]")
    else:
        yield where, value
