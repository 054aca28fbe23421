"""Running one spec on both machines and comparing everything that happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from simfs import _engine, machine
from simfs.scenario.program import program_of

CONTEXT = 12
"""Events shown before the first one that differs."""


def assert_same(spec: dict[str, Any]) -> int:
    """Fail at the first event that differs between the machines, or on results that do. Returns how many events."""
    text = json.dumps(spec)
    program = program_of(text) or ()
    native_result, native = _engine.trace(text, *program)
    reference_result, reference = machine.trace(text, *program)
    for at, (ours, theirs) in enumerate(zip_longest(native, reference)):
        if ours != theirs:
            before = [show(event) for event in native[max(at - CONTEXT, 0) : at]]
            raise AssertionError(
                "\n           ".join([f"event {at} differs", *before])
                + f"\nnative     {show(ours)}\nreference  {show(theirs)}"
            )
    differing = [
        f"{where}: native {ours!r}, reference {theirs!r}"
        for (where, ours), (_, theirs) in zip_longest(
            leaves(json.loads(native_result)), leaves(json.loads(reference_result)), fillvalue=("", None)
        )
        if ours != theirs
    ]
    assert not differing, "\n".join(["the traces are equal, the results differ", *differing[:CONTEXT]])
    return len(native)


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


def show(event: tuple[int, int | None, int, str, str] | None) -> str:
    """An event as a line."""
    if event is None:
        return "(the trace ends)"
    time, task, cpu, what, about = event
    return f"{time / 1000:14.3f} ns  CPU {cpu:<3} {'' if task is None else f'task {task}':9} {what} {about}"
