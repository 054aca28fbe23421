"""What is recorded about the locks of one class and about operations, within the measured window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from simfs._engine import Histogram
from simfs.machine.time import Time, to_ns


@dataclass
class Counters:
    """Events counted over the measured window."""

    switches: int = 0
    involuntary: int = 0
    wakeups: int = 0
    migrations: int = 0
    operations: int = 0
    bytes: int = 0


@dataclass
class Site:
    """Waits at one place in the programs."""

    contended: int = 0
    wait_total: Time = 0


@dataclass
class ClassStatistics:
    """Everything recorded about one lock class; times in picoseconds."""

    acquired: int = 0
    contended: int = 0
    """Acquisitions that had to wait."""
    wait_total: Time = 0
    wait_max: Time = 0
    waits: Histogram = field(default_factory=lambda: Histogram(2))
    """Waits in nanoseconds."""
    hold_total: Time = 0
    """Time held exclusively."""
    hold_max: Time = 0
    acquired_shared: int = 0
    hold_shared_total: Time = 0
    """Time held shared, of all who do together."""
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
    holder_running: Time = 0
    """Time in contended holds with the holder on a CPU ..."""
    holder_runnable: Time = 0
    """... waiting for a CPU ..."""
    holder_sleeping: Time = 0
    """... asleep ..."""
    holder_device: Time = 0
    """... or with the lock held by a device."""
    sites: dict[str, Site] = field(default_factory=dict)
    waiting: int = 0
    """How many wait now."""
    _since: Time = 0
    _integral: int = 0

    def reset(self, now: Time) -> None:
        """Start the measured window: forget all events, keep who waits now."""
        fresh = ClassStatistics(waiting=self.waiting, _since=now)
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))

    def _integrate(self, now: Time) -> None:
        self._integral += self.waiting * (now - self._since)
        self._since = now

    def begin_wait(self, now: Time) -> None:
        """A task begins to wait."""
        self._integrate(now)
        self.waiting += 1

    def end_wait(self, now: Time, wait: Time, *, slept: bool, site: str) -> None:
        """A task that waited for `wait` within the window has the lock."""
        self._integrate(now)
        self.waiting -= 1
        self.contended += 1
        self.wait_total += wait
        self.wait_max = max(self.wait_max, wait)
        self.waits.record(int(to_ns(wait)))
        self.slept += slept
        self.resolved_spinning += not slept
        place = self.sites.setdefault(site, Site())
        place.contended += 1
        place.wait_total += wait

    def little(self, now: Time, open_waits: Iterable[Time]) -> tuple[int, int]:
        """Little's law in its exact form: the time integral of the number waiting, and the sum of all waits."""
        self._integrate(now)
        return self._integral, self.wait_total + sum(open_waits)
