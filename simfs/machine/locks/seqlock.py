"""`seqlock_t` (`include/linux/seqlock.h`, the same from 2.6 to 6.12)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from simfs.machine.cpus.cpu import Account
from simfs.machine.lock import Lock, Place, Side, Waiting
from simfs.machine.locks.sleeping import guard_of
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time


class Reading(NamedTuple):
    """A reader inside."""

    task: Task
    writes: int
    """What it has seen."""
    used: Time
    """The CPU time that it had used by then."""


class Seqlock(Lock):
    """A sequence and the spinlock of its writers, in one line.

    A writer takes the spinlock and makes the sequence odd, and even again when it is done. Readers write nothing and
    nobody waits for them: they wait until the sequence is even, and where it has changed meanwhile they do it all again
    (`read_seqretry`). A release by a reader contains that: the CPU time that its section took, once more. Each time
    counts as an acquisition, and all together as one wait.
    """

    perf_name = "spinlock"
    spins = True
    shares_line = True
    inner_kind: ClassVar[tuple[str, str]] = ("lock", "qspinlock")
    readers_hold = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.writes = 0
        """Writers so far; while one is inside, the lock has a holder."""
        self.inside: list[Reading] = []

    def try_fast(self, task: Task, side: Side) -> bool:
        """A writer takes the spinlock if it is free; a reader goes in unless a writer is inside."""
        if side is Side.READ:
            return self._reads(task)
        if not guard_of(self).try_fast(task, side):
            return False
        self._write(task)
        return True

    def _write(self, task: Task) -> None:
        """`write_seqcount_begin`."""
        task.store(self.line)
        self.writes += 1
        self.begin_hold(task)

    def _reads(self, task: Task) -> bool:
        """`read_seqbegin`, if the sequence is even."""
        task.read(self.line)
        if self.holder is not None:
            return False
        self.inside.append(Reading(task, self.writes, _used(task) + task.debt))
        self.begin_reading(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """Wait for the spinlock, or for the writer inside to leave."""
        if side is Side.READ:
            yield from self._poll_until_even(task)
            return False
        guard = guard_of(self)
        yield from guard.waited_for(task, guard.wait(task, side))
        self._write(task)
        return False

    def _poll_until_even(self, task: Task) -> Steps:
        task.preempt_off += 1
        while True:
            self.pollers.append(task)
            yield from task.spin()
            self.pollers.remove(task)
            if self._reads(task):
                break
        task.preempt_off -= 1

    def release(self, task: Task, side: Side) -> Steps:
        """`write_sequnlock`, or `read_seqretry` until nothing has changed."""
        if side is Side.WRITE:
            task.store(self.line)
            self.end_hold()
            self.tell_pollers(task)
            guard_of(self).unlock(task)
            return
        if self._leaves_empty(task):
            return
        yield from self.pay_first(task)
        if (section := self._must_retry(task)) is not None:
            yield from self.waited_for(task, self._retry(task, section), side)

    def _retry(self, task: Task, section: Time) -> Waiting:
        """Do a section of so much CPU time again until no writer comes between."""
        while True:
            if not self._reads(task):
                yield from self._poll_until_even(task)
            yield from task.run(Account.SYSTEM, section)
            if self._must_retry(task) is None:
                return False

    def _leaves_empty(self, task: Task) -> bool:
        """A reader whose section is empty waited for an even sequence, and does not look again."""
        at = max(n for n, reading in enumerate(self.inside) if reading.task is task)
        if self.inside[at].used != _used(task) + task.debt:
            return False
        del self.inside[at]
        self.end_reading(task)
        return True

    def _must_retry(self, task: Task) -> Time | None:
        """The CPU time of the reader's section, if a writer has been inside since it began."""
        task.read(self.line)
        at = max(n for n, reading in enumerate(self.inside) if reading.task is task)
        reading = self.inside.pop(at)
        self.end_reading(task)
        return max(_used(task) - reading.used, 0) if self.writes != reading.writes else None


def _used(task: Task) -> Time:
    """The CPU time that the running `task` has used."""
    times = task.times_now()
    return times.since - times.runnable - times.sleeping
