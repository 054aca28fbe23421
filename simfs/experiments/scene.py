"""A window of a run that is worth a look: around the worst wait for a lock, or where it was asked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from simfs.experiments.watching import Watch, Watched, native_watch
from simfs.machine.recorder import LongWait
from simfs.machine.time import Time
from simfs.results.timeline import Doing, State, Timeline, follow, state_of
from simfs.scenario import Point, to_run_spec
from simfs.scenario.program import program_of
from simfs.scenario.suggest import LOCKS_OF_A_RUN, choices

LENGTH: Time = 2_000_000_000
"""How long a window is (ps) unless told, or the wait is longer than that."""
LONGEST = 10 * LENGTH
"""How far a window grows with the wait."""
NEVER: Time = 2**62
"""A start that no run comes to."""

CALM = (State.RUNS, State.SLEEPS, State.AWAY, State.DEVICE, State.WAITS_ELSEWHERE)
"""States of who has nothing to do with the lock in focus."""
HOLDING = (State.HOLDS, State.GRANTED, State.STALLED)
"""States of a holder; of several holders the first of these counts."""


@dataclass(frozen=True)
class Ask:
    """What to look at; times in ps."""

    start: Time | None = None
    """None for around the worst wait."""
    length: Time | None = None
    lock: str | None = None
    """A class (`xfs.AGI`) or one lock (`xfs.AGI#3`); None for the class that is waited for longest in sum."""


@dataclass(frozen=True)
class Scene:
    """A window of one variant's run."""

    title: str
    line: Timeline
    focus: str = ""
    """The lock in focus, as `xfs.AGI#3`; empty where nobody waits for any."""
    worst: LongWait | None = None
    """The wait around which the window was laid."""

    @property
    def locks(self) -> frozenset[str]:
        """The focus as a set."""
        return frozenset({self.focus} - {""})

    @cached_property
    def times(self) -> Counter[State]:
        """Time of all tasks by state (ps)."""
        time = Counter[State]()
        for intervals in self.line.tasks.values():
            for each in intervals:
                time[state_of(each, self.locks)] += each.end - each.begin
        return time

    @cached_property
    def order(self) -> list[int]:
        """Tasks that have to do with the focus in the order in which they first have it, then those that run."""
        first: dict[int, Time] = {}
        for span in self.line.of("hold", "hold shared", "wait"):
            if span.about == self.focus:
                had = span.begin if span.kind != "wait" else span.end or NEVER
                first[span.task] = min(first.get(span.task, NEVER), had)
        near = sorted(first, key=lambda task: (first[task], task))
        ran = Counter[int]()
        for task, intervals in self.line.tasks.items():
            ran[task] = sum(each.end - each.begin for each in intervals if each.doing is Doing.RUN)
        return near or [task for task, time in ran.most_common() if time]

    def rows(self, most: int) -> list[int]:
        """The tasks that matter, in their order: of too many, those that hold longest and those that wait longest."""
        held, waited = Counter[int](), Counter[int]()
        for task in self.order:
            for each in self.line.tasks[task]:
                state = state_of(each, self.locks)
                time = held if state in HOLDING else waited
                time[task] += (each.end - each.begin) * (state not in CALM)
        if self.worst and self.worst[1] in waited:
            waited[self.worst[1]] = NEVER
        kept = {task for task, _ in held.most_common(most // 2)}
        for task, _ in waited.most_common():
            if len(kept) < most:
                kept.add(task)
        return [task for task in self.order if task in kept]

    def cpu_rows(self, most: int) -> list[int]:
        """The CPUs that matter: those on which holders of the focus run longest, in the order of their numbers."""
        time = {cpu: sum(r.end - r.begin for r in ran if not r.idle) for cpu, ran in self.line.cpus.items()}
        held = Counter[int]()
        for intervals in self.line.tasks.values():
            for each in intervals:
                if state_of(each, self.locks) is State.HOLDS:
                    held[each.cpu] += each.end - each.begin
        chosen = sorted(time, key=lambda cpu: (held[cpu], time[cpu]), reverse=True)[:most]
        return sorted(chosen)


@dataclass(frozen=True)
class Found:
    """A point whose worst wait is known, where that was to be found."""

    point: Point
    title: str
    window: tuple[Time, Time]
    """Begin and length."""
    worst: LongWait | None = None


@dataclass
class Watcher:
    """Runs points and looks at windows of them. Raises ValueError for what cannot be looked at."""

    watch: Watch
    ask: Ask = field(default_factory=Ask)

    def find(self, point: Point, title: str) -> Found:
        """Where to look; a run of the point unless the start was told."""
        if self.ask.start is not None:
            return Found(point, title, (self.ask.start, self.ask.length or LENGTH))
        spec = to_run_spec(point, 0)
        result, _, _, waits = self._run(spec, NEVER)
        worst = self._worst(json.loads(result)["locks"], waits)
        warm = round(spec["warmup_ns"] * 1000)
        return Found(point, title, window_around(worst, self.ask.length, warm), worst)

    def look(self, found: Found, length: Time | None = None) -> Scene:
        """The window that was found, or one of another length around the same wait."""
        begin, own = found.window
        if length is not None and length != own:
            begin, own = window_around(found.worst, length, begin)
        short = to_run_spec(found.point, 0) | {"warmup_ns": 0.0, "duration_ns": (begin + own) / 1000}
        result, in_force, events, _ = self._run(short, begin)
        line = follow(in_force, events, begin, begin + own)
        if found.worst is not None:
            return Scene(found.title, line, found.worst[0], found.worst)
        self._check(json.loads(result)["locks"])
        return Scene(found.title, line, self._most_waited(line))

    def _run(self, spec: dict[str, Any], start: Time) -> Watched:
        text = json.dumps(spec)
        return self.watch(text, *(program_of(text) or ()), start=start)

    def _most_waited(self, line: Timeline) -> str:
        """The lock that tasks wait for longest in a window, of those that were asked for."""
        waited = Counter[str]()
        for span in line.of("wait"):
            if self.ask.lock in (None, span.about, class_of(span.about)):
                waited[span.about] += min(span.end or line.end, line.end) - max(span.begin, line.begin)
        return waited.most_common(1)[0][0] if waited else ""

    def _worst(self, locks: list[dict[str, Any]], waits: list[LongWait]) -> LongWait | None:
        waited, wanted = self._check(locks), self.ask.lock
        if wanted is None and waits:
            wanted = max({class_of(lock) for lock, *_ in waits}, key=lambda name: waited.get(name, 0.0))
        own = [wait for wait in waits if wanted in (wait[0], class_of(wait[0]))]
        if self.ask.lock is not None and "#" in self.ask.lock and not own:
            others = [wait[0] for wait in waits if class_of(wait[0]) == class_of(self.ask.lock)]
            raise ValueError(f"--lock {wanted}: nobody waits for it; {choices(wanted, others)}")
        return max(own, key=lambda wait: wait[3] - wait[2], default=None)

    def _check(self, locks: list[dict[str, Any]]) -> dict[str, float]:
        """How long each class was waited for in sum; refuses a lock of none of them."""
        waited = {lock["name"]: lock["wait_total_ns"] for lock in locks}
        wanted = self.ask.lock
        if wanted is not None and class_of(wanted) not in waited:
            raise ValueError(
                f"--lock {wanted}: there is no such lock; {choices(wanted, waited, LOCKS_OF_A_RUN)}"
            )
        return waited


def scenes(found: Sequence[tuple[Watcher, Found]]) -> list[Scene]:
    """Windows of one length, which is that of the longest."""
    length = max((each.window[1] for _, each in found), default=LENGTH)
    return [watcher.look(each, length) for watcher, each in found]


def filmed(points: Sequence[tuple[str, Point]], ask: Ask) -> list[Scene]:
    """Scenes of points with their titles, on one time axis, each on the machine that can run it."""
    from simfs import machine

    found = []
    for title, point in points:
        watcher = Watcher(machine.watch if point.scenario.used_own_locks else native_watch, ask)
        found.append((watcher, watcher.find(point, title)))
    return scenes(found)


def window_around(worst: LongWait | None, length: Time | None, otherwise: Time) -> tuple[Time, Time]:
    """Begin and length of a window around a wait; too short a one has its end in the last quarter."""
    if worst is None:
        return otherwise, length or LENGTH
    begin, end = worst[2], worst[3]
    length = length or min(max(LENGTH, (end - begin) * 5 // 4), LONGEST)
    first = (begin + end - length) // 2 if end - begin <= length else end - length * 3 // 4
    return max(first, 0), length


def class_of(lock: str) -> str:
    """The class of a lock: `xfs.AGI` of `xfs.AGI#3`."""
    return lock.partition("#")[0]
