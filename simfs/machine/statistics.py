"""What is counted within the measured window: of the locks of one class, of wake-ups and of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field, fields
from enum import StrEnum

from simfs._engine import Histogram
from simfs.machine.time import Time, to_ns


class TaskKind(StrEnum):
    """What sort of task it is."""

    LOAD = "load"
    """Of the workload, with its children."""
    BOUND = "bound"
    """A kernel thread that is bound to a CPU."""
    KERNEL = "kernel"
    """A kernel thread that runs anywhere."""

    @classmethod
    def of(cls, spawn_kind: str, *, pinned: bool) -> TaskKind:
        """The kind of a task that lives as `Machine.spawn` says."""
        if spawn_kind != "background":
            return cls.LOAD
        return cls.BOUND if pinned else cls.KERNEL


@dataclass
class Counters:
    """Events counted over the measured window."""

    switches: int = 0
    involuntary: int = 0
    wakeups: int = 0
    migrations: int = 0
    pulls: int = 0
    """Migrations of tasks that waited in a queue; the others were on waking."""
    operations: int = 0
    bytes: int = 0


@dataclass
class Counts:
    """Acquisitions by one kind of task at one place in the programs."""

    acquired: int = 0
    contended: int = 0
    """Those that had to wait."""
    found_held: int = 0
    """Those of them that came while somebody had the lock; the others met only who was about to."""
    wait_total: Time = 0

    @classmethod
    def total(cls, parts: Iterable[Counts]) -> Counts:
        """The sum of all parts."""
        columns = zip(*map(astuple, parts), strict=True)
        return cls(*map(sum, columns))


@dataclass
class HoldTimes:
    """The time of exclusive holds, by what the holder did meanwhile."""

    running: Time = 0
    granted_behind: Time = 0
    """It had been granted the lock and waited for a CPU that others used."""
    granted_idle: Time = 0
    """The same, for a CPU that was idle and on its way out of that."""
    preempted: Time = 0
    """It had run with the lock, and waited for a CPU."""
    blocked: Time = 0
    """It slept."""
    device: Time = 0
    """A device had the lock."""

    @property
    def total(self) -> Time:
        """All of it."""
        return self.running + self.runnable + self.blocked + self.device

    @property
    def runnable(self) -> Time:
        """What the holder waited for a CPU."""
        return self.granted_behind + self.granted_idle + self.preempted

    def add(self, other: HoldTimes) -> None:
        """Add the times of another hold."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass
class ClassStatistics:
    """Everything recorded about one lock class; times in picoseconds."""

    places: dict[tuple[str, TaskKind], Counts] = field(default_factory=dict)
    """Acquisitions and waits, by place in the programs and kind of task."""
    wait_max: Time = 0
    waits: Histogram = field(default_factory=lambda: Histogram(2))
    """Waits in nanoseconds."""
    held: dict[TaskKind, HoldTimes] = field(default_factory=lambda: {kind: HoldTimes() for kind in TaskKind})
    """Exclusive holds, by the kind of the holder."""
    held_contended: HoldTimes = field(default_factory=HoldTimes)
    """The same of holds during which somebody waited, of all kinds."""
    hold_max: Time = 0
    holds: Histogram | None = None
    """Exclusive holds in nanoseconds, where they are asked for."""
    acquired_shared: int = 0
    hold_shared_total: Time = 0
    """Time held shared, of all who do together."""
    held_shared: Time = 0
    """Time during which at least one holds it shared."""
    resolved_spinning: int = 0
    """Waits that ended without sleeping."""
    slept: int = 0
    handoffs: int = 0
    """Times the releaser handed ownership over."""
    steals: int = 0
    """Times a newcomer took the lock while others were queued."""
    wakeups: int = 0
    """By releasers."""
    grant_to_run: Time = 0
    """From grant to the new owner running."""
    grants: dict[TaskKind, Histogram] = field(default_factory=dict)
    """The same in nanoseconds, by the kind of the new owner."""
    still_waiting: tuple[int, Time] = (0, 0)
    """Waits that the window's end cut, and the longest of them."""
    waiting: int = 0
    """How many wait now."""
    _since: Time = 0
    _integral: int = 0

    def reset(self, now: Time) -> None:
        """Start the measured window: forget all events, keep who waits now."""
        fresh = ClassStatistics(waiting=self.waiting, _since=now, holds=self.holds and Histogram(2))
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))

    def at(self, site: str, kind: TaskKind) -> Counts:
        """What is counted of a kind of task at a place in the programs."""
        return self.places.setdefault((site, kind), Counts())

    @property
    def is_held(self) -> bool:
        """Whether any of the locks was held at any time."""
        return self.held_shared > 0 or any(held.total for held in self.held.values())

    @property
    def everywhere(self) -> Counts:
        """Acquisitions and waits at all places."""
        return Counts.total([Counts(), *self.places.values()])

    def by_site(self, site: str) -> Counts:
        """The same at one place."""
        return self._where(lambda at, _: at == site)

    def by_kind(self, kind: TaskKind) -> Counts:
        """The same of one kind of task."""
        return self._where(lambda _, of: of is kind)

    def _where(self, wanted: Callable[[str, TaskKind], bool]) -> Counts:
        return Counts.total([Counts(), *(counts for place, counts in self.places.items() if wanted(*place))])

    def _integrate(self, now: Time) -> None:
        self._integral += self.waiting * (now - self._since)
        self._since = now

    def begin_wait(self, now: Time) -> None:
        """A task begins to wait."""
        self._integrate(now)
        self.waiting += 1

    def end_wait(self, now: Time, wait: Time, at: Counts, *, slept: bool, held: bool) -> None:
        """A task that waited for `wait` within the window has the lock; `held`: somebody had it when it came."""
        self._integrate(now)
        self.waiting -= 1
        self.wait_max = max(self.wait_max, wait)
        self.waits.record(int(to_ns(wait)))
        self.slept += slept
        self.resolved_spinning += not slept
        at.contended += 1
        at.found_held += held
        at.wait_total += wait

    def end_hold(self, kind: TaskKind, hold: HoldTimes, lasted: Time, *, contended: bool) -> None:
        """An exclusive hold by a task of this kind has ended, or the window has."""
        self.held[kind].add(hold)
        if contended:
            self.held_contended.add(hold)
        self.hold_max = max(self.hold_max, lasted)
        if self.holds is not None:
            self.holds.record(int(to_ns(lasted)))

    def granted_task_runs(self, kind: TaskKind, waited: Time) -> None:
        """Who was granted the lock so long ago has come to run."""
        self.grant_to_run += waited
        self.grants.setdefault(kind, Histogram(2)).record(int(to_ns(waited)))

    def little(self, now: Time, open_waits: Iterable[Time]) -> tuple[int, int]:
        """Little's law in its exact form: the time integral of the number waiting, and the sum of all waits.

        The open ones are those that the window's end cuts.
        """
        self._integrate(now)
        waits = list(open_waits)
        self.still_waiting = len(waits), max(waits, default=0)
        return self._integral, self.everywhere.wait_total + sum(waits)


@dataclass
class WakeStatistics:
    """What became of the wake-ups of one kind of task."""

    wakeups: int = 0
    """All of them; new tasks are not woken."""
    on_previous: int = 0
    """The task stayed on the CPU where it had run last."""
    on_waker: int = 0
    """It was moved to its waker's."""
    beside_idle: int = 0
    """Where it had run last was busy while another CPU under the same last-level cache was idle."""
    stacked: int = 0
    """Of these, it stayed there all the same."""
    to_run_idle: Histogram = field(default_factory=lambda: Histogram(2))
    """From the wake-up until the task runs, in nanoseconds, where its CPU idled ..."""
    to_run_busy: Histogram = field(default_factory=lambda: Histogram(2))
    """... and where it was busy."""
