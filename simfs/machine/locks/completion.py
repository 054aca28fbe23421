"""`struct completion` (`kernel/sched/completion.c`): a count of things done and a FIFO of those who wait for one.

What is completed may be work for a pool of workers instead.
"""

from __future__ import annotations

from collections import deque

from simfs.machine.chains import Reason
from simfs.machine.lock import Place
from simfs.machine.locks.pool import Pool, Work
from simfs.machine.locks.sleeping import SleepingLock
from simfs.machine.task import Steps, Task


class Completion(SleepingLock):
    """A wake-up is a hint: a task that comes in between may take the count, and the woken one sleeps again."""

    perf_name = "semaphore"
    shares_line = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.done = 0
        self.requests = 0
        """Requests of devices that will complete it."""
        self.waiters: deque[Task] = deque()
        self.pool: Pool | None = None
        """It is where workers wait for work."""
        self.work: Work | None = None
        """It is work for a pool."""

    def wait_for(self, task: Task) -> Steps:
        """`wait_for_completion`."""
        yield from self.wait_lock.lock_raw(task)
        task.forget_wakeups()
        while self.done == 0:
            self.waiters.append(task)
            self.wait_lock.unlock(task)
            yield from task.park(lambda: Reason.DEVICE if self.requests else Reason.COMPLETION)
            yield from self.wait_lock.lock_raw(task)
            if task in self.waiters:
                self.waiters.remove(task)
        self.done -= 1
        task.function = ""
        self.wait_lock.unlock(task)

    def complete(self, task: Task) -> Steps:
        """`complete`: one waiter may go on."""
        if self.work is not None:
            yield from self.work.queue(task)
            return
        yield from self.wait_lock.lock_raw(task)
        self.done += 1
        if self.waiters:
            self.wake(task, self.waiters.popleft())
        self.wait_lock.unlock(task)

    def done_by_interrupt(self) -> None:
        """`complete` from an interrupt."""
        self.requests -= 1
        if self.work is not None:
            waiter = self.work.insert()
        else:
            self.done += 1
            waiter = self.waiters.popleft() if self.waiters else None
        if waiter:
            self.machine.scheduler.wakeups.wake(waiter, None)
