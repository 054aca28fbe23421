"""What each task and each CPU does from when to when, put together from the events of a trace.

`follow` reads events; `Timeline` is what comes out. A task's intervals cover the window without gap or overlap; what an
interval means for one lock, the focus, says `state_of`. Times are picoseconds by the clock of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from simfs.machine.labels import name_of
from simfs.machine.recorder import Event
from simfs.machine.time import Time


class Doing(StrEnum):
    """Where a task is."""

    AWAY = "away"
    """It has not been started, has ended, or has not been seen."""
    RUN = "run"
    RUNNABLE = "runnable"
    """It wants a CPU; one may be switching to it."""
    ASLEEP = "asleep"


class State(StrEnum):
    """What a task does, seen from the lock in focus."""

    AWAY = "is not there"
    RUNS = "runs"
    SPINS = "spins for a lock"
    HOLDS = "holds the lock and runs"
    GRANTED = "holds the lock, has not run yet"
    STALLED = "holds the lock, off CPU"
    WAITS = "sleeps, waits for the lock"
    WAITS_ELSEWHERE = "sleeps, waits for another lock"
    RUNNABLE = "wants a CPU"
    DEVICE = "sleeps until a device is done"
    SLEEPS = "sleeps otherwise"


class Interval(NamedTuple):
    """A stretch of time in which nothing changes for a task."""

    begin: Time
    end: Time
    doing: Doing
    cpu: int
    """Where it runs, is queued, or ran last."""
    waits: tuple[str, ...] = ()
    """The locks it waits for; the last is the innermost."""
    holds: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    """Those of `holds` with which it has not run yet."""
    woken_by: str = ""
    """What ended its sleep: `device#0`, `timer`, `task 3`; empty where that was not seen."""


class Ran(NamedTuple):
    """A stretch of time of a CPU: a task's, idle, or (without a task) switching."""

    begin: Time
    end: Time
    task: int | None
    idle: bool = False


class Span(NamedTuple):
    """A wait, a hold or an operation, with its true ends."""

    task: int
    kind: str
    """`wait`, `hold`, `hold shared` or `operation`."""
    about: str
    begin: Time
    end: Time | None
    """None where it goes on after the window."""


class HandOver(NamedTuple):
    """A lock goes from one task to the next."""

    lock: str
    giver: int
    released: Time
    taker: int
    acquired: Time


class Wake(NamedTuple):
    """A task is woken, or starts."""

    time: Time
    task: int
    cpu: int
    """Where it will run."""
    by: str
    """What woke it, as `Interval.woken_by`."""


@dataclass
class Timeline:
    """A window of a run."""

    begin: Time
    end: Time
    tasks: dict[int, list[Interval]] = field(default_factory=dict)
    cpus: dict[int, list[Ran]] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    hand_overs: list[HandOver] = field(default_factory=list)
    wakes: list[Wake] = field(default_factory=list)

    def waiting(self, locks: frozenset[str]) -> list[tuple[Time, int]]:
        """How many tasks wait for any of `locks`: from when on, in order; the first entry is the window's begin."""
        return self._together((span.begin, span.end) for span in self.of("wait") if span.about in locks)

    def spinning(self, locks: frozenset[str]) -> list[tuple[Time, int]]:
        """How many of those are on a CPU: the same."""
        every = (each for intervals in self.tasks.values() for each in intervals)
        spins = (each for each in every if each.doing is Doing.RUN and not locks.isdisjoint(each.waits))
        return self._together((each.begin, each.end) for each in spins)

    def _together(self, stretches: Iterable[tuple[Time, Time | None]]) -> list[tuple[Time, int]]:
        """How many stretches there are at the same time, from when on."""
        changes = Counter[Time]({self.begin: 0})
        for begin, end in stretches:
            changes[max(begin, self.begin)] += 1
            if end is not None:
                changes[end] -= 1
        times = sorted(changes)
        return list(zip(times, accumulate(changes[time] for time in times), strict=True))

    def of(self, *kinds: str) -> Iterator[Span]:
        """The spans of some kinds."""
        return (span for span in self.spans if span.kind in kinds)


def state_of(interval: Interval, focus: frozenset[str]) -> State:
    """What a task does, seen from the locks in focus. Who holds one of them is a holder, whatever else it waits for."""
    doing = interval.doing
    if doing is Doing.AWAY:
        return State.AWAY
    if not focus.isdisjoint(interval.holds):
        if doing is Doing.RUN:
            return State.HOLDS
        return State.STALLED if focus.isdisjoint(interval.granted) else State.GRANTED
    if doing is Doing.RUN:
        return State.SPINS if interval.waits else State.RUNS
    if doing is Doing.RUNNABLE:
        return State.RUNNABLE
    if interval.waits:
        return State.WAITS_ELSEWHERE if focus.isdisjoint(interval.waits) else State.WAITS
    return State.DEVICE if interval.woken_by.startswith("device") else State.SLEEPS


def follow(in_force: Sequence[Event], events: Sequence[Event], begin: Time, end: Time) -> Timeline:
    """The time line of a window, from what was in force at its begin and what happened in it."""
    follower = _Follower(begin, end)
    for event in in_force:
        follower.see(event)
    follower.line.wakes.clear()
    follower.line.hand_overs.clear()
    for event in events:
        follower.see(event)
    return follower.finish()


@dataclass
class _Task:
    """A task as it stands."""

    since: Time
    doing: Doing = Doing.AWAY
    cpu: int = 0
    waits: list[str] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)
    granted: list[str] = field(default_factory=list)
    past: list[Interval] = field(default_factory=list)
    asleep_from: int = 0
    """Number of its first interval of this sleep."""


RUNS_NOW = frozenset({"run", "segment end", "look"})
"""After these a task's program takes steps."""
LEAVES = {"sleep": Doing.ASLEEP, "preempt": Doing.RUNNABLE, "yield": Doing.RUNNABLE, "exit": Doing.AWAY}


class _Follower:
    def __init__(self, begin: Time, end: Time) -> None:
        self.line = Timeline(begin, end)
        self.tasks: dict[int, _Task] = {}
        self.cpus: dict[int, Ran] = {}
        self.open: dict[tuple[int, str, str], Time] = {}
        self.last_release: dict[str, tuple[int, Time]] = {}
        self.actor = ""
        """Who or what causes the events that come now."""

    def see(self, event: Event) -> None:
        time, number, cpu, what, about = event
        if number is None:
            self._cpu(time, cpu, what, about)
            return
        task = self.tasks.setdefault(number, _Task(self.line.begin))
        if what in RUNS_NOW:
            self.actor = name_of(number)
        elif what == "timer":
            self.actor = "timer"
        if what == "run" or what == "wake" or what in LEAVES:
            self._move(time, number, task, cpu, what)
        elif what in ("begin", "end"):
            self._operation(time, number, what, about)
        elif what == "wait" or what.startswith(("acquire", "release")) or what == "hand to device":
            self._lock(time, number, task, what, about)

    def _cpu(self, time: Time, cpu: int, what: str, about: str) -> None:
        if what in ("idle", "idle exit"):
            self._runs(cpu, time, None, idle=what == "idle")
        if what in ("idle exit", "tick", "device done"):
            self.actor = about if what == "device done" else ""

    def _runs(self, cpu: int, time: Time, task: int | None, *, idle: bool = False) -> None:
        before = self.cpus.get(cpu, Ran(self.line.begin, self.line.begin, None, idle=True))
        self._keep_ran(cpu, before, time)
        self.cpus[cpu] = Ran(time, time, task, idle)

    def _keep_ran(self, cpu: int, ran: Ran, end: Time) -> None:
        begin, end = max(ran.begin, self.line.begin), min(end, self.line.end)
        if begin < end:
            self.line.cpus.setdefault(cpu, []).append(ran._replace(begin=begin, end=end))

    def _move(self, time: Time, number: int, task: _Task, cpu: int, what: str) -> None:
        """A task comes to a CPU, leaves it, or wakes."""
        self._close(time, task)
        if what == "wake":
            self.line.wakes.append(Wake(time, number, cpu, self.actor))
            if task.doing is Doing.ASLEEP:
                woken = [each._replace(woken_by=self.actor) for each in task.past[task.asleep_from :]]
                task.past[task.asleep_from :] = woken
            task.doing, task.cpu = Doing.RUNNABLE, cpu
            return
        task.granted.clear()
        task.cpu = cpu
        if what == "run":
            task.doing = Doing.RUN
            self._runs(cpu, time, number)
            return
        task.doing = LEAVES[what]
        task.asleep_from = len(task.past)
        self._runs(cpu, time, None)
        if what == "exit":
            task.waits.clear()
            task.holds.clear()

    def _operation(self, time: Time, number: int, what: str, about: str) -> None:
        if what == "begin":
            self.open[number, "operation", ""] = time
            return
        begin = self.open.pop((number, "operation", ""), self.line.begin)
        self._span(number, "operation", about, begin, time)

    def _lock(self, time: Time, number: int, task: _Task, what: str, lock: str) -> None:
        self._close(time, task)
        if what == "wait":
            task.waits.append(lock)
            self.open[number, "wait", lock] = time
        elif what.startswith("acquire"):
            self._acquire(time, number, task, "hold" if what == "acquire" else "hold shared", lock)
        else:
            self._release(time, number, task, lock)

    def _acquire(self, time: Time, number: int, task: _Task, kind: str, lock: str) -> None:
        if lock in task.waits:
            task.waits.remove(lock)
            self._span(number, "wait", lock, self.open.pop((number, "wait", lock)), time)
        task.holds.append(lock)
        if task.doing in (Doing.RUNNABLE, Doing.ASLEEP):
            task.granted.append(lock)
        self.open[number, kind, lock] = time
        giver, released = self.last_release.pop(lock, (number, time))
        if giver != number:
            self.line.hand_overs.append(HandOver(lock, giver, released, number, time))

    def _release(self, time: Time, number: int, task: _Task, lock: str) -> None:
        for held in (task.holds, task.granted):
            if lock in held:
                held.remove(lock)
        for kind in ("hold", "hold shared"):
            begin = self.open.pop((number, kind, lock), None)
            if begin is not None:
                self._span(number, kind, lock, begin, time)
        self.last_release[lock] = (number, time)

    def _span(self, task: int, kind: str, about: str, begin: Time, end: Time | None) -> None:
        if end is None or end >= self.line.begin:
            self.line.spans.append(Span(task, kind, about, begin, end))

    def _close(self, time: Time, task: _Task) -> None:
        """What a task did so far ends."""
        begin, end = max(task.since, self.line.begin), min(time, self.line.end)
        if begin < end:
            held = (tuple(task.waits), tuple(task.holds), tuple(task.granted))
            task.past.append(Interval(begin, end, task.doing, task.cpu, *held))
        task.since = time

    def finish(self) -> Timeline:
        line = self.line
        for number, task in sorted(self.tasks.items()):
            self._close(line.end, task)
            line.tasks[number] = task.past
        for cpu, ran in self.cpus.items():
            self._keep_ran(cpu, ran, line.end)
        for (number, kind, about), begin in self.open.items():
            self._span(number, kind, about, begin, None)
        line.spans.sort(key=lambda span: span.begin)
        line.cpus = dict(sorted(line.cpus.items()))
        return line
