"""The callbacks of RCU that a CPU has queued, by the grace period that they wait for (`kernel/rcu/rcu_segcblist.c`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from simfs.machine.time import Time


@dataclass
class Batch:
    """Some callbacks, and how long all of them take."""

    count: int = 0
    time: Time = 0
    stacks: int = 0
    """How many of them are stacks of processes."""

    def add(self, more: Batch) -> None:
        """Put others to them."""
        self.count += more.count
        self.time += more.time
        self.stacks += more.stacks

    def take(self, count: int) -> Batch:
        """Take so many of them away, all alike."""
        all_of = max(self.count, 1)
        taken = Batch(count, self.time * count // all_of, self.stacks * count // all_of)
        self.count -= count
        self.time -= taken.time
        self.stacks -= taken.stacks
        return taken


@dataclass
class Segment:
    """Callbacks that wait for the end of the grace period of this number."""

    batch: Batch = field(default_factory=Batch)
    number: int = 0


class Callbacks:
    """Those of a CPU (`struct rcu_segcblist`). Grace periods are known by their numbers."""

    def __init__(self) -> None:
        self.done = Batch()
        """Those whose grace period is over."""
        self._wait, self._next_ready = Segment(), Segment()
        self.next = Batch()
        """Those that have come since, and wait for none yet."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self.done.count + self._wait.batch.count + self._next_ready.batch.count + self.next.count

    def advance(self, completed: int) -> None:
        """So many grace periods are over (`rcu_segcblist_advance`)."""
        if self._wait.number > completed:
            return
        self.done.add(self._wait.batch)
        self._wait, self._next_ready = self._next_ready, Segment()
        if self._wait.number <= completed:
            self.done.add(self._wait.batch)
            self._wait = Segment()

    def accelerate(self, number: int) -> bool:
        """Let those wait for this grace period that have come since, or wait for a later one.

        Returns whether somebody waits for it now (`rcu_segcblist_accelerate`).
        """
        segments = [self._wait, self._next_ready]
        kept = [at for at, segment in enumerate(segments) if segment.batch.count and segment.number < number]
        first = kept[-1] + 1 if kept else 0
        if first == len(segments):
            return False  # there is no room for a third
        merged = Batch()
        for batch in [*(segment.batch for segment in segments[first:]), self.next]:
            merged.add(batch)
        for segment in segments[first:]:
            segment.batch, segment.number = Batch(), number
        segments[first].batch, self.next = merged, Batch()
        return merged.count > 0
