"""What a task is doing, for how long it has done what, and what is left of its segment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from simfs.machine.time import Time


class Status(Enum):
    """Where a task is in its life."""

    RUNNING = "running"
    """On a CPU."""
    RUNNABLE = "runnable"
    """Wants a CPU: in a run queue, or on its way out of an idle CPU."""
    SLEEPING = "sleeping"
    """Waits for a wake-up."""
    DEAD = "dead"
    """Its program has ended."""


@dataclass
class Segment:
    """A stretch of CPU time in the order in which it is used up."""

    irq: Time = 0
    """Stolen by interrupts."""
    debt: Time = 0
    """Owed for accesses and wake-ups that changed state at once."""
    own: Time = 0
    """The program's own."""

    @property
    def total(self) -> Time:
        """What is left altogether."""
        return self.irq + self.debt + self.own

    def consume(self, elapsed: Time) -> tuple[Time, Time, Time]:
        """Use up `elapsed`; return how much of it was (irq, debt, own)."""
        irq = min(elapsed, self.irq)
        debt = min(elapsed - irq, self.debt)
        own = elapsed - irq - debt
        self.irq -= irq
        self.debt -= debt
        self.own = max(self.own - own, 0)
        return irq, debt, own


class StateTimes(NamedTuple):
    """Time spent wanting to run and sleeping, up to `since`; the rest it was on a CPU."""

    runnable: Time = 0
    cpu_idle: Time = 0
    """The part of `runnable` for which its CPU was idle or on its way out of that."""
    sleeping: Time = 0
    since: Time = 0
