"""Who waits for whom at one moment of a run: the wait-for graph, from what was in force then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simfs.experiments.watching import native_watch
from simfs.machine.labels import name_of
from simfs.scenario import Point, to_run_spec
from simfs.scenario.program import program_of

if TYPE_CHECKING:
    from simfs.machine import Event

STATES = {"run": "runs", "preempt": "was taken off its CPU", "yield": "gave way", "sleep": "sleeps"}
"""What a task does after the last event that changed it."""


class NoTaskError(LookupError):
    """A task that neither waits nor has what others wait for."""


@dataclass(frozen=True)
class Waiting:
    """A task that waits for a lock; `since` in picoseconds by the clock of the run."""

    task: int
    lock: str
    since: int


@dataclass(frozen=True)
class WaitGraph:
    """Who waits at a moment (picoseconds by the clock of the run), who has what is waited for, and what they do."""

    time: int
    waits: tuple[Waiting, ...]
    holders: dict[str, tuple[int, ...]]
    """Tasks that have a lock that is waited for; none where it is free or a device has it."""
    does: dict[int, str]
    """What each of these tasks does, in words."""

    def chain_of(self, task: int) -> WaitGraph:
        """The part of it that one task waits for. Raises NoTaskError where it waits for nothing and nobody for it."""
        known = {w.task for w in self.waits} | {holder for had in self.holders.values() for holder in had}
        if task not in known:
            raise NoTaskError("waits for nothing then, and nobody for it; " + _some(sorted(known)))
        reached, left = set[int](), [task]
        while left:
            one = left.pop()
            if one not in reached:
                reached.add(one)
                left += [holder for w in self.waits if w.task == one for holder in self.holders[w.lock]]
        waits = tuple(w for w in self.waits if w.task in reached)
        locks = {w.lock for w in waits}
        holders = {lock: had for lock, had in self.holders.items() if lock in locks}
        return WaitGraph(self.time, waits, holders, {t: self.does[t] for t in sorted(reached)})


def _some(tasks: Sequence[int]) -> str:
    if not tasks:
        return "nobody waits for a lock at this moment"
    more = f" and {len(tasks) - 8} more" if len(tasks) > 8 else ""
    return f"{', '.join(map(name_of, tasks[:8]))}{more} do"


def waits_at(point: Point, moment: int) -> WaitGraph:
    """Run a point's first replication up to a moment (picoseconds by the clock of the run), and look.

    Raises ValueError where the engine refuses the point's spec.
    """
    from simfs import machine

    spec: dict[str, Any] = dict(to_run_spec(point, 0))
    spec |= {"warmup_ns": 0.0, "duration_ns": moment / 1000 + 1.0}
    text = json.dumps(spec)
    watch = machine.watch if point.scenario.used_own_locks else native_watch
    return graph_of(watch(text, *(program_of(text) or ()), start=moment)[1], moment)


def graph_of(in_force: Sequence[Event], moment: int) -> WaitGraph:
    """The graph of the events that made things as they are at a moment."""
    waits, held, does = [], dict[str, list[int]](), dict[int, str]()
    for time, task, _, what, about in in_force:
        if task is None:
            continue
        if what == "wait":
            waits.append(Waiting(task, about, time))
        elif what in ("acquire", "acquire shared"):
            held.setdefault(about, []).append(task)
        elif what in STATES:
            does[task] = STATES[what]
        elif what == "wake":
            does[task] = "was woken and waits for a CPU"
    waits.sort(key=lambda w: (w.since, w.task))
    holders = {lock: tuple(sorted(held.get(lock, ()))) for lock in dict.fromkeys(w.lock for w in waits)}
    who = {w.task for w in waits} | {task for had in holders.values() for task in had}
    return WaitGraph(moment, tuple(waits), holders, {task: does.get(task, "sleeps") for task in sorted(who)})
