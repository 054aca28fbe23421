"""A mutex of user space on a futex (`nptl/lowlevellock.c` of glibc 2.36, `kernel/futex/waitwake.c` 6.12)."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any, ClassVar

import simpy

from simfs.machine.lock import Place, Side, Waiting
from simfs.machine.locks.sleeping import SleepingLock
from simfs.machine.task import Steps, Task
from simfs.machine.time import Time

FREE, HELD, WAITED_FOR = 0, 1, 2
"""What the word says; 2 is held, and somebody may wait."""


class PthreadMutex(SleepingLock):
    """The default kind of glibc's `pthread_mutex_t`, on a private futex.

    Nobody spins. A waiter writes 2 and sleeps while the word is 2; the release writes 0 and, if it was 2, wakes the
    first sleeper. A wake-up is a **hint**: whoever comes first has the mutex, for ever. Sleeping and waking are system
    calls under the lock of the futex's hash bucket.
    """

    perf_name = "futex"
    inner_kind: ClassVar[tuple[str, str]] = ("hash_bucket", "qspinlock")
    inner_role: ClassVar[str | None] = "futex.bucket"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.word = FREE
        self.sleepers: deque[Task] = deque()
        self.waiters = 0
        """Sleepers, and those on the way to the bucket's lock (`futex_hb_waiters_inc`)."""

    def try_fast(self, task: Task, side: Side) -> bool:
        """`lll_trylock`: compares with 0 and puts 1 there."""
        task.segment.debt += self.code.pthread
        task.atomic(self.line)
        return self._take_if_free(task, HELD)

    def wait(self, task: Task, side: Side) -> Waiting:
        """`__lll_lock_wait`."""
        task.read(self.line)
        yield from task.pay()
        slept = self.word == WAITED_FOR and (yield from self._futex_wait(task))
        while not (yield from self._exchange(task)):
            slept |= yield from self._futex_wait(task)
        return slept

    def release(self, task: Task, side: Side) -> Steps:
        """`lll_unlock`, and `futex_wake` of one where somebody may wait.

        Who has queued for the line has not given the mutex back before it comes.
        """
        task.segment.debt += self.code.pthread
        task.queued_until = 0
        task.atomic(self.line)
        yield from task.settle()
        self.end_hold()
        waited_for, self.word = self.word == WAITED_FOR, FREE
        if waited_for:
            yield from self._futex_wake(task)

    def _exchange(self, task: Task) -> Generator[simpy.Event, Any, bool]:
        """Put 2 there; whether it was 0, and so the mutex the task's."""
        task.atomic(self.line)
        yield from task.pay()
        taken = self._take_if_free(task, WAITED_FOR)
        self.word = WAITED_FOR
        return taken

    def _take_if_free(self, task: Task, held: int) -> bool:
        if self.word != FREE:
            return False
        self.word = held
        self.take(task, self.sleepers[0] if self.sleepers else None)
        return True

    def _futex_wait(self, task: Task) -> Waiting:
        """Sleep if the word is still 2 when it is looked at under the bucket's lock. Returns whether it slept."""
        bucket = self.wait_lock
        task.segment.debt += self.code.futex
        task.atomic(bucket.line)
        self.waiters += 1
        yield from bucket.lock_raw(task)
        task.read(self.line)
        yield from task.pay()
        sleeps = self.word == WAITED_FOR
        if sleeps:
            task.segment.debt += self.code.of_futex.queue + self._neighbours(task)
            yield from task.pay()
            task.forget_wakeups()
            self.sleepers.append(task)
        else:
            self.waiters -= 1
        bucket.unlock(task)
        while task in self.sleepers:
            yield from task.park()
        task.segment.debt += self.code.futex_return
        return sleeps

    def _neighbours(self, task: Task) -> Time:
        """`plist_add` looks at the first entry and changes the last, which lie on the stacks of their tasks."""
        ends = dict.fromkeys((self.sleepers[0], self.sleepers[-1])) if self.sleepers else {}
        return sum(task.line_of_waiter(sleeper) for sleeper in ends)

    def _futex_wake(self, task: Task) -> Steps:
        """Who is woken leaves the queue under the bucket's lock, and is woken after it."""
        bucket = self.wait_lock
        task.segment.debt += self.code.futex
        task.read(bucket.line)
        if self.waiters:
            yield from bucket.lock_raw(task)
            first = self._mark(task)
            yield from task.pay()
            bucket.unlock(task)
            if first:
                self.wake(task, first, fetched=True)
        task.segment.debt += self.code.futex_return

    def _mark(self, task: Task) -> Task | None:
        """`futex_wake_mark`: the first leaves the queue, and `plist_del` changes the entry after it."""
        task.segment.debt += self.code.of_futex.mark
        if not self.sleepers:
            return None
        first = self.sleepers.popleft()
        self.waiters -= 1
        task.segment.debt += task.lines_of_waiter(first)
        if self.sleepers:
            task.segment.debt += task.line_of_waiter(self.sleepers[0])
        return first
