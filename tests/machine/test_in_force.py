"""What was in force when a trace begins, and the longest waits before: the same on both machines, and right."""

from __future__ import annotations

import json

import pytest

from engine import Spec, lock_cycle, scenario_spec
from simfs import _engine, machine
from simfs.machine.recorder import Event

LATE = 2**62
"""A start (ps) that no run comes to."""
BEGINS = {"wait": "acquire", "acquire": "release", "acquire shared": "release shared"}


def specs() -> list[Spec]:
    compile_24 = scenario_spec("compile-24", "xfs", "workload.tasks=4", warmup_ns=1e6, duration_ns=4e6)
    return [lock_cycle("rwsem-5.11", 8, 4, duration_ns=1e6, readers=0.5), compile_24]


@pytest.mark.slow
@pytest.mark.parametrize("spec", specs(), ids=["lock-cycle", "compile-24"])
@pytest.mark.parametrize("start", [0, 300_000_000, LATE])
def test_both_machines_know_the_same(spec: Spec, start: int) -> None:
    text = json.dumps(spec)
    native, reference = _engine.watch(text, start=start), machine.watch(text, start=start)
    assert native[1] == reference[1]
    assert native[2] == reference[2]
    assert native[3] == reference[3]


def status(events: list[Event]) -> dict[int, str]:
    """The last change of state of each task."""
    moves = ("run", "preempt", "yield", "sleep", "wake")
    last = {task: what for _, task, _, what, _ in events if task is not None and what in moves}
    return {task: what for task, what in last.items() if what != "exit"}


def open_spans(events: list[Event]) -> set[tuple[int | None, str, str]]:
    """Waits and holds that have begun and not ended."""
    spans: set[tuple[int | None, str, str]] = set()
    for _, task, _, what, about in events:
        if what in ("acquire", "acquire shared"):
            spans.discard((task, "wait", about))
        if what in BEGINS:
            spans.add((task, what, about))
        elif what.startswith("release"):
            spans.discard((task, what.replace("release", "acquire"), about))
    return spans


def test_a_late_trace_is_told_what_an_early_one_saw() -> None:
    text = json.dumps(lock_cycle("mutex-4.10", 8, 4, duration_ns=1e6, think_ns=1e3, hold_ns=4e3))
    start = 300_000_000
    _, before, early, _ = _engine.watch(text)
    _, in_force, late, _ = _engine.watch(text, start=start)
    seen = [*before, *(event for event in early if event[0] < start)]
    assert late == [event for event in early if event[0] >= start]
    assert status(in_force) == status(seen)
    assert open_spans(in_force) == open_spans(seen) != set()


def test_the_longest_wait_is_that_of_the_statistics() -> None:
    text = json.dumps(
        lock_cycle("semaphore", 8, 4, duration_ns=2e6, think_ns=1e3, hold_ns=4e3) | {"warmup_ns": 1e6}
    )
    _, _, events, _ = _engine.watch(text)
    waits: list[tuple[int, str, int, int]] = []
    asked: dict[tuple[int | None, str], int] = {}
    for time, task, _, what, about in events:
        if what == "wait":
            asked[task, about] = time
        elif what == "acquire" and (task, about) in asked and task is not None:
            since = asked.pop((task, about))
            if time >= 1_000_000_000:
                waits.append((time - since, about, task, since))
    longest = max(wait for wait in waits if wait[1].startswith("lock#"))
    (found,) = (wait for wait in _engine.watch(text, start=LATE)[3] if wait[0].startswith("lock#"))
    assert found[3] - found[2] == longest[0]
