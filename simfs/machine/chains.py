"""Why everybody waits: waiter, lock, holder, what that waits for, ... to the root, added up over time.

The specification of what the native machine does at each change: whenever time goes by, everybody who waits is asked
anew what is in the way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from simfs.machine.statistics import TaskKind
from simfs.machine.time import Time, to_ns

if TYPE_CHECKING:
    from simfs.machine.lock import Lock, LockClass, Side
    from simfs.machine.machine import Machine
    from simfs.machine.task import Task

ADD_UP = "chains add up to waits"
"""The law of chains."""

MOST = 8
"""Locks that a chain is followed for."""

ROUND = 255
"""Tasks that a deadlock is looked for among."""


class Reason(Enum):
    """What is at the end of a chain."""

    RUNNING = "running"
    GRANTED = "granted"
    """The holder was given the lock and has not run since."""
    WOKEN = "woken"
    """It was woken for something else and waits for a CPU."""
    PREEMPTED = "preempted"
    TIMER = "timer"
    DEVICE = "device"
    """It sleeps until a device has done a request."""
    COMPLETION = "completion"
    """It sleeps until somebody completes something."""
    WAKE_UP = "wake-up"
    """It sleeps until another task wakes it."""
    LOCK = "lock"
    """It sleeps for a lock, which was not counted as a wait."""
    IN_DEVICE = "held by device"
    """A device has the lock."""
    READERS = "readers"
    """Readers have it."""
    NOBODY = "nobody"
    """Nobody has it: who comes next is on the way."""
    GONE = "gone"
    """Who took it has ended."""
    FARTHER = "farther"
    """It goes on for more than `MOST` locks."""


class Link(NamedTuple):
    """One lock of a chain: its class, the side waited for, and what its holder is doing there."""

    lock: str
    side: str
    holder: str


@dataclass(frozen=True)
class Way:
    """What is in the way of those who wait for a lock: its holder, the locks that it waits for, and the root."""

    holder: str
    links: tuple[Link, ...]
    reason: Reason
    function: str = ""


class Waiter(NamedTuple):
    """A chain as it is told, and sorted where times are equal."""

    waiter: str
    links: tuple[Link, ...]
    reason: str
    function: str


class Holder(NamedTuple):
    """What a holder does while somebody waits."""

    lock: str
    holder: str
    reason: str
    function: str
    waits_for: str


class Sleeper(NamedTuple):
    """A sleep of the load that no lock is the cause of."""

    sleeper: str
    reason: str
    function: str


_Told = TypeVar("_Told", Waiter, Holder, Sleeper)


class Chains:
    """The chains of a machine's window, if they are asked for."""

    def __init__(self, machine: Machine, *, on: bool) -> None:
        self.machine = machine
        self.on = on
        self._since: Time | None = None
        self.waits: Counter[Waiter] = Counter()
        self.holders: Counter[Holder] = Counter()
        self.sleeps: Counter[Sleeper] = Counter()

    def start_window(self) -> None:
        """Begin to add up."""
        self._since = self.machine.now
        self.waits.clear()
        self.holders.clear()
        self.sleeps.clear()

    def advance(self, time: Time) -> None:
        """Add the time until then, for which everything is as it is now."""
        if not self.on or self._since is None or time <= self._since:
            return
        span, self._since = time - self._since, time
        ways: dict[Lock, Way] = {}
        waited_for: set[Lock] = set()
        for task in sorted(self.machine.waiting, key=lambda task: task.number):
            for lock, _, side in task.waits:
                way = self._in_the_way(lock, ways)
                first = Link(lock.lock_class.name, side_of(lock, side), way.holder)
                chain = (first, *way.links)
                self.waits[Waiter(task.site, chain, way.reason.value, way.function)] += span
                waited_for.add(lock)
        for lock in waited_for:
            self.holders[_holder(lock, ways[lock])] += span

    def wakes(self, task: Task) -> None:
        """Add the sleep of a task that is woken, or still sleeps at the end, if a lock is not its cause."""
        if not self.on or task.kind is not TaskKind.LOAD or task.reason is Reason.LOCK or task.waits:
            return
        if span := self.machine.now - max(task.last_ran, self.machine.window_start):
            self.sleeps[Sleeper(task.site, task.reason.value, task.function)] += span

    def end(self) -> None:
        """The run is over: who still sleeps has slept until now."""
        for task in self.machine.tasks:
            if task.sleeps:
                self.wakes(task)

    def of_class(self, lock_class: LockClass) -> Time:
        """The time in the chains that begin with a class."""
        return sum(time for chain, time in self.waits.items() if chain.links[0].lock == lock_class.name)

    def _in_the_way(self, lock: Lock, known: dict[Lock, Way]) -> Way:
        if lock not in known:
            known[lock] = Way("", (), Reason.FARTHER)  # for a deadlock, which is cut at each of its locks
            known[lock] = self._sees(lock, known)
        return known[lock]

    def _sees(self, lock: Lock, known: dict[Lock, Way]) -> Way:
        if lock.holder is None:
            if lock.granted_readers and len(lock.granted_readers) == lock.readers:
                return Way(lock.granted_readers[0].site, (), Reason.GRANTED)
            return Way("", (), Reason.READERS if lock.readers else Reason.NOBODY)
        if lock.held_by_device:
            return Way("", (), Reason.IN_DEVICE)
        holder = self.machine.tasks[
            lock.holder.number
        ]  # one that has ended may have left its number to another
        own = bool(holder.waits) and _is_its_own(holder)
        if not holder.waits or own or not (holder.sleeps or holder.spinning):
            reason = _reason(holder, own=own)
            return Way(holder.site, (), reason, holder.function if holder.sleeps else "")
        waited, _, side = holder.waits[-1]
        way = self._in_the_way(waited, known)
        if len(way.links) >= MOST or self._is_deadlocked(holder):
            way = Way("", (), Reason.FARTHER)
        link = Link(waited.lock_class.name, side_of(waited, side), way.holder)
        return Way(holder.site, (link, *way.links), way.reason, way.function)

    def _is_deadlocked(self, task: Task) -> bool:
        """Whether who stands in the way of the task waits for it in turn."""
        holder = self._waits_behind(task)
        for _ in range(ROUND):
            if holder is None or holder is task:
                return holder is task
            holder = self._waits_behind(holder)
        return False

    def _waits_behind(self, task: Task) -> Task | None:
        """Which other task holds the lock that the task sleeps or spins for."""
        if not task.waits or not (task.sleeps or task.spinning):
            return None
        lock = task.waits[-1][0]
        if lock.holder is None or lock.held_by_device or lock.holder.number == task.number:
            return None
        return self.machine.tasks[lock.holder.number]


def side_of(lock: Lock, side: Side) -> str:
    """The side that is waited for; nothing for a lock that is always exclusive."""
    return side.value if lock.perf_name in ("rwlock", "rwsem", "percpu-rwsem") else ""


def _is_its_own(task: Task) -> bool:
    holder = task.waits[-1][0].holder
    return holder is not None and holder.number == task.number


def _reason(task: Task, *, own: bool) -> Reason:
    if task.on_cpu:
        return Reason.RUNNING
    if task.has_ended:
        return Reason.GONE
    return Reason.GRANTED if own else task.reason


def _holder(lock: Lock, way: Way) -> Holder:
    name = lock.lock_class.name
    if way.links:
        return Holder(name, way.holder, Reason.LOCK.value, "", way.links[0].lock)
    return Holder(name, way.holder, way.reason.value, way.function, "")


def told(chains: Chains, *, stalled: bool) -> dict[str, Any]:
    """What is told of chains in the result, the longest first; nothing of a run that could not go on."""
    if not chains.on:
        return {}
    if stalled:
        return {"chains": {"waits": [], "holders": [], "sleeps": [], "holds": []}}
    waits = [
        chain._asdict() | {"links": [link._asdict() for link in chain.links], "wait_ns": to_ns(time)}
        for chain, time in _longest_first(chains.waits)
    ]
    holders = [does._asdict() | {"time_ns": to_ns(time)} for does, time in _longest_first(chains.holders)]
    sleeps = [slept._asdict() | {"time_ns": to_ns(time)} for slept, time in _longest_first(chains.sleeps)]
    lasted = ((known.name, known.statistics.holds) for known in chains.machine.classes)
    holds = [{"lock": name, "hdr": of.encode()} for name, of in lasted if of and of.count]
    return {"chains": {"waits": waits, "holders": holders, "sleeps": sleeps, "holds": holds}}


def _longest_first(times: Counter[_Told]) -> list[tuple[_Told, Time]]:
    return sorted(times.items(), key=lambda each: (-each[1], each[0]))
