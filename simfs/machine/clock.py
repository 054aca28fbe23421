"""The clock and the order of what happens at one instant, on SimPy's event queue.

SimPy takes events by (time, priority, age). The priority says what happens and to whom, so the order among ties is
specified and never an accident of who was scheduled first: hardware before running tasks, low numbers before high ones.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from enum import IntEnum

import simpy
from simpy.events import EventPriority

from simfs.machine.time import Time


class What(IntEnum):
    """What can happen, in the order in which it is processed at one instant."""

    DEVICE_DONE = 0
    """A device finished a request (subject: request)."""
    TIMER = 1
    """A timer fires (subject: the task to wake)."""
    IDLE_EXIT = 2
    """A CPU has left its idle state (subject: CPU)."""
    SWITCH_DONE = 3
    """A context switch is complete (subject: CPU)."""
    SEGMENT_END = 4
    """A running task has used up its segment (subject: task)."""
    SPIN_CHECK = 5
    """A spinning task looks again (subject: task)."""
    TICK = 6
    """The scheduler tick (subject: CPU)."""
    TICK_DONE = 7
    """The timers of a tick have rung, and its interrupt ends (subject: CPU)."""
    SOFTIRQ_DONE = 8
    """The softirqs after a tick are done and have left something to `ksoftirqd` (subject: CPU)."""
    RESCHEDULED = 9
    """A CPU has served an interrupt that wants it for another task (subject: CPU)."""


class Happening(simpy.Event):
    """Something that happens at a fixed moment."""

    def __init__(self, env: simpy.Environment, delay: Time, priority: int, do: Callable[[], None]) -> None:
        super().__init__(env)
        self._ok = True  # as SimPy's own Timeout does: it is decided already that it happens
        self._value = None
        self.callbacks.append(lambda _: do())
        env.schedule(self, EventPriority(priority), delay)


class Clock:
    """Simulated time, and what is still to happen."""

    def __init__(self, shuffle_seed: int | None = None) -> None:
        self.env = simpy.Environment(initial_time=0)
        self.processed = 0
        """Happenings so far."""
        self._left = Counter[What]()
        self._shuffle = None if shuffle_seed is None else random.Random(shuffle_seed)

    @property
    def now(self) -> Time:
        """The time."""
        return int(self.env.now)

    def at(self, time: Time, what: What, subject: int, do: Callable[[], None], *, rank: int = 0) -> None:
        """Let `do` happen at `time`. Ties are taken by kind, then subject, then `rank`."""
        priority = (what << 32 | subject) << 32 | rank
        if self._shuffle:
            priority = self._shuffle.getrandbits(64)
        # SimPy's own priorities (0 and 1: a process goes on) come first: what a happening set going is finished.
        Happening(self.env, time - self.now, priority + 2, lambda: self._happen(what, do))
        self._left[what] += 1

    def _happen(self, what: What, do: Callable[[], None]) -> None:
        self.processed += 1
        self._left[what] -= 1
        do()

    def pending(self, before: Time) -> bool:
        """Whether anything happens before that time."""
        return bool(self.env.peek() < before)

    def skip(self, time: Time) -> None:
        """Let time go by: nothing that was still to happen will."""
        self.env = simpy.Environment(initial_time=time)
        self._left.clear()

    def only_ticks(self) -> bool:
        """Whether nothing but ticks will ever happen again."""
        return self._left.total() == self._left[What.TICK]
