"""Running one spec on both machines and comparing everything that happened."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any

from simfs import _engine, machine

CONTEXT = 12
"""Events shown before the first one that differs."""


def assert_same(spec: dict[str, Any]) -> int:
    """Fail at the first event that differs between the machines, or on results that do. Returns how many events."""
    text = json.dumps(spec)
    native_result, native = _engine.trace(text)
    reference_result, reference = machine.trace(text)
    for at, (ours, theirs) in enumerate(zip_longest(native, reference)):
        if ours != theirs:
            before = "\n".join(f"           {show(event)}" for event in native[max(at - CONTEXT, 0) : at])
            raise AssertionError(
                f"event {at} differs\n{before}\nnative     {show(ours)}\nreference  {show(theirs)}\n{text}"
            )
    assert json.loads(native_result) == json.loads(reference_result)
    return len(native)


def show(event: tuple[int, int | None, int, str, str] | None) -> str:
    """An event as a line."""
    if event is None:
        return "(the trace ends)"
    time, task, cpu, what, about = event
    return f"{time / 1000:14.3f} ns  CPU {cpu:<3} {'' if task is None else f'task {task}':9} {what} {about}"
