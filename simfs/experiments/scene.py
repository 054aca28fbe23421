"""A window of a run that is worth a look: around the worst wait for a lock, or where it was asked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from simfs.machine.recorder import Event, LongWait
from simfs.machine.time import Time
from simfs.results.timeline import Doing, State, Timeline, follow, state_of
from simfs.scenario import Point, to_run_spec
from simfs.scenario.suggest import choices

LENGTH: Time = 2_000_000_000
"""How long a window is (ps) unless told, or the wait is longer than that."""
LONGEST = 10 * LENGTH
"""How far a window grows with the wait."""
NEVER: Time = 2**62
"""A start that no run comes to."""

Watched = tuple[str, list[Event], list[Event], list[LongWait]]
Watch = Callable[..., Watched]


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
    options: str = ""
    """The options of the command that names this point."""

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
        """The tasks that matter: of too many, those that wait and hold longest, in their order."""
        calm = (State.RUNS, State.SLEEPS, State.AWAY, State.DEVICE, State.WAITS_ELSEWHERE)
        weight = Counter[int]()
        for task in self.order:
            parts = self.line.tasks[task]
            weight[task] = sum(e.end - e.begin for e in parts if state_of(e, self.locks) not in calm)
        if self.worst:
            weight[self.worst[1]] = NEVER
        kept = {task for task, _ in weight.most_common(most)}
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


@dataclass
class Watcher:
    """Runs points and looks at windows of them. Raises ValueError for what cannot be looked at."""

    watch: Watch
    ask: Ask = field(default_factory=Ask)

    def scene(self, point: Point, title: str, program: Sequence[Any] = ()) -> Scene:
        """The window that was asked for; two runs where the worst wait is to be found first."""
        spec = to_run_spec(point, 0)
        if self.ask.start is not None:
            return self._asked_for(spec, program, Scene(title, Timeline(0, 0)))
        result, _, _, waits = self.watch(json.dumps(spec), *program, start=NEVER)
        locks = json.loads(result)["locks"]
        worst = self._worst(locks, waits)
        begin, length = window_around(worst, self.ask.length, round(spec["warmup_ns"] * 1000))
        line, _ = self._window(spec, program, begin, length)
        return Scene(title, line, worst[0] if worst else "", worst)

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
            raise ValueError(f"--lock {wanted}: there is no such lock; {choices(wanted, waited)}")
        return waited

    def _asked_for(self, spec: dict[str, Any], program: Sequence[Any], scene: Scene) -> Scene:
        assert self.ask.start is not None
        line, locks = self._window(spec, program, self.ask.start, self.ask.length or LENGTH)
        self._check(locks)
        waited = Counter[str]()
        for span in line.of("wait"):
            if self.ask.lock in (None, span.about, class_of(span.about)):
                waited[span.about] += min(span.end or line.end, line.end) - max(span.begin, line.begin)
        focus = waited.most_common(1)[0][0] if waited else ""
        return replace(scene, line=line, focus=focus)

    def _window(
        self, spec: dict[str, Any], program: Sequence[Any], begin: Time, length: Time
    ) -> tuple[Timeline, list[dict[str, Any]]]:
        short = spec | {"warmup_ns": 0.0, "duration_ns": (begin + length) / 1000}
        result, in_force, events, _ = self.watch(json.dumps(short), *program, start=begin)
        return follow(in_force, events, begin, begin + length), json.loads(result)["locks"]


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
