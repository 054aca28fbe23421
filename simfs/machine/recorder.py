"""The event trace: everything that happens on a machine, in order, and what was in force when it begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from simfs.machine.time import Time

Event = tuple[Time, int | None, int, str, str]
"""An event of a trace: time, task, CPU, what, about what."""
LongWait = tuple[str, int, Time, Time]
"""A wait: lock, task, when it began and ended."""
Key = tuple[str, int | None] | tuple[str, int | None, str]

MOST_EVENTS = 1_000_000
"""Events that a trace holds at most."""


class Trace:
    """The events of a run from `start` on, by its clock; raises ValueError for more than `MOST_EVENTS`.

    Of what happens before, only what is in force then is kept: for each task, CPU, wait, hold and operation the last
    event that still counts. `longest` are the longest waits by lock before the start and in the measured window.
    """

    def __init__(self, start: Time) -> None:
        self.start = start
        self.origin: Time = 0
        """When the clock of the run started."""
        self._preparing = False
        self.events: list[Event] = []
        self.longest: dict[str, LongWait] = {}
        self._in_force: dict[Key, tuple[int, Event]] = {}
        self._seen = 0

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """What is put on the machine meanwhile is in force when the run begins."""
        self._preparing = True
        yield
        self._preparing = False

    def record(self, event: Event, thread: int | None, *, setting_up: bool) -> None:
        """Record an event at a time of the machine's clock, which happens to a thread if to any."""
        if self._preparing or setting_up or event[0] - self.origin < self.start:
            self._see(event, thread, setting_up=setting_up)
            return
        if len(self.events) == MOST_EVENTS:
            raise ValueError(f"trace: more than {MOST_EVENTS} events: ask for less time")
        self.events.append(self._by_the_clock(event))

    def in_force(self) -> list[Event]:
        """The events that made the state at the start, in order."""
        kept = dict(sorted(self._in_force.values()))
        return [self._by_the_clock(event) for event in kept.values()]

    def longest_waits(self) -> list[LongWait]:
        """The longest wait for each lock, in the order of the locks' names."""
        return sorted(
            (lock, task, max(begin - self.origin, 0), max(end - self.origin, 0))
            for lock, task, begin, end in self.longest.values()
        )

    def _by_the_clock(self, event: Event) -> Event:
        return (max(event[0] - self.origin, 0), *event[1:])

    def _see(self, event: Event, task: int | None, *, setting_up: bool) -> None:
        _, _, cpu, what, about = event
        self._seen += 1
        match what:
            case "idle" | "idle exit":
                self._keep(event, ("cpu", cpu))
            case "start":
                self._keep(event, ("kind", task))
            case "begin":
                self._keep(event, ("operation", task))
            case "end":
                self._forget(("operation", task))
            case "wake":
                self._keep(event, ("woken", task))
            case "run" | "preempt" | "yield" | "sleep":
                self._forget(("woken", task))
                self._keep(event, ("status", task), ("cpu", cpu))
            case "exit":
                if setting_up:  # who has set the run up is called as one of those that it is for
                    self._forget(("cpu", cpu))
                else:
                    self._keep(event, ("cpu", cpu))
                self._forget(("kind", task), ("status", task), ("woken", task), ("operation", task))
            case "wait":
                self._keep(event, ("wait", task, about))
            case "release" | "release shared" | "hand to device":
                self._forget(("hold", task, about))
            case "acquire" | "acquire shared":
                self._keep(event, ("hold", task, about))
                self._end_wait(event, task)

    def _end_wait(self, event: Event, thread: int | None) -> None:
        end, task, _, _, about = event
        _, waited = self._in_force.pop(("wait", thread, about), (0, None))
        if waited is None or task is None:
            return
        wait = (about, task, waited[0], end)
        _, _, begun, ended = self.longest.setdefault(about, wait)
        if end - waited[0] > ended - begun:
            self.longest[about] = wait

    def _keep(self, event: Event, *keys: Key) -> None:
        for key in keys:
            self._in_force[key] = (self._seen, event)

    def _forget(self, *keys: Key) -> None:
        for key in keys:
            self._in_force.pop(key, None)
