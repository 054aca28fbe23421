"""`struct semaphore` (`kernel/locking/semaphore.c`, 2.6 to 6.18, but for where it wakes): counting, no owner."""

from __future__ import annotations

from collections import deque

from simfs.machine.lock import Place, Side, Waiting
from simfs.machine.locks.sleeping import SleepingLock
from simfs.machine.task import Steps, Task


class Semaphore(SleepingLock):
    """A semaphore with count 1, as XFS uses it for buffers.

    No spinning at all; strict FIFO; **direct grant**: `up` with waiters leaves the count at 0 and gives the semaphore
    to the first of them, which still has to wake. Nobody else can take it meanwhile, not even by trylock: a convoy.
    Anyone may call `up`, from any context.
    """

    perf_name = "semaphore"
    shares_line = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.count = 1
        self.waiters: deque[Task] = deque()

    def try_fast(self, task: Task, side: Side) -> bool:
        """`down_trylock`: takes the inner raw spinlock, looks, leaves."""
        task.atomic(self.line)
        if self.wait_lock.holder is not None or self.count == 0:
            return False
        self._begin(task)
        return True

    def wait(self, task: Task, side: Side) -> Waiting:
        """`down` when it did not succeed at once."""
        yield from self.lock_to_wait(task, self.code.semaphore.queue)
        if self.count > 0:
            self._begin(task)
            self.wait_lock.unlock(task)
            return False
        task.forget_wakeups()
        self.waiters.append(task)
        self.wait_lock.unlock(task)
        while not self.takes_grant(task):
            yield from task.park()
        task.segment.debt += self.code.semaphore.taken
        return True

    def release(self, task: Task, side: Side) -> Steps:
        """`up`: one more, or the semaphore for the first waiter."""
        yield from self.wait_lock.lock_raw(task)
        task.write(self.line)
        self.end(task)
        first = self._hand_over()
        if first is None:
            self.wait_lock.unlock(task)
            return
        task.segment.debt += self.code.semaphore.mark
        if self.machine.kernel.semaphore_wake_queue:
            self.wait_lock.unlock(task)
            self.wake(task, first)
        else:
            self.wake(task, first)
            self.wait_lock.unlock(task)

    def done_by_interrupt(self) -> None:
        """`up` from an interrupt: nobody pays for the wake-up but the interrupted CPU."""
        self.end_hold()
        if first := self._hand_over():
            self.machine.scheduler.wakeups.wake(first, None)

    def _begin(self, task: Task) -> None:
        self.count -= 1
        self.begin(task)

    def _hand_over(self) -> Task | None:
        """One more, or the semaphore for the first waiter."""
        if not self.waiters:
            self.count += 1
            return None
        first = self.waiters.popleft()
        self.give(first)
        return first

    # ---- what one that counts does otherwise ------------------------------------------------------------------------

    def begin(self, task: Task) -> None:
        """`task` holds it."""
        self.begin_hold(task)

    def end(self, task: Task) -> None:
        """`task` gives it back."""
        self.end_hold()

    def give(self, task: Task) -> None:
        """It is given to `task`, which still sleeps."""
        self.grant(task)

    def takes_grant(self, task: Task) -> bool:
        """Whether it was given to the running `task`."""
        return self.take_grant(task)


class CountingSemaphore(Semaphore):
    """A semaphore that `semaphore_count` tasks may hold at once."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.count = self.machine.kernel.semaphore_count
        self.given: set[Task] = set()
        """Granted and not yet running."""

    def begin(self, task: Task) -> None:
        """`task` is one of those who hold it."""
        self.begin_shared(task)

    def end(self, task: Task) -> None:
        """`task` is none of them any more."""
        self.end_shared(task)

    def give(self, task: Task) -> None:
        """`task`, which still sleeps, is one of them."""
        self.begin_shared(task)
        self.lock_class.statistics.handoffs += 1
        self.given.add(task)

    def takes_grant(self, task: Task) -> bool:
        """Whether it was given to the running `task`."""
        given = task in self.given
        self.given.discard(task)
        return given
