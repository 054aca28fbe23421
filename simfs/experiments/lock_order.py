"""Which locks the programs of a point take, where, and which of them inside which: read off a short run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simfs import _engine, machine
from simfs.machine.locks.policy import POLICIES
from simfs.machine.recorder import MOST_EVENTS
from simfs.results.run_result import LockStats, RunResult
from simfs.scenario import Point, to_run_spec
from simfs.scenario.program import program_of

if TYPE_CHECKING:
    from simfs.machine import Event

WINDOWS_NS = (30e6, 1e6)
"""Long enough for some hundred operations of most loads; shorter where more happens than a trace takes."""

INNER = ".wait_lock"
"""What a sleeping lock has inside; it is taken with it and not told."""


@dataclass(frozen=True)
class Taken:
    """A lock class, its role and kind as `locks:` of a scenario has them, its type, and the places that take it."""

    lock: str
    role: str
    kind: str
    type: str
    sites: tuple[str, ...]
    times: int


@dataclass(frozen=True)
class Nested:
    """A lock that is taken while another one is held, the last that was taken before it."""

    outer: str
    inner: str
    times: int


@dataclass(frozen=True)
class LockOrder:
    """The locks of a point, outer ones first, and which are taken inside which."""

    locks: tuple[Taken, ...]
    nested: tuple[Nested, ...]


def lock_order(point: Point) -> LockOrder:
    """Read the order of locks off the first milliseconds of a point, set-up left out.

    A lock that is taken rarely may be missing. Raises ValueError for what the engine refuses.
    """
    spec = to_run_spec(point, 0)
    kinds = {role: kind for role, kind in spec["kernel"]["locks"].items() if kind in POLICIES}
    locks, events = _traced(point, spec)
    nested = Counter(_nested(events))
    taken = [
        Taken(
            lock.name,
            lock.role,
            kinds.get(lock.role, lock.type),
            lock.type,
            tuple(s.site for s in lock.sites if s.acquired and s.site),
            lock.acquired,
        )
        for lock in locks
        if (lock.acquired or lock.acquired_shared) and not lock.name.endswith(INNER)
    ]
    depth = _depths(nested)
    return LockOrder(
        tuple(sorted(taken, key=lambda lock: (depth.get(lock.lock, 0), lock.lock))),
        tuple(Nested(*pair, times) for pair, times in sorted(nested.items())),
    )


def _traced(point: Point, spec: dict[str, Any]) -> tuple[Sequence[LockStats], Sequence[Event]]:
    """The locks and events of the longest window that a trace takes."""
    traced = machine.trace if point.scenario.used_own_locks else _engine.trace
    for window in WINDOWS_NS:
        text = json.dumps(spec | {"warmup_ns": 0.0, "duration_ns": window})
        try:
            report, events = traced(text, *(program_of(text) or ()))
        except ValueError as error:
            if window == WINDOWS_NS[-1] or f"{MOST_EVENTS} events" not in str(error):
                raise
        else:
            return RunResult.read(report).locks, events
    raise AssertionError("the last window ends or raises")


def _nested(events: Iterable[Event]) -> Iterable[tuple[str, str]]:
    """Pairs of classes: what a task holds and what it takes next."""
    held = defaultdict[int | None, list[str]](list)
    for _, task, _, what, about in events:
        if _class_of(about).endswith(INNER):
            continue
        if what.startswith("acquire"):
            if held[task]:
                yield _class_of(held[task][-1]), _class_of(about)
            held[task].append(about)
        elif what.startswith("release") and about in held[task]:
            held[task].remove(about)


def _class_of(lock: str) -> str:
    return lock.rsplit("#", 1)[0]


def _depths(nested: Iterable[tuple[str, str]]) -> dict[str, int]:
    """How many locks stand above each; circles, as of two locks of one class, count once."""
    above = defaultdict[str, set[str]](set)
    for outer, inner in nested:
        if outer != inner:
            above[inner].add(outer)

    def depth(lock: str, seen: frozenset[str]) -> int:
        return max((1 + depth(each, seen | {lock}) for each in above[lock] - seen), default=0)

    return {lock: depth(lock, frozenset({lock})) for lock in {each for pair in nested for each in pair}}
